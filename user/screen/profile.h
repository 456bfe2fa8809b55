/*
 * The view of a profile: its call tree with what each node takes of each resource, live or from files; and the same as a
 * flame graph.
 */
#ifndef MEMSCOPE_SCREEN_PROFILE_H
#define MEMSCOPE_SCREEN_PROFILE_H

#include "base/err.h"
#include "screen/call_tree.h"
#include "screen/screen.h"

enum { PROFILES_MAX = 8 };

/* Profiles that are shown together, as a run writes them. */
struct profile_set {
	struct {
		char name[32]; /* "oncpu" */
		struct profile *profile;
	} kinds[PROFILES_MAX];
	uint32_t n;
	int64_t duration_ns;
};

/* Adds a profile's samples, under its name; what is live in it (inuse_…) replaces what was. -ENOMEM. */
int profile_set_add(struct profile_set *set, const char *name, const struct profile *p);
/* Adds all to a tree but what `without` has (CALL_BIT()). -ENOMEM. */
int profile_set_show(const struct profile_set *set, struct call_tree *t, unsigned without);
void profile_set_fini(struct profile_set *set);

/* Those of files: `set` and `d`, which it is in, become the view's. NULL when out of memory; they are freed. */
struct view *profile_view_of(struct dict *d, struct profile_set *set, const char *title);

/* Writes the profiles of a view into a directory: its path, or a sentence why not. */
typedef int (*profile_save_fn)(const struct profile_set *set, const char *title, char *ret_path, size_t cap,
			       struct err *e);

/*
 * Live: `work` runs in a child (screen/worker.h) and sends profiles. -errno with a
 * sentence.
 */
int profile_view_live(int (*work)(void *ctx, int in, int out), void *ctx, const struct screen_target *t,
		      profile_save_fn save, struct view **ret_view, struct err *e);

#endif
