#include "render/formats/palette.h"

#include <string.h>

/* Channel c of shade s is base[c] + span[c] * v(s, draw[c]); v in 0 … 1, one sequence per draw. */
struct ramp {
	uint8_t base[3], span[3], draw[3];
};

struct palette {
	const char *name;
	struct ramp user;
	bool kinds; /* the other kinds have ramps of their own */
};

static const struct ramp kernel_ramp = { { 236, 128, 64 }, { 14, 38, 40 }, { 0, 0, 1 } };
static const struct ramp inlined_ramp = { { 146, 210, 200 }, { 36, 22, 24 }, { 0, 0, 1 } };
static const struct ramp lang_ramp = { { 200, 162, 224 }, { 36, 36, 24 }, { 0, 0, 1 } };
static const struct ramp process_ramp = { { 208, 208, 202 }, { 16, 16, 16 }, { 0, 0, 0 } };
static const struct ramp unknown_ramp = { { 182, 182, 186 }, { 20, 20, 20 }, { 0, 0, 0 } };

static const struct palette palettes[] = {
	{ "cpu", { { 246, 194, 84 }, { 9, 34, 40 }, { 0, 0, 1 } }, .kinds = true },
	{ "wait", { { 128, 178, 228 }, { 52, 40, 22 }, { 0, 0, 1 } }, .kinds = true },
	{ "memory", { { 146, 206, 116 }, { 50, 34, 48 }, { 0, 0, 1 } }, .kinds = true },
	{ "hot", { { 205, 0, 0 }, { 50, 230, 55 }, { 2, 0, 1 } } },
	{ "mem", { { 0, 190, 0 }, { 0, 50, 210 }, { 0, 1, 0 } } },
	{ "io", { { 80, 80, 190 }, { 60, 60, 55 }, { 0, 0, 1 } } },
	{ "red", { { 200, 50, 50 }, { 55, 80, 80 }, { 0, 0, 0 } } },
	{ "green", { { 50, 200, 50 }, { 60, 55, 60 }, { 0, 0, 0 } } },
	{ "blue", { { 80, 80, 205 }, { 60, 60, 50 }, { 0, 0, 0 } } },
	{ "yellow", { { 175, 175, 50 }, { 55, 55, 20 }, { 0, 0, 0 } } },
	{ "purple", { { 190, 80, 190 }, { 65, 60, 65 }, { 0, 0, 0 } } },
	{ "aqua", { { 50, 165, 165 }, { 60, 55, 55 }, { 0, 0, 0 } } },
	{ "orange", { { 190, 90, 0 }, { 65, 65, 0 }, { 0, 0, 0 } } },
	{ 0 },
};

const struct palette *palette_find(const char *name)
{
	for (const struct palette *p = palettes; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

const char *palette_choice(int i)
{
	return i > 0 ? palettes[i - 1].name : "auto";
}

bool palette_shows_kinds(const struct palette *p)
{
	return p->kinds;
}

uint32_t palette_shade(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a, then mixed: its low bits alone follow the last byte */

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	h ^= h >> 15;
	h *= 0x2c1b3c6du;
	h ^= h >> 13;
	return h % PALETTE_SHADES;
}

static const struct ramp *ramp_of(const struct palette *p, enum frame_kind kind)
{
	if (!p->kinds)
		return &p->user;
	switch (kind) {
	case FRAME_USER:
		return &p->user;
	case FRAME_KERNEL:
		return &kernel_ramp;
	case FRAME_INLINED:
		return &inlined_ramp;
	case FRAME_LANG:
		return &lang_ramp;
	case FRAME_PROCESS:
		return &process_ramp;
	case FRAME_UNKNOWN:
		break;
	}
	return &unknown_ramp;
}

uint32_t palette_color(const struct palette *p, enum frame_kind kind, uint32_t shade)
{
	/* Odd factors permute 0 … 31, so the draws of one shade differ and none is left out. */
	static const uint32_t factor[3] = { 1, 7, 13 };
	const struct ramp *r = ramp_of(p, kind);
	uint32_t rgb = 0;

	for (int c = 0; c < 3; c++) {
		uint32_t v = shade * factor[r->draw[c]] % PALETTE_SHADES;

		rgb = rgb << 8 | (r->base[c] + r->span[c] * v / (PALETTE_SHADES - 1));
	}
	return rgb;
}
