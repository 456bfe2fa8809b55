/*
 * The screen: views one above the other, of which the uppermost is shown; what is typed goes to it. The screen itself
 * knows neither how profiles are taken nor how heaps are read: sources do that, in processes of their own, so that
 * nothing that takes long keeps the screen from answering.
 */
#ifndef MEMSCOPE_SCREEN_SCREEN_H
#define MEMSCOPE_SCREEN_SCREEN_H

#include "base/err.h"
#include "screen/view.h"

#include <sys/types.h>

enum { SCREEN_VIEWS = 8, TYPED_MAX = 400 };

/* Whose profile, or heap. */
struct screen_target {
	bool all;
	pid_t pid;             /* 0: not a process */
	const char *container; /* its name or id, or NULL */
	const char *title;
};

/* What keys lead to that the screen itself cannot do: they push a view, or say why not. NULL: not here. */
struct screen_sources {
	void (*profile)(struct screen *s, const struct screen_target *t);
	void (*heap)(struct screen *s, const struct screen_target *t);
};

struct screen {
	struct view *views[SCREEN_VIEWS];
	uint32_t n_views;
	const struct screen_sources *sources;
	struct canvas canvas;
	char message[512];
	uint64_t message_until_ns;
	enum { TYPING_NOTHING, TYPING_SEARCH, TYPING_FILTER, TYPING_QUESTION } typing;
	char typed[TYPED_MAX], asked[TYPED_MAX]; /* asked: the question that was typed last */
	bool paused, end, suspend, redraw;
};

/* The view becomes the screen's, which frees it. False: there are too many, and it was freed. */
bool screen_push(struct screen *s, struct view *v);
void screen_pop(struct screen *s);
struct view *screen_top(const struct screen *s);
/* A sentence in the last line, for some seconds. */
void screen_say(struct screen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A key: what it does. */
void screen_key(struct screen *s, uint32_t key);
/* Draws the uppermost view on s->canvas, of this size. -ENOMEM. */
int screen_draw(struct screen *s, int rows, int columns);

void screen_fini(struct screen *s);

/* A click or double click on a line, or a turn of the wheel (enum key). */
void screen_mouse(struct screen *s, uint32_t key, int y, int x);

/*
 * The terminal, until the user ends it or the terminal does: 0, or an error before anything was shown. The first view
 * has been pushed.
 */
int screen_run(struct screen *s, struct err *e);

/* Prints what the uppermost view shows, all rows of it, `iterations` times (0: until the view ends), `delay_s` apart, the
 * first after that time. */
int screen_batch(struct screen *s, uint32_t iterations, double delay_s, FILE *to, struct err *e);

#endif
