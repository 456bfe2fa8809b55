/*
 * A screen's content: cells of one character and one style each. Views write here; terminal.c shows it, batch mode
 * prints it. Nothing here knows a terminal.
 */
#ifndef MEMSCOPE_SCREEN_CANVAS_H
#define MEMSCOPE_SCREEN_CANVAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum style {
	STYLE_TEXT,
	STYLE_TITLE,    /* the first line                      */
	STYLE_HEADING,  /* of columns                          */
	STYLE_SORTED,   /* that by which rows are sorted       */
	STYLE_CURSOR,   /* the row that keys act on            */
	STYLE_DIM,
	STYLE_MATCH,    /* of a search                         */
	STYLE_WARN,
	STYLE_KEY,      /* in the line of hints                */
	/* Blocks of the flame view: of a frame's kind, two shades each. */
	STYLE_FLAME_USER,
	STYLE_FLAME_USER2,
	STYLE_FLAME_KERNEL,
	STYLE_FLAME_KERNEL2,
	STYLE_FLAME_LANG,
	STYLE_FLAME_LANG2,
	STYLE_FLAME_OTHER,
	STYLE_FLAME_OTHER2,
	N_STYLES,
};

struct cell {
	uint32_t c;     /* code point; 0: the second half of a wide one */
	uint8_t style;
};

struct canvas {
	struct cell *cells;
	int rows, columns;
	bool ascii;     /* the terminal shows no other characters */
};

/* Clears it, at this size. -ENOMEM. */
int canvas_begin(struct canvas *c, int rows, int columns);
void canvas_fini(struct canvas *c);

/*
 * Writes UTF-8 text from column `x` on, in `width` columns at most; what is longer is cut, and its last column says so
 * ("…"). What is outside the canvas is left out. Control characters and what is no UTF-8 become "?". Returns the
 * columns that were used.
 */
int canvas_put(struct canvas *c, int y, int x, int width, enum style style, const char *text);
/* The same, at the right end of `width` columns. */
void canvas_put_right(struct canvas *c, int y, int x, int width, enum style style, const char *text);
/* The style of these columns, whatever is in them. */
void canvas_style(struct canvas *c, int y, int x, int width, enum style style);

/* A character that is drawn, or what stands for it in ASCII. */
enum glyph { GLYPH_OPEN, GLYPH_CLOSED, GLYPH_LEAF, GLYPH_DOWN, GLYPH_UP, N_GLYPHS };
const char *canvas_glyph(const struct canvas *c, enum glyph g);

/* Columns that text takes. */
int canvas_width(const char *text);

/* A row as text, without blanks at its end; a newline behind it. */
void canvas_print(const struct canvas *c, int y, FILE *to);

#endif
