/*
 * CPython: struct _gc_runtime_state of each interpreter (Include/internal/pycore_gc.h), up to 3.8 of the runtime.
 *
 *   generations[3] at 24: {next:8 prev:8 threshold:4 count:4}    generation0 at 96: the address of the first of them
 *   generation_stats[3] at 128: {collections:8 collected:8 uncollectable:8}    collecting:4 at 200
 *
 * That it is so is seen by generation0. 3.14 has no such generations.
 */
#include "base/cleanup.h"
#include "elf/elf_file.h"
#include "heap/gc/gc.h"
#include "heap/image_cell.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	GENERATIONS = 3,
	GENERATIONS_AT = 24,
	FIRST_AT = 96,
	STATS_AT = 128,
	STATS_BYTES = 24,
	COLLECTING_AT = GC_PYTHON_COLLECTING,
	STATE_BYTES = 208,
	INTERPRETERS_MAX = GC_PYTHON_INTERPRETERS,
	PATH_LEN = 1024,
	IMAGES_MAX = 64,
};

/* Bytes from where to where; compiled from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0. */
static const struct layout {
	uint16_t runtime_gc;      /* of _PyRuntime; 0: each interpreter has one         */
	uint16_t interpreters;    /* of _PyRuntime: the address of the first            */
	uint16_t next, interp_gc; /* of an interpreter                                */
} layouts[] = {
	{ 344, 32, 0, 0 },      /* 3.8        */
	{ 0, 32, 0, 616 },      /* 3.9, 3.10  */
	{ 0, 40, 0, 648 },      /* 3.11       */
	{ 0, 40, 0, 112 },      /* 3.12       */
	{ 0, 632, 7264, 7400 }, /* 3.13       */
};

struct state {
	pid_t pid;
	uint64_t runtime; /* the address of _PyRuntime */
	const struct layout *layout;
};

/* --- where it is --- */

struct image {
	uint64_t start, end, file_off;
	char path[PATH_LEN];
};

struct images {
	struct image *rows;
	uint32_t n;
	bool first; /* the program itself has been seen */
};

/* The program, and libraries that may be CPython's. */
static int on_map(void *ctx, const struct proc_map *m)
{
	struct images *x = ctx;
	struct image *rows;

	if (!(m->perms & PROC_MAP_EXEC) || m->path[0] != '/' || x->n == IMAGES_MAX ||
	    strlen(m->path) >= PATH_LEN || (x->first && !strstr(m->path, "python")))
		return 0;
	x->first = true;
	rows = reallocarray(x->rows, x->n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	x->rows = rows;
	rows[x->n] = (struct image){ m->start, m->end, m->file_off, "" };
	strcpy(rows[x->n++].path, m->path);
	return 0;
}

/* 0: it has none. */
static uint64_t runtime_in(pid_t pid, const struct image *image)
{
	static const char *const names[] = { "_PyRuntime", NULL };
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_segment *segs;
	_cleanup_(closep) int fd = -1;
	uint64_t found;
	uint32_t n;

	fd = ns_open_mapped(pid, image->start, image->end);
	if (fd < 0)
		fd = ns_open_seen(pid, image->path);
	found = fd < 0 ? 0 : heap_image_variable(fd, image->path, names);
	if (!found || elf_file_open(fd, image->path, &elf, NULL) < 0)
		return 0;
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++)
		if (segs[i].flags & 1 /* PF_X */ &&
		    image->file_off <= segs[i].off + segs[i].filesz &&
		    segs[i].off < image->file_off + (image->end - image->start))
			return image->start - image->file_off - (segs[i].vaddr - segs[i].off) +
			       found;
	return 0;
}

static uint64_t find_runtime(pid_t pid)
{
	struct images x = { 0 };
	uint64_t at = 0;

	proc_maps_each(pid, on_map, &x, NULL);
	for (uint32_t i = 0; i < x.n && !at; i++)
		at = runtime_in(pid, &x.rows[i]);
	free(x.rows);
	return at;
}

/* --- what it says --- */

static bool word(const struct state *s, uint64_t addr, uint64_t *ret)
{
	return gc_memory(s->pid, addr, ret, 8);
}

/* false: that is no such struct. */
static bool add_state(const struct state *s, uint64_t at, struct gc_counters *c)
{
	uint8_t bytes[STATE_BYTES];
	uint64_t first, count[GENERATIONS];
	uint32_t collecting;

	if (!gc_memory(s->pid, at, bytes, sizeof(bytes)))
		return false;
	memcpy(&first, bytes + FIRST_AT, 8);
	if (first != at + GENERATIONS_AT)
		return false;
	for (int i = 0; i < GENERATIONS; i++)
		memcpy(&count[i], bytes + STATS_AT + i * STATS_BYTES, 8);
	memcpy(&collecting, bytes + COLLECTING_AT, 4);
	for (int i = 0; i < GENERATIONS; i++) {
		c->kinds[i].count += count[i];
		c->count += count[i];
	}
	c->major += count[GENERATIONS - 1];
	c->collecting |= collecting == 1;
	return true;
}

static int read_state(void *state, struct gc_counters *c)
{
	const struct state *s = state;
	const struct layout *l = s->layout;
	uint64_t interp;
	uint32_t n = 0;

	c->n_kinds = GENERATIONS;
	for (int i = 0; i < GENERATIONS; i++)
		snprintf(c->kinds[i].name, GC_KIND_NAME, "generation %d", i);
	c->looks = true;
	if (l->runtime_gc)
		return add_state(s, s->runtime + l->runtime_gc, c) ? 0 : -ESRCH;
	if (!word(s, s->runtime + l->interpreters, &interp))
		return -ESRCH;
	for (; interp && n < INTERPRETERS_MAX; n++)
		if (!add_state(s, interp + l->interp_gc, c) || !word(s, interp + l->next, &interp))
			return n ? -EAGAIN : -ESRCH;
	return n ? 0 : -EAGAIN;
}

static int open_state(pid_t pid, void **ret_state, bool *ret_untested)
{
	_cleanup_(freep) struct state *s = calloc(1, sizeof(*s));
	struct gc_counters c;

	if (!s)
		return -ENOMEM;
	s->pid = pid;
	s->runtime = find_runtime(pid);
	for (size_t i = 0; s->runtime && i < sizeof(layouts) / sizeof(*layouts); i++) {
		s->layout = &layouts[i];
		c = (struct gc_counters){ 0 };
		if (read_state(s, &c) == 0) {
			*ret_untested = false;
			*ret_state = TAKE_PTR(s);
			return 0;
		}
	}
	/* No version that is known, or it has not begun yet. */
	return -ENOENT;
}

/* _Py_DebugOffsets (Include/internal/pycore_debug_offsets.h): "xdebugpy", version, free_threaded. */
static bool is_free_threaded(const struct state *s)
{
	uint64_t words[3];

	return gc_memory(s->pid, s->runtime, words, sizeof(words)) &&
	       memcmp(&words[0], "xdebugpy", 8) == 0 && words[2] == 1;
}

/* false: it is no state of this layout. */
static bool find_states(const struct state *s, struct gc_python *found)
{
	const struct layout *l = s->layout;
	struct gc_counters c = { 0 };
	uint64_t interp;

	found->n = 0;
	if (!word(s, s->runtime + l->interpreters, &interp))
		return false;
	for (; interp && found->n < INTERPRETERS_MAX; found->n++) {
		uint64_t at = l->runtime_gc ? s->runtime + l->runtime_gc : interp + l->interp_gc;

		if (!add_state(s, at, &c))
			break;
		found->interp[found->n] = interp;
		found->state[found->n] = at;
		if (!word(s, interp + l->next, &interp))
			interp = 0;
	}
	return found->n > 0;
}

bool gc_python_find(pid_t pid, struct gc_python *ret)
{
	struct state s = { .pid = pid, .runtime = find_runtime(pid) };

	*ret = (struct gc_python){ 0 };
	if (!s.runtime)
		return false;
	ret->free_threaded = is_free_threaded(&s);
	if (ret->free_threaded)
		return true;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		s.layout = &layouts[i];
		if (find_states(&s, ret))
			return true;
	}
	return false;
}

static const char *missing(const void *state)
{
	(void)state;
	return "";
}

const struct gc_source gc_python = {
	.name = "CPython",
	.open = open_state,
	.close = free,
	.read = read_state,
	.missing = missing,
};
