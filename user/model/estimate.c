#include "model/estimate.h"

#include <math.h>

#define Z 1.959963984540054 /* 97.5 % of the normal distribution lie below */

void estimate_add(struct estimate *to, uint64_t size, uint64_t weight)
{
	double s = (double)size, w = (double)weight, v = w * (w - s);

	if (!size)
		return;
	to->samples++;
	to->bytes += w;
	to->blocks += w / s;
	to->seen_bytes += s;
	to->v += v;
	to->vc += v * (w - s / 2);
	to->blocks_v += v / s / s;
	to->blocks_vc += v / s / s * (w / s - 0.5);
}

void estimate_merge(struct estimate *to, const struct estimate *from)
{
	to->samples += from->samples;
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->seen_bytes += from->seen_bytes;
	to->v += from->v;
	to->vc += from->vc;
	to->blocks_v += from->blocks_v;
	to->blocks_vc += from->blocks_vc;
}

void estimate_errors(const struct estimate *est, struct value_error *ret_blocks,
		     struct value_error *ret_bytes)
{
	double n = (double)est->samples;

	*ret_blocks = (struct value_error){ .samples = n,
					    .unseen = fmax(0, est->blocks - n),
					    .v = est->blocks_v,
					    .vc = est->blocks_vc };
	*ret_bytes = (struct value_error){ .samples = n,
					   .unseen = fmax(0, est->bytes - est->seen_bytes),
					   .v = est->v,
					   .vc = est->vc };
}

void estimate_less(struct estimate *from, const struct estimate *part)
{
	from->samples -= part->samples;
	from->bytes -= part->bytes;
	from->blocks -= part->blocks;
	from->seen_bytes -= part->seen_bytes;
	from->v -= part->v;
	from->vc -= part->vc;
	from->blocks_v -= part->blocks_v;
	from->blocks_vc -= part->blocks_vc;
}

double estimate_upper_end(double value, double v, double c)
{
	return value + Z * (Z * c / 2 + sqrt(Z * Z * c * c / 4 + v));
}

struct interval estimate_interval(const struct estimate *est)
{
	struct interval i = { est->bytes, est->bytes };

	if (est->v > 0) {
		double c = est->vc / est->v;
		double half = sqrt(Z * Z * c * c / 4 + est->v);

		i.low = est->bytes + Z * (Z * c / 2 - half);
		i.high = estimate_upper_end(est->bytes, est->v, c);
	}
	if (i.low < est->seen_bytes && est->seen_bytes <= est->bytes)
		i.low = est->seen_bytes;
	if (i.low < 0)
		i.low = 0;
	return i;
}
