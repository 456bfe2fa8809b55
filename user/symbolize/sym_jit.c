/*
 * Names of code that a just-in-time compiler made: from its jitdump, with lines, or its perf map.
 */
#include "symbolize/jitdump.h"
#include "symbolize/perf_map.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <string.h>

static int open_file(struct sym_image *img, enum jit_file what, const char **ret_why)
{
	const struct symbolize_opts *o = img->opts;
	int fd = o->open_jit ? o->open_jit(o->ctx, img->module, what) : -ENOENT;

	if (fd == -EPERM)
		*ret_why = what == JIT_DUMP ? "its jitdump belongs to another user"
					    : "its perf map belongs to another user";
	else if (fd < 0)
		*ret_why = img->jitdump_problem
				   ? img->jitdump_problem
				   : "memory without a file (generated code without a perf map?)";
	return fd;
}

static int open_perf_map(struct sym_image *img, void **ret_state, const char **ret_why)
{
	_cleanup_(closep) int fd = open_file(img, JIT_PERF_MAP, ret_why);
	struct perf_map *map;
	int r;

	if (fd < 0)
		return fd;
	r = perf_map_read(fd, img->vaddrs, img->n_vaddrs, &map);
	if (r < 0) {
		*ret_why = r == -ENOENT ? "not in its perf map" : "its perf map cannot be read";
		return r;
	}
	*ret_state = map;
	return 0;
}

static bool find_perf_map(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	size_t len;
	const char *name = perf_map_find(state, vaddr, &len);

	return name && sym_answer_name(ret_answer, name, len, NULL);
}

static const char *why_not(const void *state)
{
	return "not in its perf map";
}

static void close_perf_map(void *state)
{
	perf_map_free(state);
}

static int open_jitdump(struct sym_image *img, void **ret_state, const char **ret_why)
{
	_cleanup_(closep) int fd = open_file(img, JIT_DUMP, ret_why);
	struct jitdump *dump;
	int r;

	if (fd == -EPERM)
		img->jitdump_problem = *ret_why;
	if (fd < 0)
		return fd;
	r = jitdump_read(fd, img->vaddrs, img->n_vaddrs, &dump);
	if (r < 0) {
		*ret_why = img->jitdump_problem =
			r == -ENOENT ? "not in its jitdump" : "its jitdump cannot be read";
		return r;
	}
	*ret_state = dump;
	return 0;
}

static bool find_jitdump(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	struct jit_place place;

	if (jitdump_find(state, vaddr, &place) < 0)
		return false;
	sym_answer_name(ret_answer, place.name, strlen(place.name), NULL);
	ret_answer->sure = true;
	ret_answer->frames[0].file = place.file;
	ret_answer->frames[0].line = place.line;
	return true;
}

static void close_jitdump(void *state)
{
	jitdump_free(state);
}

const struct resolver sym_jitdump = {
	.name = "jitdump",
	.kinds = RESOLVES(MODULE_ANON),
	.role = SYM_LINES,
	.open = open_jitdump,
	.find = find_jitdump,
	.why_not = why_not,
	.close = close_jitdump,
};

const struct resolver sym_perf_map = {
	.name = "perf-map",
	.kinds = RESOLVES(MODULE_ANON),
	.role = SYM_NAMES,
	.open = open_perf_map,
	.find = find_perf_map,
	.why_not = why_not,
	.close = close_perf_map,
};
