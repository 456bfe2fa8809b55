#include "collect/stacks/stacks_parts.h"

#include <stdlib.h>

struct user_stacks *user_stacks_new(const struct user_stacks_env *env)
{
	struct user_stacks *st = calloc(1, sizeof(*st));

	if (st)
		st->env = *env;
	return st;
}

void user_stacks_free(struct user_stacks *st)
{
	if (!st)
		return;
	langs_close(st);
	tables_close(st);
	deferred_free(st);
	incomplete_free(st);
	free(st);
}

int user_stacks_open(struct user_stacks *st, struct session *s, struct drain *d, struct err *e)
{
	int rc;

	st->session = s;
	drain_on(d, DRAIN_DEFERRED, on_deferred, st);
	drain_on(d, DRAIN_CHAIN, on_chain, st);
	rc = tables_open(st, e);
	return rc < 0 ? rc : langs_open(st, e);
}
