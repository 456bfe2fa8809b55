#include "analyse/alloc_frames.h"

#include "analyse/frame.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

enum { FRAMES_DEEP = 16 }; /* what an allocator may call before it takes a sample */

static const char *const libraries[] = { "libjemalloc*", "libtcmalloc*", "libmimalloc*" };

static const char *const entries[] = {
	"malloc",        "calloc",      "realloc",    "reallocarray", "posix_memalign",
	"aligned_alloc", "memalign",    "valloc",     "pvalloc",      "operator new*",
	"_Znwm*",        "_Znam*",      "mallocx",    "rallocx",      "xallocx",
	"je_*",          "_rjem_*",     "jemalloc_*", "tc_*",         "tcmalloc::*",
	"TCMalloc*",     "MallocHook*", "mi_malloc*", "mi_realloc*",  "mi_calloc*",
};

static bool matches(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (fnmatch(list[i], name, 0) == 0)
			return true;
	return false;
}

/* By location: 0 unknown yet, 1 no, 2 yes. */
static bool is_allocator(struct dict *d, location_id loc, uint8_t *known)
{
	struct frame f;

	if (known[loc.ix])
		return known[loc.ix] == 2;
	f = frame_get(d, loc, frame_count(d, loc) - 1);
	known[loc.ix] = matches(libraries, sizeof(libraries) / sizeof(*libraries), f.module) ||
					matches(entries, sizeof(entries) / sizeof(*entries),
						dict_str(d, f.name))
				? 2
				: 1;
	return known[loc.ix] == 2;
}

static stack_id trimmed(struct dict *d, stack_id stack, uint8_t *known)
{
	uint32_t n = dict_stack_depth(d, stack);
	stack_id at = stack, asked = stack;

	for (uint32_t i = 0; i < n && i < FRAMES_DEEP; i++) {
		location_id leaf = dict_stack_leaf(d, at);

		at = dict_stack_parent(d, at);
		if (is_allocator(d, leaf, known) && at.ix)
			asked = at;
	}
	return asked;
}

int alloc_frames_left_off(const struct profile *p, struct profile **ret_asked)
{
	struct dict *d = profile_dict(p);
	_cleanup_(freep) uint8_t *known = calloc(dict_location_count(d) + 1ul, 1);
	_cleanup_(profile_freep) struct profile *new =
		profile_new(d, profile_type(p, 0), profile_n_types(p));

	if (!known || !new || profile_set_meta(new, profile_get_meta(p)) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		if (profile_add_sample(new, trimmed(d, s.stack, known), s.labels, &s, NULL, 1) < 0)
			return -ENOMEM;
	}
	if (dict_oom(d))
		return -ENOMEM;
	*ret_asked = TAKE_PTR(new);
	return 0;
}

int alloc_frames_trim(struct profile **p)
{
	struct profile *asked;
	int r = alloc_frames_left_off(*p, &asked);

	if (r == 0) {
		profile_free(*p);
		*p = asked;
	}
	return r;
}
