/*
 * A view: a list of rows in columns, which may unfold, with a cursor, an order, a search and a filter. What rows
 * there are is each view's own (ops); all that lists have in common is here.
 *
 * Rows are numbered 0 … n_rows - 1 in the order shown, and known by a key, so that the cursor stays on its row when
 * the order changes.
 */
#ifndef MEMSCOPE_SCREEN_VIEW_H
#define MEMSCOPE_SCREEN_VIEW_H

#include "base/strbuf.h"
#include "screen/canvas.h"
#include "screen/keys.h"

struct screen;
struct view;

struct column {
	const char *title;
	int width;        /* 0: what is left of the line, and the row's text stands there: the last column */
	int from_width;   /* only on screens that are so wide */
	const char *help; /* a few words, for the help page */
	bool left;        /* text, not a number */
};

enum fold { FOLD_LEAF, FOLD_OPEN, FOLD_CLOSED };

struct view_row {
	uint64_t key;
	int depth;
	enum fold fold;
	bool dim;
};

struct view_ops {
	enum view_kind kind;
	const char *name; /* of the help page */
	const struct column *columns; /* which view_init() takes over; a view may choose others */
	uint32_t n_columns;
	uint32_t sort;    /* the column by which rows are sorted at first */
	/* Makes the rows anew, by v->sort, v->reverse and v->filter; sets v->n_rows. -ENOMEM. */
	int (*arrange)(struct view *v);
	struct view_row (*row)(const struct view *v, uint32_t row);
	void (*cell)(const struct view *v, uint32_t row, uint32_t column, struct strbuf *to);
	/* The first line, and the second. */
	void (*title)(const struct view *v, struct strbuf *to);
	void (*status)(const struct view *v, struct strbuf *to);
	/* An action on the row under the cursor that is not the list's own. False: it is for the list. */
	bool (*act)(struct view *v, struct screen *s, enum action action);
	/* A line that was typed behind ":", and what the prompt says as long as it is empty. NULL: none is taken. */
	void (*typed)(struct view *v, struct screen *s, const char *text);
	const char *typed_help;
	/* Its own way of drawing lines `from` to `to` - 1, and of moving. NULL: a list. */
	void (*draw)(struct view *v, struct canvas *c, int from, int to);
	/* With draw(): the mouse points at line `y` of that. False: there is nothing. */
	bool (*click)(struct view *v, int y, int x);
	/* What it waits for: a descriptor (-1: none), and a moment (CLOCK_MONOTONIC; UINT64_MAX: none). When one of them has
	 * come, tick() is called: only the uppermost view's moment is waited for, but each one's descriptor. */
	int (*fd)(const struct view *v);
	uint64_t (*due_ns)(const struct view *v);
	void (*tick)(struct view *v, struct screen *s);
	/* Is there something to show yet? NULL: at any time. Batch mode waits for it. */
	bool (*ready)(const struct view *v);
	/* Nothing more will come. NULL: it goes on for ever. */
	bool (*ended)(const struct view *v);
	/* Why it has ended without anything to show; NULL: it has not. */
	const char *(*failed)(const struct view *v);
	void (*free)(struct view *v);
};

enum { VIEW_TEXT_MAX = 64 };

struct view {
	const struct view_ops *ops;
	const struct column *columns;
	uint32_t n_columns;
	uint32_t n_rows, cursor, top;
	uint64_t at_key;            /* of the row under the cursor */
	uint32_t sort;
	bool reverse;
	bool stale;                 /* rows are to be arranged before they are drawn */
	bool moved;                 /* the cursor was moved by hand */
	char filter[VIEW_TEXT_MAX], search[VIEW_TEXT_MAX];
};

/* For a view's own structure, which begins with a struct view. */
void view_init(struct view *v, const struct view_ops *ops);

/* Arranges what is stale; the cursor stays on its row, or near it. -ENOMEM. */
int view_arrange(struct view *v);
/* The key of the row under the cursor; 0: there is none. */
uint64_t view_at(const struct view *v);
void view_move(struct view *v, int64_t rows, int page);
/* The next row with the text searched for, from `from` on and around. False: there is none. */
bool view_find(struct view *v, uint32_t from);

/* Does a text contain what is filtered for? In any case where nothing is. */
bool view_passes(const struct view *v, const char *text);
bool view_contains(const char *text, const char *part);

/* Bytes in at most 10 columns, "1016.0 KiB"; with `sign` in 11, "+1016.0 KiB", "0". */
void view_bytes(double bytes, bool sign, struct strbuf *to);

/* Lines `from` to `to` - 1: headings and rows. */
void view_draw(struct view *v, struct canvas *c, int from, int to);
/* Which row is on line `y` of that; UINT32_MAX: none. */
uint32_t view_row_at(const struct view *v, int from, int y);

#endif
