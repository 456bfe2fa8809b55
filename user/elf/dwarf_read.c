#include "elf/dwarf_read.h"

#include "elf/dwarf.h"
#include "elf/dwarf_out.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	DEPTH_MAX = 512,      /* of nested DIEs                                          */
	STRING_MAX = 1 << 16, /* a longer name or path is left out                        */
	HELD_BYTES_MAX =
		DWARF_MEMORY_MAX / 3, /* of libdw's memory, after which it is opened again */
	NODES_FIRST = 4096,
	LOOK_AFTER = 256,        /* DIEs or units, at the time and how many pages are resident */
	WEIGH_AFTER = 64,        /* units read, at how much libdw holds …                    */
	WEIGH_BYTES = 256 << 10, /* … or so many bytes of them                           */
};

/* A function or an inlined call of one, that covers addresses asked for. */
struct node {
	uint32_t parent; /* 0: a function */
	uint32_t function, start_line;
	uint32_t call_file, call_line;
};

/* What is known about one address. */
struct place {
	uint32_t node;   /* innermost in the unit being read; 0: none     */
	bool here, done; /* in that unit's ranges; answered                */
	uint64_t size;   /* of the function that claims it                 */
};

struct reader {
	struct dwarf_out out;
	const uint64_t *vaddrs;
	struct place *places;
	uint32_t n, n_left;
	uint32_t *here; /* places to look for in the unit being read      */
	uint32_t n_here;

	struct node *nodes;
	uint32_t n_nodes, cap_nodes;

	struct dwarf_source main, alt;
	int statm;
	uint64_t resident_pages; /* of files, before any of these   */
	uint64_t data_pages;     /* of memory, before any of libdw's …                */
	bool weighs;             /* … has grown by as much as it may hold */
	uint64_t allocated;      /* before libdw was opened; if it weighs */
	uint32_t since_look;
	uint32_t units_read; /* since libdw's memory was weighed …    */
	uint64_t bytes_read; /* … and bytes of them                   */

	Dwarf *dbg;
	Dwarf_Die unit;
	Dwarf_Files *files;
	const char *comp_dir; /* where its compiler ran; NULL */
	bool some_unplaced;   /* units that do not say where their code is */
	bool everywhere;      /* look for functions where none are expected */
	int64_t max_cpu_ns;   /* 0: any */
	bool time_is_over;    /* what is unread stays so */
};

/* --- memory --- */

/* Of this process; all 0: not known. */
struct pages {
	unsigned long of_files; /* and of shared memory, that are resident */
	unsigned long of_data;  /* what RLIMIT_DATA limits                 */
};

static struct pages pages_now(const struct reader *r)
{
	struct pages p = { 0 };
	char text[128];
	ssize_t n = r->statm < 0 ? -1 : pread(r->statm, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%*u %*u %lu %*u %*u %lu", &p.of_files, &p.of_data) != 2)
		return (struct pages){ 0 };
	return p;
}

static void look_at_time(struct reader *r)
{
	struct timespec ts = { 0 };

	if (!r->max_cpu_ns || r->time_is_over)
		return;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	r->time_is_over = ts.tv_sec * 1000000000ll + ts.tv_nsec > r->max_cpu_ns;
}

/* Looks at the time, and gives pages of the files back, when there are many. Once in a while: it is asked for often. */
static void keep_bounds(struct reader *r)
{
	uint64_t pages;

	if (++r->since_look < LOOK_AFTER)
		return;
	r->since_look = 0;
	look_at_time(r);
	pages = pages_now(r).of_files;
	if (pages && pages < r->resident_pages + DWARF_PAGES_MAX / (uint64_t)getpagesize())
		return;
	dwarf_source_forget(&r->main);
	dwarf_source_forget(&r->alt);
}

/* Bytes that are allocated: whoever forked us left some, what was found is more. */
static uint64_t allocated(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static struct reader *whose_libdw;

/* libdw does not come back from running out of memory: what has been sent stands. */
static __attribute__((noreturn)) void libdw_out_of_memory(void)
{
	dwarf_out_u8(&whose_libdw->out, 'E');
	dwarf_out_u32(&whose_libdw->out, (uint32_t)-EFBIG);
	dwarf_out_flush(&whose_libdw->out);
	_exit(0);
}

/* --- addresses --- */

/*
 * A source file's number. Paths are relative to where the compiler ran; libdw puts that before
 * some of them (those in directory 0).
 */
static uint32_t path_number(struct reader *r, const char *path)
{
	size_t dir_len = r->comp_dir ? strlen(r->comp_dir) : 0, len = path ? strlen(path) : 0;
	char whole[4096];

	if (!len || path[0] == '/' || !dir_len || strncmp(path, r->comp_dir, dir_len) == 0 ||
	    dir_len + len + 2 > sizeof(whole))
		return dwarf_out_string(&r->out, path);
	memcpy(whole, r->comp_dir, dir_len);
	whole[dir_len] = '/';
	memcpy(whole + dir_len + 1, path, len + 1);
	return dwarf_out_string(&r->out, whole);
}

/* The first address that is not below `vaddr`. */
static uint32_t first_from(const struct reader *r, uint64_t vaddr)
{
	uint32_t lo = 0, hi = r->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->vaddrs[mid] < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Calls `fn` for each range of a DIE. Functions that the linker dropped are left at 0, or with
 * an end before their start. False when it has none.
 */
typedef void (*range_fn)(struct reader *r, uint64_t start, uint64_t end, void *arg);

static bool each_range(struct reader *r, Dwarf_Die *die, range_fn fn, void *arg)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t off = 0;
	bool any = false;

	while ((off = dwarf_ranges(die, off, &base, &start, &end)) > 0) {
		any = true;
		if (start && start < end)
			fn(r, start, end, arg);
	}
	return any;
}

static void mark(struct reader *r, uint32_t i)
{
	struct place *p = &r->places[i];

	if (p->here || p->done)
		return;
	p->here = true;
	r->here[r->n_here++] = i;
}

static void mark_here(struct reader *r, uint64_t start, uint64_t end, void *arg)
{
	for (uint32_t i = first_from(r, start); i < r->n && r->vaddrs[i] < end; i++)
		mark(r, i);
}

/* --- functions --- */

/* A node for `die` under `parent`; 0 when out of memory. */
static uint32_t add_node(struct reader *r, uint32_t parent)
{
	if (r->n_nodes + 1 >= r->cap_nodes) {
		uint32_t cap = r->cap_nodes ? r->cap_nodes * 2 : NODES_FIRST;
		struct node *nodes = reallocarray(r->nodes, cap, sizeof(*nodes));

		if (!nodes) {
			r->out.short_of_memory = true;
			return 0;
		}
		r->nodes = nodes;
		r->cap_nodes = cap;
	}
	r->nodes[++r->n_nodes] = (struct node){ .parent = parent };
	return r->n_nodes;
}

static const char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (name && *name)
		return name;
	return dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_formstring(&attr) : NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name, bool integrate)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!(integrate ? dwarf_attr_integrate(die, name, &attr) : dwarf_attr(die, name, &attr)) ||
	    dwarf_formudata(&attr, &value) < 0 || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

static const char *file_name(struct reader *r, uint32_t ix)
{
	size_t n;

	if (!r->files && dwarf_getsrcfiles(&r->unit, &r->files, &n) < 0)
		return NULL;
	return dwarf_filesrc(r->files, ix, NULL, NULL);
}

static void describe(struct reader *r, uint32_t ix, Dwarf_Die *die)
{
	uint32_t function = dwarf_out_string(&r->out, function_name(die));
	struct node *node = &r->nodes[ix];

	node->function = function;
	node->start_line = number_of(die, DW_AT_decl_line, true);
	if (!node->parent)
		return;
	node->call_line = number_of(die, DW_AT_call_line, false);
	if (dwarf_hasattr(die, DW_AT_call_file))
		node->call_file =
			path_number(r, file_name(r, number_of(die, DW_AT_call_file, false)));
}

static void descend(struct reader *r, Dwarf_Die *die, uint32_t node, int depth);

/* A function takes the addresses in its ranges, unless a smaller one has them. */
struct claim {
	uint32_t node;
	uint64_t size;
	bool any;
};

static void add_size(struct reader *r, uint64_t start, uint64_t end, void *arg)
{
	*(uint64_t *)arg += end - start;
}

static void claim_range(struct reader *r, uint64_t start, uint64_t end, void *arg)
{
	struct claim *c = arg;

	for (uint32_t i = first_from(r, start); i < r->n && r->vaddrs[i] < end; i++) {
		struct place *p = &r->places[i];

		if (!p->here || (p->node && p->size <= c->size))
			continue;
		if (!c->node)
			c->node = add_node(r, 0);
		p->node = c->node;
		p->size = c->size;
		c->any = c->node != 0;
	}
}

static void visit_function(struct reader *r, Dwarf_Die *die, int depth)
{
	struct claim c = { 0 };

	if (each_range(r, die, add_size, &c.size))
		each_range(r, die, claim_range, &c);
	if (c.any)
		describe(r, c.node, die);
	if (c.any || r->everywhere)
		descend(r, die, c.node, depth + 1);
}

struct nest {
	uint32_t parent, node;
};

static void nest_range(struct reader *r, uint64_t start, uint64_t end, void *arg)
{
	struct nest *nest = arg;

	for (uint32_t i = first_from(r, start); i < r->n && r->vaddrs[i] < end; i++) {
		struct place *p = &r->places[i];

		if (!p->node || p->node != nest->parent)
			continue;
		if (!nest->node)
			nest->node = add_node(r, nest->parent);
		if (nest->node)
			p->node = nest->node;
	}
}

static void visit_inlined(struct reader *r, Dwarf_Die *die, uint32_t parent, int depth)
{
	struct nest nest = { parent, 0 };

	each_range(r, die, nest_range, &nest);
	if (!nest.node)
		return;
	describe(r, nest.node, die);
	descend(r, die, nest.node, depth + 1);
}

static void visit(struct reader *r, Dwarf_Die *die, uint32_t node, int depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram:
		visit_function(r, die, depth);
		break;
	case DW_TAG_inlined_subroutine:
		if (node)
			visit_inlined(r, die, node, depth);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
		descend(r, die, 0, depth + 1);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
		if (node || r->everywhere)
			descend(r, die, node, depth + 1);
		break;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		if (r->everywhere)
			descend(r, die, 0, depth + 1);
		break;
	default:
		break;
	}
}

static void descend(struct reader *r, Dwarf_Die *die, uint32_t node, int depth)
{
	Dwarf_Die child;

	if (depth > DEPTH_MAX || dwarf_child(die, &child) != 0)
		return;
	do {
		keep_bounds(r);
		visit(r, &child, node, depth);
	} while (!r->time_is_over && dwarf_siblingof(&child, &child) == 0);
}

/* --- units --- */

/* Bytes of the present unit in .debug_info. */
static uint64_t unit_bytes_read(const struct reader *r)
{
	Dwarf_Die die = r->unit;
	Dwarf_Off begin = dwarf_dieoffset(&die) - dwarf_cuoffset(&die), end;
	size_t header;

	return dwarf_next_unit(r->dbg, begin, &end, &header, NULL, NULL, NULL, NULL, NULL, NULL) ==
			       0
		       ? end - begin
		       : WEIGH_BYTES;
}

/*
 * What libdw holds, our memory has grown by, but for what whoever forked us had allocated and freed, which the limit does not count
 * either. That is seen without weighing until it has grown by so much once: what libdw has freed by then may be used again.
 */
static bool has_grown(struct reader *r)
{
	uint64_t max = HELD_BYTES_MAX / (uint64_t)getpagesize();

	if (!r->weighs)
		r->weighs = pages_now(r).of_data > r->data_pages + max;
	return r->weighs;
}

/*
 * Whether libdw holds too much. To weigh it means to walk the allocator's free lists, which are long in a process that has run for
 * a while (three quarters of all that reading took): what libdw holds grows with what it has read, so that is what says when.
 */
static bool holds_too_much(struct reader *r)
{
	bool weighed_before = r->weighs;

	r->bytes_read += unit_bytes_read(r);
	if (++r->units_read < WEIGH_AFTER && r->bytes_read < WEIGH_BYTES)
		return false;
	r->units_read = 0;
	r->bytes_read = 0;
	if (!weighed_before)
		return has_grown(r);
	return allocated() > r->allocated + HELD_BYTES_MAX;
}

/* File and line of each frame: where execution is, and outwards where each call was made. */
static void answer(struct reader *r, uint32_t i)
{
	Dwarf_Line *line = dwarf_getsrc_die(&r->unit, r->vaddrs[i]);
	uint32_t file = 0, number = 0, frames = 0;
	struct place *p = &r->places[i];
	int lineno;

	if (line) {
		file = path_number(r, dwarf_linesrc(line, NULL, NULL));
		number = dwarf_lineno(line, &lineno) == 0 && lineno > 0 ? (uint32_t)lineno : 0;
	}
	for (uint32_t at = p->node; at && frames < DWARF_FRAMES_MAX; at = r->nodes[at].parent)
		frames++;
	if (!frames && !file)
		return;
	dwarf_out_u8(&r->out, 'A');
	dwarf_out_put(&r->out, &r->vaddrs[i], sizeof(r->vaddrs[i]));
	dwarf_out_u32(&r->out, frames ? frames : 1);
	for (uint32_t k = 0, at = p->node; k == 0 || k < frames; k++) {
		const struct node *node = &r->nodes[at];

		dwarf_out_u32(&r->out, node->function);
		dwarf_out_u32(&r->out, file);
		dwarf_out_u32(&r->out, number);
		dwarf_out_u32(&r->out, node->start_line);
		file = node->call_file;
		number = node->call_line;
		at = node->parent;
	}
	p->done = true;
	r->n_left--;
}

static bool all_have_functions(const struct reader *r)
{
	for (uint32_t i = 0; i < r->n_here; i++)
		if (!r->places[r->here[i]].node)
			return false;
	return true;
}

/* A unit's whole table of lines is in memory at once. */
static void read_lines(struct reader *r)
{
	Dwarf_Lines *lines;
	size_t n;

	/* libdw has no public number for it. */
	if (dwarf_getsrclines(&r->unit, &lines, &n) < 0 &&
	    !strcmp(dwarf_errmsg(-1), "out of memory"))
		r->out.short_of_memory = true;
}

static void read_unit(struct reader *r, bool thorough)
{
	Dwarf_Attribute attr;

	look_at_time(r);
	r->n_nodes = 0;
	r->files = NULL;
	r->comp_dir = dwarf_formstring(dwarf_attr(&r->unit, DW_AT_comp_dir, &attr));
	r->everywhere = false;
	descend(r, &r->unit, 0, 0);
	if (thorough && !all_have_functions(r)) {
		r->everywhere = true;
		descend(r, &r->unit, 0, 0);
	}
	if (!r->time_is_over)
		read_lines(r);
	for (uint32_t i = 0; i < r->n_here; i++) {
		struct place *p = &r->places[r->here[i]];

		if (!r->time_is_over)
			answer(r, r->here[i]);
		p->here = false;
		p->node = 0;
	}
	r->n_here = 0;
}

static bool is_code_unit(uint8_t type)
{
	return type == DW_UT_compile || type == DW_UT_skeleton;
}

/*
 * Reads units from the `*at`-th on, until the last (true) or until too much memory is held. Those
 * that have lines but do not say where their code is come in a second round, if anything is
 * still to be found.
 */
static bool read_units(struct reader *r, uint32_t *at, bool second_round)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	uint32_t nth = 0;

	while (r->n_left && !r->time_is_over &&
	       dwarf_get_units(r->dbg, cu, &cu, &version, &type, &r->unit, NULL) == 0) {
		bool placed;

		keep_bounds(r);
		if (nth++ < *at || !is_code_unit(type))
			continue;
		*at = nth;
		placed = dwarf_hasattr(&r->unit, DW_AT_ranges) ||
			 dwarf_hasattr(&r->unit, DW_AT_low_pc);
		if (!placed && !second_round)
			r->some_unplaced |= dwarf_hasattr(&r->unit, DW_AT_stmt_list);
		else if (placed && !second_round)
			each_range(r, &r->unit, mark_here, NULL);
		else if (!placed && dwarf_hasattr(&r->unit, DW_AT_stmt_list))
			for (uint32_t i = 0; i < r->n; i++)
				mark(r, i);
		if (!r->n_here)
			continue;
		read_unit(r, placed);
		if (holds_too_much(r))
			return false;
	}
	return true;
}

static int read_all(struct reader *r)
{
	for (int round = 0; round == 0 || (round == 1 && r->some_unplaced); round++) {
		uint32_t at = 0;
		bool last = false;

		while (!last && r->n_left && !r->time_is_over) {
			Dwarf *dwz = NULL;

			if (r->weighs)
				r->allocated = allocated();
			if (r->alt.elf)
				dwz = dwarf_begin_elf(r->alt.elf, DWARF_C_READ, NULL);
			r->dbg = dwarf_begin_elf(r->main.elf, DWARF_C_READ, NULL);
			if (!r->dbg) {
				dwarf_end(dwz);
				return -ENOENT;
			}
			dwarf_new_oom_handler(r->dbg, libdw_out_of_memory);
			if (dwz) {
				dwarf_new_oom_handler(dwz, libdw_out_of_memory);
				dwarf_setalt(r->dbg, dwz);
			}
			last = read_units(r, &at, round == 1);
			dwarf_end(r->dbg);
			dwarf_end(dwz);
			if (!last)
				malloc_trim(0);
		}
	}
	return 0;
}

static void reader_free(struct reader *r)
{
	dwarf_source_close(&r->main);
	dwarf_source_close(&r->alt);
	dwarf_out_fini(&r->out);
	free(r->places);
	free(r->here);
	free(r->nodes);
	free(r);
}

void dwarf_read(struct elf_file *elf, struct elf_file *alt, const uint64_t *vaddrs, uint32_t n,
		int64_t max_cpu_ns, int spill, int statm, int out)
{
	struct dwarf_room room = { .fd = spill };
	struct reader *r = calloc(1, sizeof(*r));
	int32_t code = -ENOMEM;

	if (!r)
		return;
	whose_libdw = r;
	r->out.fd = out;
	r->statm = statm;
	r->vaddrs = vaddrs;
	r->n = r->n_left = n;
	r->max_cpu_ns = max_cpu_ns;
	r->places = calloc(n + 1ul, sizeof(*r->places));
	r->here = calloc(n + 1ul, sizeof(*r->here));
	r->resident_pages = pages_now(r).of_files;
	r->data_pages = pages_now(r).of_data;
	r->weighs = !r->data_pages;
	elf_version(EV_CURRENT);
	/* nodes[0] is what a place without function has. */
	if (r->places && r->here && add_node(r, 0)) {
		r->nodes[0] = (struct node){ 0 };
		code = dwarf_source_open(elf, &room, false, &r->main);
		if (code == 0 && alt && dwarf_source_open(alt, &room, false, &r->alt) == -EFBIG)
			r->out.short_of_memory = true;
		if (code == 0)
			code = read_all(r);
	}
	if (code == 0 && r->out.short_of_memory)
		code = -EFBIG;
	if (code == 0 && r->time_is_over)
		code = -ETIMEDOUT;
	dwarf_out_u8(&r->out, 'E');
	dwarf_out_u32(&r->out, (uint32_t)code);
	dwarf_out_flush(&r->out);
	/* For the fuzzer; the child is about to end. */
	reader_free(r);
}
