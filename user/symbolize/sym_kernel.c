/*
 * Names of the running kernel. Only for profiles taken in this boot: addresses move at the next.
 */
#include "symbolize/kallsyms.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <string.h>

static int open_kernel(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct kallsyms *k;
	int r = kallsyms_load("/proc/kallsyms", &k);

	if (r < 0) {
		*ret_why = r == -EPERM ? "kernel addresses are hidden (kptr_restrict)"
				       : "/proc/kallsyms cannot be read";
		return r;
	}
	*ret_state = k;
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	const char *name = kallsyms_find(state, vaddr);

	if (!name)
		return false;
	return sym_answer_name(ret_answer, name, strlen(name), NULL);
}

static const char *why_not(const void *state)
{
	return "not in /proc/kallsyms (a module that was unloaded?)";
}

static void close_kernel(void *state)
{
	kallsyms_free(state);
}

const struct resolver sym_kernel = {
	.name = "kernel",
	.kinds = RESOLVES(MODULE_KERNEL),
	.open = open_kernel,
	.find = find,
	.why_not = why_not,
	.close = close_kernel,
};
