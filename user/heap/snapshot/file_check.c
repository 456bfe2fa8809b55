#include "base/hash.h"
#include "heap/snapshot/file_parts.h"

#include <errno.h>
#include <string.h>

/* Bytes of a record of each kind. */
static const uint32_t records[FILE_KINDS] = {
	[FILE_FACTS] = sizeof(struct file_facts),
	[FILE_STRINGS] = 1,
	[FILE_LABELS] = sizeof(struct file_label),
	[FILE_USES] = sizeof(struct file_use),
	[FILE_TYPES] = sizeof(struct file_type),
	[FILE_BLOCKS] = sizeof(struct heap_block),
	[FILE_TYPE_OF] = 4,
	[FILE_OBJECT] = 1,
	[FILE_FIRST] = 8,
	[FILE_EDGES] = sizeof(struct graph_edge),
	[FILE_REVERSE_FIRST] = 8,
	[FILE_REVERSE_EDGES] = sizeof(struct graph_edge),
	[FILE_ROOTS] = sizeof(struct file_root),
	[FILE_LINK_NAMES] = sizeof(struct file_link_name),
	[FILE_FIELD_NAMES] = sizeof(struct file_link_name),
	[FILE_THREADS] = sizeof(struct file_thread),
	[FILE_MAPS] = sizeof(struct file_map),
	[FILE_REGISTERS] = 8 * STOP_REGS_MAX,
	[FILE_OWNERS] = sizeof(struct file_owner),
	[FILE_PARTS] = sizeof(struct heap_part),
	[FILE_UNKNOWN] = sizeof(struct heap_range),
	[FILE_BROUGHT_BY] = 1,
	[FILE_LENGTHS] = 4,
	[FILE_TRACE] = sizeof(struct file_trace),
	[FILE_SITES] = sizeof(struct site),
	[FILE_STACKS] = sizeof(struct site_stack),
	[FILE_STACK_FRAMES] = sizeof(struct site),
	[FILE_STACK_OF] = 4,
	[FILE_AGES] = 4,
	[FILE_SAID] = 4,
	[FILE_COLLECTIONS] = sizeof(struct file_collection),
	[FILE_COLLECTION_OF] = 4,
	[FILE_RUNS] = sizeof(struct file_run),
	[FILE_FRAMES] = 8,
	[FILE_CONTENTS] = 1,
};

static const uint8_t root_numbers[SNAPSHOT_ROOT_KINDS] = {
	[SNAPSHOT_ROOT_MODULE] = 1,  [SNAPSHOT_ROOT_GLOBAL] = 2,   [SNAPSHOT_ROOT_TLS] = 3,
	[SNAPSHOT_ROOT_STACK] = 4,   [SNAPSHOT_ROOT_REGISTER] = 5, [SNAPSHOT_ROOT_MAPPING] = 6,
	[SNAPSHOT_ROOT_CAF] = 7,     [SNAPSHOT_ROOT_GREEN] = 8,    [SNAPSHOT_ROOT_STABLE] = 9,
	[SNAPSHOT_ROOT_ANCHOR] = 10, [SNAPSHOT_ROOT_FRAME] = 11,
};

static const uint8_t type_numbers[TYPE_WAYS] = {
	[TYPE_CPYTHON] = 1, [TYPE_RTTI] = 2,        [TYPE_GHC] = 3,           [TYPE_COUNTED] = 4,
	[TYPE_SHAPE] = 5,   [TYPE_TEXT] = 6,        [TYPE_CPYTHON_TABLE] = 7, [TYPE_RUST] = 8,
	[TYPE_DEBUG] = 9,   [TYPE_DEBUG_SIZE] = 10, [TYPE_MEMBER] = 11,
};

uint32_t file_root_number(uint32_t kind)
{
	return kind < SNAPSHOT_ROOT_KINDS && root_numbers[kind]
		       ? root_numbers[kind]
		       : root_numbers[SNAPSHOT_ROOT_MAPPING];
}

uint32_t file_type_number(uint32_t by)
{
	return by < TYPE_WAYS ? type_numbers[by] : 0;
}

static int index_of(const uint8_t *numbers, int n, uint32_t number)
{
	for (int i = 0; i < n; i++)
		if (numbers[i] == number)
			return i;
	return -1;
}

int file_root_kind(uint32_t number)
{
	return number ? index_of(root_numbers, SNAPSHOT_ROOT_KINDS, number) : -1;
}

int file_type_by(uint32_t number)
{
	return index_of(type_numbers, TYPE_WAYS, number);
}

int file_damaged(const struct snapshot_stored *f, struct err *e, const char *what)
{
	return err_set(e, -EBADMSG, "%s: a damaged snapshot: %s", f->path, what);
}

/* --- the table --- */

static int read_section(struct snapshot_stored *f, const struct file_section *s, struct err *e)
{
	if (s->at % FILE_ALIGN || s->at > f->len || s->bytes > f->len - s->at)
		return file_damaged(f, e, "a section lies outside of the file");
	if (!s->kind || s->kind >= FILE_KINDS)
		return 0;
	if (s->record != records[s->kind] || s->bytes % s->record || f->parts[s->kind].at)
		return file_damaged(f, e,
				    "a section has records of another size, or is there twice");
	if (s->kind != FILE_CONTENTS && content_hash(f->data + s->at, s->bytes) != s->checksum)
		return file_damaged(f, e, "the checksum of a section is wrong");
	f->parts[s->kind] = (struct part){ f->data + s->at, s->bytes / s->record };
	return 0;
}

static int read_table(struct snapshot_stored *f, struct err *e)
{
	struct file_header h;
	uint64_t bytes;
	int r = 0;

	if (f->len < sizeof(h) || memcmp(f->data, FILE_MAGIC, sizeof(h.magic)) != 0)
		return err_set(e, -EBADMSG,
			       "%s: no snapshot of a heap (memscope heap snapshot writes one)",
			       f->path);
	memcpy(&h, f->data, sizeof(h));
	if (h.version != FILE_VERSION)
		return err_set(e, -EBADMSG,
			       "%s: a snapshot of version %u; this program reads version %d",
			       f->path, h.version, FILE_VERSION);
	bytes = h.n_sections * sizeof(struct file_section);
	if (h.bytes != f->len || h.n_sections > FILE_SECTIONS_MAX || h.table % FILE_ALIGN ||
	    h.table > f->len || bytes > f->len - h.table)
		return file_damaged(f, e, "it is not as long as it says");
	if (content_hash(f->data + h.table, bytes) != h.table_checksum)
		return file_damaged(f, e, "the checksum of its table is wrong");
	for (uint32_t i = 0; i < h.n_sections && r == 0; i++) {
		struct file_section s;

		memcpy(&s, f->data + h.table + i * sizeof(s), sizeof(s));
		r = read_section(f, &s, e);
	}
	return r;
}

/* --- what sections may say --- */

const char *file_text(const struct snapshot_stored *f, uint32_t at)
{
	const struct part *p = &f->parts[FILE_STRINGS];

	return at < p->n ? (const char *)p->at + at : "";
}

static bool strings_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_STRINGS];
	const uint8_t *at = p->at;

	if (!p->n || at[0] || at[p->n - 1])
		return false;
	for (uint64_t i = 0; i < p->n; i++)
		if ((at[i] && at[i] < 0x20) || at[i] == 0x7f)
			return false;
	return true;
}

static bool blocks_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_BLOCKS];
	const struct heap_block *rows = p->at;
	bool good = p->n < BLOCK_NONE;

	for (uint64_t i = 1; i < p->n; i++)
		good &= rows[i - 1].addr < rows[i].addr;
	return good;
}

static bool graph_is_good(const struct snapshot_stored *f, enum file_kind firsts,
			  enum file_kind edges)
{
	const uint64_t *first = f->parts[firsts].at;
	const struct graph_edge *edge = f->parts[edges].at;
	uint64_t n = f->parts[FILE_BLOCKS].n, n_edges = f->parts[edges].n;
	uint32_t most = 0;
	bool good = true;

	if (f->parts[firsts].n != n + 1 || first[0] || first[n] != n_edges)
		return false;
	for (uint64_t i = 0; i < n; i++)
		good &= first[i] <= first[i + 1];
	for (uint64_t i = 0; i < n_edges; i++)
		most = edge[i].to > most ? edge[i].to : most;
	return good && (!n_edges || most < n);
}

static bool roots_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_ROOTS];
	const struct file_root *roots = p->at;
	bool good = true;

	for (uint64_t i = 0; i < p->n; i++)
		good &= roots[i].node < f->parts[FILE_BLOCKS].n &&
			file_root_kind(roots[i].kind) >= 0;
	for (uint64_t i = 1; i < p->n; i++)
		good &= roots[i - 1].node <= roots[i].node;
	return good;
}

static bool maps_are_good(const struct snapshot_stored *f)
{
	const struct part *p = &f->parts[FILE_MAPS];
	const struct file_map *maps = p->at;
	bool good = true;

	for (uint64_t i = 0; i < p->n; i++)
		good &= maps[i].start < maps[i].end && maps[i].kind <= HEAP_MAP_ANON &&
			(!i || maps[i - 1].end <= maps[i].start);
	return good;
}

/* All of them are there, or none. */
static bool sites_are_good(const struct snapshot_stored *f)
{
	const struct part *stacks = &f->parts[FILE_STACKS], *of = &f->parts[FILE_STACK_OF];
	const struct site_stack *stack = stacks->at;
	const uint32_t *stack_of = of->at;
	uint64_t n_frames = f->parts[FILE_STACK_FRAMES].n;
	uint32_t most = 0;

	if (!f->parts[FILE_TRACE].at)
		return !f->parts[FILE_SITES].at && !stacks->at && !of->at &&
		       !f->parts[FILE_AGES].at;
	if (f->parts[FILE_TRACE].n != 1 || !f->parts[FILE_SITES].n || !stacks->n ||
	    of->n != f->parts[FILE_BLOCKS].n || f->parts[FILE_AGES].n != of->n ||
	    f->parts[FILE_SITES].n >= UINT32_MAX || stacks->n >= UINT32_MAX ||
	    n_frames >= UINT32_MAX)
		return false;
	for (uint64_t i = 0; i < stacks->n; i++)
		if (stack[i].site >= f->parts[FILE_SITES].n || stack[i].first > n_frames ||
		    stack[i].n > n_frames - stack[i].first)
			return false;
	for (uint64_t i = 0; i < of->n; i++)
		most = stack_of[i] > most ? stack_of[i] : most;
	return most < stacks->n;
}

/* Runs, their frames, and how many bytes they are in all. */
bool file_contents_are_good(const struct snapshot_stored *f, uint64_t *ret_len)
{
	const struct part *runs = &f->parts[FILE_RUNS], *frames = &f->parts[FILE_FRAMES];
	const struct file_run *run = runs->at;
	const uint64_t *at = frames->at;
	uint64_t len = 0;

	for (uint64_t i = 0; i < runs->n; i++) {
		if (!run[i].bytes || run[i].addr + run[i].bytes < run[i].addr ||
		    (i && run[i - 1].addr + run[i - 1].bytes > run[i].addr) ||
		    len + run[i].bytes < len)
			return false;
		len += run[i].bytes;
	}
	*ret_len = len;
	if (!runs->n)
		return true;
	if (!frames->n || frames->n - 1 != (len - 1) / FILE_FRAME + 1 || at[0])
		return false;
	for (uint64_t i = 1; i < frames->n; i++)
		if (at[i - 1] > at[i])
			return false;
	return at[frames->n - 1] <= f->parts[FILE_CONTENTS].n;
}

static int check(const struct snapshot_stored *f, struct err *e)
{
	static const enum file_kind wanted[] = {
		FILE_FACTS,         FILE_STRINGS,       FILE_TYPES, FILE_BLOCKS,
		FILE_TYPE_OF,       FILE_OBJECT,        FILE_FIRST, FILE_EDGES,
		FILE_REVERSE_FIRST, FILE_REVERSE_EDGES, FILE_ROOTS,
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (!f->parts[wanted[i]].at)
			return file_damaged(f, e, "a section is missing");
	if (f->parts[FILE_FACTS].n != 1 || !f->parts[FILE_TYPES].n ||
	    f->parts[FILE_TYPE_OF].n != f->parts[FILE_BLOCKS].n ||
	    f->parts[FILE_OBJECT].n != f->parts[FILE_BLOCKS].n ||
	    f->parts[FILE_TYPES].n >= UINT32_MAX ||
	    (f->parts[FILE_LENGTHS].at && f->parts[FILE_LENGTHS].n != f->parts[FILE_BLOCKS].n) ||
	    (f->parts[FILE_BROUGHT_BY].at &&
	     f->parts[FILE_BROUGHT_BY].n != f->parts[FILE_BLOCKS].n) ||
	    (f->parts[FILE_REGISTERS].n && f->parts[FILE_REGISTERS].n != f->parts[FILE_THREADS].n))
		return file_damaged(f, e, "sections do not fit together");
	if (!strings_are_good(f))
		return file_damaged(f, e, "its texts are none");
	if (!blocks_are_good(f))
		return file_damaged(f, e, "its blocks are not in order");
	if (!graph_is_good(f, FILE_FIRST, FILE_EDGES) ||
	    !graph_is_good(f, FILE_REVERSE_FIRST, FILE_REVERSE_EDGES) || !roots_are_good(f))
		return file_damaged(f, e, "a reference leads nowhere");
	if (!sites_are_good(f))
		return file_damaged(f, e, "a block's stack leads nowhere");
	if (!maps_are_good(f))
		return file_damaged(f, e, "its mappings are not in order");
	return 0;
}

int file_check(struct snapshot_stored *f, struct err *e)
{
	int r = read_table(f, e);

	return r < 0 ? r : check(f, e);
}
