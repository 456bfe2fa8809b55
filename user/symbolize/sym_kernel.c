/*
 * Names of the running kernel. Only for profiles taken in this boot: addresses move at the next. Nearly always what is
 * kept of this boot has them all.
 */
#include "symbolize/kallsyms.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
	struct kallsyms *kept; /* the kernel's own functions; NULL: not known … */
	struct kallsyms
		*all; /* … and with those of modules and BPF programs: read when one is asked for */
	bool tried;
};

static int load_all(struct kernel *k)
{
	int r = k->tried ? -ENOENT : kallsyms_load("/proc/kallsyms", &k->all);

	k->tried = true;
	if (r == 0 && !k->kept)
		kallsyms_keep(k->all);
	return r;
}

static int open_kernel(struct sym_image *img, void **ret_state, const char **ret_why)
{
	struct kernel *k = calloc(1, sizeof(*k));
	int r = k ? kallsyms_kept(&k->kept) : -ENOMEM;

	if (r == -ENOENT)
		r = load_all(k);
	if (r < 0) {
		*ret_why = r == -EPERM ? "kernel addresses are hidden (kptr_restrict)"
				       : "/proc/kallsyms cannot be read";
		free(k);
		return r;
	}
	*ret_state = k;
	return 0;
}

static bool find(void *state, uint64_t vaddr, struct sym_answer *ret_answer)
{
	struct kernel *k = state;
	const struct kallsyms *of = k->kept && kallsyms_covers(k->kept, vaddr) ? k->kept : k->all;
	const char *name;

	if (!of && load_all(k) == 0)
		of = k->all;
	name = of ? kallsyms_find(of, vaddr) : NULL;
	return name && sym_answer_name(ret_answer, name, strlen(name), NULL);
}

static const char *why_not(const void *state)
{
	return "not in /proc/kallsyms (a module that was unloaded?)";
}

static void close_kernel(void *state)
{
	struct kernel *k = state;

	kallsyms_free(k->kept);
	kallsyms_free(k->all);
	free(k);
}

const struct resolver sym_kernel = {
	.name = "kernel",
	.kinds = RESOLVES(MODULE_KERNEL),
	.open = open_kernel,
	.find = find,
	.why_not = why_not,
	.close = close_kernel,
};
