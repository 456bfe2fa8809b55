/* What a condition selects of a snapshot that a test made up. */
#ifndef MEMSCOPE_TESTS_SELECT_FIXTURE_H
#define MEMSCOPE_TESTS_SELECT_FIXTURE_H

#include "heap/snapshot/select.h"
#include "snapshot_fixture.h"

/* `want`: the nodes, a digit each. */
static inline void assert_selected(const struct heap *h, const char *what, const char *want)
{
	_cleanup_(freep) uint32_t *objects = NULL;
	char got[N + 1] = "";
	struct err e = { 0 };
	uint64_t n;

	if (select_objects(&h->s, what, &objects, &n, &e) < 0)
		fail_msg("%s: %s", what, e.msg);
	for (uint64_t i = 0; i < n; i++)
		got[i] = (char)('0' + objects[i]);
	if (strcmp(got, want) != 0)
		fail_msg("%s means %s, not %s", what, got, want);
}

#endif
