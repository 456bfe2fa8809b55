/*
 * Profiles for tests, written as people write stacks: "comm;main;parse_[i];sys_read_[k]".
 * The first word is the comm label ("" for none); frames follow root first. A frame ending in
 * _[k] is in [kernel], one in _[p] of Python, one in _[i] is inlined into the frame before it, "lib+0x12" is an address
 * of /usr/lib/lib without a name, "?" an address that no mapping covers, "//anon" a JIT's.
 */
#ifndef MEMSCOPE_TESTS_PROFILE_FIXTURE_H
#define MEMSCOPE_TESTS_PROFILE_FIXTURE_H

#include "model/profile.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
	struct dict *d;
	struct profile *p;
	uint64_t vaddr;
};

static inline struct fixture fixture_new(const struct value_type *types, uint32_t n)
{
	struct fixture f = { .d = dict_new(), .vaddr = 0x1000 };

	f.p = profile_new(f.d, types, n);
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	profile_free(f->p);
	dict_free(f->d);
}

static inline module_id fixture_module(struct fixture *f, enum module_kind kind, const char *path)
{
	struct module m = { .kind = kind, .path = dict_string(f->d, path) };

	return dict_module(f->d, &m);
}

/* `names`: a location's functions separated by '\n', outermost first. */
static inline location_id fixture_location(struct fixture *f, char *names)
{
	struct line lines[8] = { 0 };
	uint32_t n = 0;
	size_t len = strlen(names);
	char *plus = strstr(names, "+0x"), *save = NULL;
	location_id loc;
	char key[512];

	if (strcmp(names, "?") == 0)
		return dict_location(f->d, (module_id){ 0 }, 0xdead);
	if (strcmp(names, "//anon") == 0)
		return dict_location(f->d, fixture_module(f, MODULE_ANON, names), 0xbeef);
	if (plus) {
		snprintf(key, sizeof(key), "/usr/lib/%.*s", (int)(plus - names), names);
		return dict_location(f->d, fixture_module(f, MODULE_ELF, key), strtoull(plus + 1, NULL, 16));
	}
	/* The address follows from the names, so that equal frames are equal locations. */
	uint64_t vaddr = 5381;

	for (const char *c = names; *c; c++)
		vaddr = vaddr * 33 + (unsigned char)*c;
	if (len > 4 && strcmp(names + len - 4, "_[k]") == 0) {
		names[len - 4] = 0;
		loc = dict_location(f->d, fixture_module(f, MODULE_KERNEL, "[kernel]"), vaddr);
	} else if (len > 4 && strcmp(names + len - 4, "_[p]") == 0) {
		names[len - 4] = 0;
		loc = dict_location(f->d, fixture_module(f, MODULE_LANG, "[Python]"), vaddr);
	} else {
		loc = dict_location(f->d, fixture_module(f, MODULE_ELF, "/usr/bin/prog"), vaddr);
	}
	for (char *w = strtok_r(names, "\n", &save); w && n < 8; w = strtok_r(NULL, "\n", &save))
		lines[n++].function = dict_string(f->d, w);
	for (uint32_t i = 0; i < n / 2; i++) {
		struct line t = lines[i];

		lines[i] = lines[n - 1 - i];
		lines[n - 1 - i] = t;
	}
	dict_location_name(f->d, loc, lines, n);
	return loc;
}

static inline void fixture_add(struct fixture *f, const char *stack, const int64_t *values)
{
	char *copy = strdup(stack), *rest = copy, *word;
	labels_id labels = { 0 };
	char group[1024] = "";
	stack_id s = { 0 };

	word = strsep(&rest, ";");
	if (*word) {
		struct label l = { .key = dict_string(f->d, "comm"), .str = dict_string(f->d, word) };

		labels = dict_labels(f->d, &l, 1);
	}
	while ((word = strsep(&rest, ";"))) {
		size_t len = strlen(word);

		if (len > 4 && strcmp(word + len - 4, "_[i]") == 0) {
			word[len - 4] = 0;
			strcat(strcat(group, "\n"), word);
			continue;
		}
		if (*group)
			s = dict_stack_push(f->d, s, fixture_location(f, group));
		snprintf(group, sizeof(group), "%s", word);
	}
	if (*group)
		s = dict_stack_push(f->d, s, fixture_location(f, group));
	profile_add(f->p, s, labels, values);
	free(copy);
}

static inline void fixture_add1(struct fixture *f, const char *stack, int64_t value)
{
	fixture_add(f, stack, &value);
}

#endif
