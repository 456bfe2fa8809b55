/* The view of a profile, for its own files: the list (profile.c), what comes from the child (profile_live.c), blocks
 * (profile_flame.c). */
#ifndef MEMSCOPE_SCREEN_PROFILE_PARTS_H
#define MEMSCOPE_SCREEN_PROFILE_PARTS_H

#include "screen/flame.h"
#include "screen/profile.h"
#include "screen/worker.h"

#include <time.h>

enum { WINDOW = 10 }; /* stretches of time that "the last 10 seconds" are */

/* What a column shows: a value, in itself or with all below, as a rate or as it is. */
struct shown_value {
	struct column column;
	enum call_value value;
	bool self;
	enum { AS_CPU, AS_RATE, AS_BYTES, AS_OTHER } as;
};

enum { PROFILE_FIGURES_MAX = 9 };

struct profile_line {
	uint32_t node;
	int depth;
};

/* What each node had at a moment. */
struct profile_moment {
	int64_t (*self)[N_CALL_VALUES], (*total)[N_CALL_VALUES];
	uint32_t n; /* nodes; 0: nothing is marked */
	int64_t duration_ns;
	time_t at;
	bool shown; /* the change since then, not all */
};

struct profile_view {
	struct view view; /* first */
	struct dict *d;
	struct call_tree tree;
	struct profile_set all;
	struct profile_set window[WINDOW]; /* a ring: … */
	uint32_t windows;                  /* so many were added */
	int64_t shown_ns;                  /* how long what is in the tree took */
	bool recent;                       /* the last of them are shown, not all */
	struct column columns[PROFILE_FIGURES_MAX + 2]; /* figures, the image, the name */
	uint32_t n_figures;
	struct shown_value shown[PROFILE_FIGURES_MAX];
	struct profile_line *rows;
	uint32_t cap;
	bool *passes;                      /* by node, with a filter */
	char title[160], state[512], note[512];
	/* Live. */
	struct worker worker;
	profile_save_fn save;
	struct profile_set coming;         /* of the stretch that goes on */
	bool ended, opened, behind;        /* behind: what came was not shown, since it was paused */
	struct flame blocks;
	struct profile_moment mark;
};

static inline struct profile_view *profile_view(const struct view *v)
{
	return (struct profile_view *)(uintptr_t)v;
}

extern const struct view_ops profile_list_ops, profile_flame_ops;

/* --- the list --- */

void profile_title(const struct view *v, struct strbuf *to);
/* A figure of a node, as its column shows it. */
void profile_put_value(const struct profile_view *pv, const struct call_node *n, uint32_t column, struct strbuf *to);
/* What rows are sorted by. */
enum call_value profile_value_sorted(const struct profile_view *pv);
void profile_choose_columns(struct profile_view *pv);
/* What is done in both ways of showing it. */
bool profile_act(struct view *v, struct screen *s, enum action action);
void profile_show_list(struct profile_view *pv);
void profile_view_free(struct view *v);

/* --- a marked moment (profile_moment.c) --- */

/* This moment; the tree shows all, not the last seconds. -ENOMEM: the mark before stays. */
int profile_moment_set(struct profile_view *pv);
void profile_moment_forget(struct profile_view *pv);
/* What a column's value is since the mark, less what it was before: of times and allocations a second, of memory in bytes. */
int64_t profile_moment_change(const struct profile_view *pv, const struct call_node *n, const struct shown_value *s);
void profile_moment_title(const struct profile_view *pv, struct strbuf *to);

/* --- what comes --- */

/* The tree anew from all, or from the last seconds. -ENOMEM. */
int profile_rebuild(struct profile_view *pv);
/* Unfolds what one would unfold first. */
void profile_open_first(struct profile_view *pv);
void profile_tick(struct view *v, struct screen *s);
int profile_fd(const struct view *v);
bool profile_ready(const struct view *v);
bool profile_ended(const struct view *v);

#endif
