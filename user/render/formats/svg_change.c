#include "render/formats/svg_change.h"

struct svg_change svg_change(const struct frame_sides *s, double scale)
{
	double before = (double)s->total[0] * (scale > 0 ? scale : 1) + 0.5;

	return (struct svg_change){
		.before = scale <= 0 || scale == 1 ? s->total[0]
			  : before >= 0x1p63       ? INT64_MAX
						   : (int64_t)before,
		.after = s->total[1],
	};
}

uint32_t svg_change_shade(struct svg_change c)
{
	double larger = (double)(c.before > c.after ? c.before : c.after);
	double by = larger > 0 ? ((double)c.after - (double)c.before) / larger : 0;

	return (uint32_t)(SVG_CHANGE_STEPS + (int)(by * SVG_CHANGE_STEPS + (by < 0 ? -0.5 : 0.5)));
}

/* Straight from near white to the full colour. */
static uint32_t mixed(const uint8_t from[3], const uint8_t to[3], uint32_t step)
{
	uint32_t color = 0;

	for (int i = 0; i < 3; i++)
		color = color << 8 |
			(uint32_t)((int)from[i] +
				   ((int)to[i] - (int)from[i]) * (int)step / SVG_CHANGE_STEPS);
	return color;
}

uint32_t svg_change_color(uint32_t shade)
{
	static const uint8_t equal[3] = { 0xe9, 0xe7, 0xe1 }, more[3] = { 0xe8, 0x4a, 0x3c },
			     less[3] = { 0x4a, 0x86, 0xe8 };

	return shade < SVG_CHANGE_STEPS ? mixed(equal, less, SVG_CHANGE_STEPS - shade)
					: mixed(equal, more, shade - SVG_CHANGE_STEPS);
}
