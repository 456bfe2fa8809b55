/*
 * Colours of frames, shared by every picture. The same name always has the same colour, so two
 * pictures can be compared by eye; a palette has few shades, so pictures stay small.
 *
 * hot, mem, io and the plain hues are what flamegraph.pl's users know under these names: one ramp
 * for all frames. cpu, wait and memory are ours: the hue says what kind of frame it is (kernel
 * frames orange in all three, inlined calls aqua, interpreted languages violet, process names and unknown code grey), the
 * base hue of user frames what the picture shows. "auto" chooses among the three by value type.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_PALETTE_H
#define MEMSCOPE_RENDER_FORMATS_PALETTE_H

#include "analyse/frame.h"

/* For OPT_CHOICE: "auto", then every palette in the order of their table. */
#define PALETTE_CHOICES "auto|cpu|wait|memory|hot|mem|io|red|green|blue|yellow|purple|aqua|orange"

enum { PALETTE_SHADES = 32 };

struct palette;

/* NULL when there is none of that name; "auto" is not a palette. */
const struct palette *palette_find(const char *name);
/* The name behind an index into PALETTE_CHOICES. */
const char *palette_choice(int i);
/* True when kinds of frames differ in hue, so that a legend makes sense. */
bool palette_shows_kinds(const struct palette *p);

/* Which of the PALETTE_SHADES shades a name has: a hash of its bytes. */
uint32_t palette_shade(const char *name);
/* 0xrrggbb */
uint32_t palette_color(const struct palette *p, enum frame_kind kind, uint32_t shade);

#endif
