#include "heap/snapshot/anchor.h"

#include "base/large.h"
#include "heap/snapshot/query.h"
#include "heap/snapshot/scan.h"

#include <errno.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256 };

struct anchor {
	const char *text;
	uint64_t from, end; /* 0: it is a name */
	anchor_name_fn name;
	void *ctx;
};

static int read_anchor(const char *text, struct anchor *a, struct err *e)
{
	const char *plus = strchr(text, '+');
	uint64_t len;
	char *end;

	a->text = text;
	if (strncmp(text, "0x", 2) != 0)
		return *text ? 0 : err_set(e, -EINVAL, "--anchor wants a name or 0xADDRESS+BYTES");
	errno = 0;
	a->from = strtoull(text, &end, 16);
	if (errno || end != plus)
		return err_set(e, -EINVAL, "--anchor %.64s: 0xADDRESS+BYTES is an anchor", text);
	len = strtoull(plus + 1, &end, 0);
	if (errno || *end || end == plus + 1 || !len || len > UINT64_MAX - a->from)
		return err_set(e, -EINVAL, "--anchor %.64s: 0xADDRESS+BYTES is an anchor", text);
	a->end = a->from + len;
	return 0;
}

static bool is_there(const struct anchor *a, const struct snapshot_root *root)
{
	char name[NAME_MAX_BYTES];

	if (a->end)
		return root->kind != SNAPSHOT_ROOT_REGISTER && root->at >= a->from &&
		       root->at < a->end;
	return a->name(a->ctx, root, name, sizeof(name)) && query_is_named(name, a->text);
}

static struct snapshot_root anchored(const struct anchor *a, uint32_t node, uint64_t at)
{
	return (struct snapshot_root){
		.node = node, .kind = SNAPSHOT_ROOT_ANCHOR, .at = at, .name = a->text
	};
}

/* Nodes that have a byte of [a->from, a->end), from *ret_first on; how many. */
static uint64_t nodes_there(const struct snapshot *s, const struct anchor *a, uint64_t *ret_first)
{
	uint64_t first, n = 0;

	if (!a->end)
		return 0;
	first = heap_blocks_find(&s->blocks, a->from);
	if (first &&
	    s->blocks.rows[first - 1].addr + snapshot_bytes(s, (uint32_t)first - 1) > a->from)
		first--;
	while (first + n < s->blocks.n && s->blocks.rows[first + n].addr < a->end)
		n++;
	*ret_first = first;
	return n;
}

int snapshot_anchor(struct snapshot *s, const char *anchor, anchor_name_fn name, void *ctx,
		    struct err *e)
{
	struct anchor a = { .name = name, .ctx = ctx };
	uint64_t first = 0, more, found = 0;
	struct snapshot_root *roots;
	int r = read_anchor(anchor, &a, e);

	if (r < 0)
		return r;
	more = nodes_there(s, &a, &first);
	roots = large_alloc(s->n_roots + more + 1, sizeof(*roots));
	if (!roots)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i < s->n_roots; i++) {
		bool there = is_there(&a, &s->roots[i]);

		roots[i] = there ? anchored(&a, s->roots[i].node, s->roots[i].at) : s->roots[i];
		found += there;
	}
	for (uint64_t i = 0; i < more; i++)
		roots[s->n_roots + i] =
			anchored(&a, (uint32_t)(first + i), s->blocks.rows[first + i].addr);
	if (!(found + more)) {
		large_free(roots);
		return err_set(
			e, -ENOENT,
			"--anchor %.128s: nothing of that name or at that place refers to the heap",
			anchor);
	}
	large_free(s->roots);
	s->roots = roots;
	s->n_roots += more;
	return scan_sort_roots(s) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}
