/*
 * Names of the running kernel. Only for profiles taken in this boot: addresses move at the next. Nearly always what is
 * kept of this boot, and of the modules that are loaded, has them all.
 */
#include "symbolize/kallsyms.h"
#include "symbolize/kernel_modules.h"
#include "symbolize/resolver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
	struct kallsyms *kept;    /* the kernel's own functions; NULL: not known … */
	struct kallsyms *modules; /* … those of its modules, the same …  */
	struct kallsyms *
		all; /* … and all, of BPF programs too: read when one is asked for that is in neither */
	bool tried, tried_modules;
};

static int load_all(struct kernel *k)
{
	uint64_t before, after;
	bool signs;
	int r;

	if (k->tried)
		return -ENOENT;
	k->tried = true;
	signs = !k->modules && kernel_modules_now(&before);
	r = kallsyms_load("/proc/kallsyms", &k->all);
	if (r == 0 && !k->kept)
		kallsyms_keep(k->all);
	/* While they were read none was loaded or removed. */
	if (r == 0 && signs && kernel_modules_now(&after) && before == after)
		kallsyms_modules_keep(k->all, before);
	return r;
}

static const char *find_in_module(struct kernel *k, uint64_t vaddr)
{
	uint64_t sign;

	if (!k->tried_modules && kernel_modules_now(&sign))
		kallsyms_modules_kept(sign, &k->modules);
	k->tried_modules = true;
	return k->modules ? kallsyms_find(k->modules, vaddr) : NULL;
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
	const char *name = of ? NULL : find_in_module(k, vaddr);

	if (!of && !name && load_all(k) == 0)
		of = k->all;
	if (of)
		name = kallsyms_find(of, vaddr);
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
	kallsyms_free(k->modules);
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
