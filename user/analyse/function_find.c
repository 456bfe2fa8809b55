#include "analyse/function_find.h"

#include "analyse/frame_tree.h"
#include "base/strbuf.h"

#include <errno.h>
#include <string.h>

/* "parse" is parse, and parse(char const*) */
static bool is_name_of(const char *function, const char *name)
{
	size_t len = strlen(name);

	return strncmp(function, name, len) == 0 && (!function[len] || function[len] == '(');
}

/* What of it is exact is more than what has it as a part. */
struct found {
	const char *name, *others[4];
	uint32_t n;
	bool exact;
};

static void found_add(struct found *f, const char *function, bool exact)
{
	if (exact && !f->exact)
		*f = (struct found){ .exact = true };
	if (f->n && f->name == function) /* interned */
		return;
	for (uint32_t i = 0; i < f->n && i < 4; i++)
		if (f->others[i] == function)
			return;
	if (!f->n)
		f->name = function;
	if (f->n < 4)
		f->others[f->n] = function;
	f->n++;
}

static void find_in_tree(const struct frame_tree *t, const char *name, struct found *f)
{
	for (uint32_t i = 1; i < t->n_nodes; i++) {
		const char *function = t->nodes[i].name;

		if (strcmp(function, name) == 0) {
			*f = (struct found){ .name = function, .n = 1, .exact = true };
			return;
		}
		if (is_name_of(function, name))
			found_add(f, function, true);
		else if (!f->exact && strstr(function, name))
			found_add(f, function, false);
	}
}

int function_find(const struct profile *p, const char *name, const char **ret_name, struct err *e)
{
	_cleanup_(frame_tree_freep) struct frame_tree *tree = NULL;
	struct strbuf list = { 0 };
	struct found f = { 0 };
	int r = 0;

	/* Of all types: a function may have none of one of them. */
	for (uint32_t t = 0; t < profile_n_types(p) && !(f.n == 1 && f.exact); t++) {
		frame_tree_free(tree);
		tree = NULL;
		if (frame_tree_build(p, &(struct frame_tree_opts){ .type = t }, &tree) < 0)
			return err_set(e, -ENOMEM, "out of memory for a call tree");
		find_in_tree(tree, name, &f);
	}
	if (!f.n)
		return err_set(e, -ENOENT, "no function of this profile is named \"%.200s\"", name);
	if (f.n > 1) {
		for (uint32_t i = 0; i < f.n && i < 4; i++) {
			strbuf_puts(&list, i ? ", " : "");
			strbuf_add_clean(&list, f.others[i], strnlen(f.others[i], 60));
		}
		r = err_set(e, -EINVAL, "several functions have \"%.100s\" in their name: %s%s",
			    name, list.s ? list.s : "", f.n > 4 ? ", …" : "");
	} else {
		*ret_name = f.name;
	}
	strbuf_free(&list);
	return r;
}
