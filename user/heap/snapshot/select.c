#include "heap/snapshot/select.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
	const char *type;
	uint64_t size;
	uint32_t node;
};

static bool is_named(const char *name, const char *wanted)
{
	size_t n = strlen(name), len = strlen(wanted);
	char before;

	if (len > n || strcmp(name + n - len, wanted) != 0)
		return false;
	before = len < n ? name[n - len - 1] : '.';
	return before == '.' || before == ':';
}

static bool matches(const struct snapshot *s, const struct wanted *w, const bool *types,
		    uint32_t node)
{
	if (w->type)
		return types[s->types.of[node]];
	if (w->size)
		return snapshot_bytes(s, node) == w->size;
	return node == w->node;
}

static int read_number(const char *text, int base, const char *what, uint64_t *ret, struct err *e)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, base);
	if (errno || !*text || *end || *text == '-')
		return err_set(e, -EINVAL, "\"%.64s\" is no %s", text, what);
	return 0;
}

static int read_wanted(const struct snapshot *s, const char *what, struct wanted *w, struct err *e)
{
	uint64_t addr;
	uint32_t offset;

	*w = (struct wanted){ .node = BLOCK_NONE };
	if (strncmp(what, "size:", 5) == 0)
		return read_number(what + 5, 10, "size in bytes", &w->size, e);
	if (strncmp(what, "0x", 2) != 0) {
		w->type = strncmp(what, "type:", 5) == 0 ? what + 5 : what;
		return *w->type ? 0 : err_set(e, -EINVAL, "type: wants a name");
	}
	if (read_number(what, 16, "address", &addr, e) < 0)
		return -EINVAL;
	w->node = block_index_find(s->index, addr, &offset);
	return w->node == BLOCK_NONE
		       ? err_set(e, -ENOENT, "no block in use has the address %.64s", what)
		       : 0;
}

int select_objects(const struct snapshot *s, const char *what, uint32_t **ret_objects,
		   uint64_t *ret_n, struct err *e)
{
	_cleanup_(freep) uint32_t *objects = calloc(s->blocks.n + 1, sizeof(*objects));
	_cleanup_(freep) bool *types = calloc(s->types.n + 1, sizeof(*types));
	struct wanted w;
	int r;

	if (!objects || !types)
		return err_set(e, -ENOMEM, "out of memory");
	r = read_wanted(s, what, &w, e);
	if (r < 0)
		return r;
	for (uint32_t i = 1; w.type && i < s->types.n; i++)
		types[i] = is_named(s->types.type[i].name, w.type);
	*ret_n = 0;
	for (uint32_t i = 0; i < s->blocks.n; i++)
		if (matches(s, &w, types, i))
			objects[(*ret_n)++] = i;
	if (!*ret_n)
		return err_set(
			e, -ENOENT,
			"the heap has no object %.64s; memscope heap census lists the types it has",
			what);
	*ret_objects = TAKE_PTR(objects);
	return 0;
}
