#include "run/serve/wait_kinds.h"

#include "symbolize/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is kept of this boot is borrowed from a file, and takes no memory of ours. */
bool wait_kinds_known(struct wait_kinds *w)
{
	struct kallsyms *all;

	if (w->tried)
		return w->kernel != NULL;
	w->tried = true;
	w->name = kallsyms_find;
	if (kallsyms_kept(&w->kernel) == 0)
		return true;
	if (kallsyms_load("/proc/kallsyms", &all) < 0)
		return false;
	if (kallsyms_keep(all) < 0 || kallsyms_kept(&w->kernel) < 0)
		w->kernel = all;
	else
		kallsyms_free(all);
	return true;
}

static int reach(struct wait_kinds *w, uint32_t stack)
{
	uint32_t n = stack + stack / 2 + 1024;
	uint8_t *more;

	if (stack < w->n)
		return 0;
	more = realloc(w->by_stack, n);
	if (!more)
		return -ENOMEM;
	memset(more + w->n, 0, n - w->n);
	w->by_stack = more;
	w->n = n;
	return 0;
}

static enum wait_kind look_up(const struct wait_kinds *w, const struct dict *d, stack_id stack)
{
	for (; stack.ix; stack = dict_stack_parent(d, stack)) {
		const struct location *at = dict_location_get(d, dict_stack_leaf(d, stack));
		enum wait_kind kind;
		const char *name;

		if (dict_module_get(d, at->module)->kind != MODULE_KERNEL)
			break;
		name = w->name(w->kernel, at->vaddr);
		kind = name ? wait_kind_of(name) : WAIT_OTHER;
		if (kind != WAIT_OTHER)
			return kind;
	}
	return WAIT_OTHER;
}

int wait_kinds_of(struct wait_kinds *w, const struct dict *d, stack_id stack,
		  enum wait_kind *ret_kind)
{
	if (reach(w, stack.ix) < 0)
		return -ENOMEM;
	if (!w->by_stack[stack.ix])
		w->by_stack[stack.ix] = (uint8_t)(look_up(w, d, stack) + 1);
	*ret_kind = (enum wait_kind)(w->by_stack[stack.ix] - 1);
	return 0;
}

void wait_kinds_fini(struct wait_kinds *w)
{
	kallsyms_free(w->kernel);
	free(w->by_stack);
	*w = (struct wait_kinds){ 0 };
}
