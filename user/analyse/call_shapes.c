#include "analyse/call_shapes.h"

#include <stdlib.h>
#include <string.h>

enum {
	THREADS = 256, /* a table by tid; a thread whose place is taken makes that one forgotten */
	DEEP = 8,      /* calls inside one another that are followed */
	DENIED_ENOUGH = 100,
	ENTRY_WORD = 8, /* a return takes its address from the stack */
	PART_ONE_OF =
		100, /* entered by a jump from another that allocates, more often than this: a part */
	LARGE_LEAST =
		16 << 10, /* the smallest size that is not of a slab: what alignment may lead to */
	FLAGS_ALIGN = 63, /* mallocx: log2 of the alignment */
	FLAGS_MOST = 1 << 20,  /* larger flags, and alignments, are none */
	ALIGN_LEAST = 8,       /* nobody asks for less of a function that aligns */
	UNJUDGED_ENOUGH = 200, /* more such results than others: it is something else */
};

struct shape_row {
	uint32_t agreed; /* in a row */
	uint32_t denied;
};

struct judged {
	struct shape_row shapes[N_CALL_SHAPES];
	struct call_verdict verdict;
};

struct open_thread {
	uint32_t tid, n;
	struct call_entry calls[DEEP];
};

struct call_judge {
	call_room_fn room;
	uint32_t n;
	struct judged *rows;
	uint32_t *jumped, *inside; /* [outer * n + inner]: entered at the same depth; deeper */
	struct open_thread threads[THREADS];
};

const char *call_shape_name(enum call_shape shape)
{
	static const char *const names[N_CALL_SHAPES] = {
		[CALL_SIZE] = "malloc",
		[CALL_COUNT_SIZE] = "calloc",
		[CALL_ALIGN_SIZE] = "aligned_alloc",
		[CALL_REALLOC] = "realloc",
	};

	return names[shape];
}

struct call_judge *call_judge_new(uint32_t n, call_room_fn room)
{
	struct call_judge *j = n <= CALL_FUNCTIONS_MAX ? calloc(1, sizeof(*j)) : NULL;

	if (!j)
		return NULL;
	j->room = room;
	j->n = n;
	j->rows = calloc(n + 1ul, sizeof(*j->rows));
	j->jumped = calloc((size_t)n * n + 1, sizeof(*j->jumped));
	j->inside = calloc((size_t)n * n + 1, sizeof(*j->inside));
	if (j->rows && j->jumped && j->inside)
		return j;
	call_judge_free(j);
	return NULL;
}

void call_judge_free(struct call_judge *j)
{
	if (!j)
		return;
	free(j->rows);
	free(j->jumped);
	free(j->inside);
	free(j);
}

static struct open_thread *thread_of(struct call_judge *j, uint32_t tid)
{
	struct open_thread *t = &j->threads[tid % THREADS];

	if (t->tid != tid)
		*t = (struct open_thread){ .tid = tid };
	return t;
}

void call_judge_break(struct call_judge *j)
{
	for (uint32_t i = 0; i < THREADS; i++)
		j->threads[i].n = 0;
}

/* --- entries --- */

/* Stacks grow downwards: what was deeper has ended, and so has another call from the same depth. */
static void drop_ended(struct open_thread *t, uint64_t sp, uint64_t ra)
{
	while (t->n && (t->calls[t->n - 1].sp < sp ||
			(t->calls[t->n - 1].sp == sp && t->calls[t->n - 1].ra != ra)))
		t->n--;
}

/* Is it a part of others that allocate? It was entered by their jumps, or inside them most of the time. */
static bool is_part(const struct call_judge *j, uint32_t f)
{
	uint64_t jumped = 0, inside = 0;

	for (uint32_t g = 0; g < j->n; g++) {
		if (g == f || j->rows[g].verdict.state != CALL_ALLOCATES)
			continue;
		jumped += j->jumped[g * j->n + f];
		inside += j->inside[g * j->n + f];
	}
	return jumped * PART_ONE_OF > j->rows[f].verdict.entries ||
	       2 * (jumped + inside) > j->rows[f].verdict.entries;
}

void call_judge_entry(struct call_judge *j, const struct call_entry *entry)
{
	struct open_thread *t = thread_of(j, entry->tid);
	uint32_t f = entry->function;

	if (f >= j->n)
		return;
	drop_ended(t, entry->sp, entry->ra);
	j->rows[f].verdict.entries++;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct call_entry *outer = &t->calls[i];

		if (outer->function == f)
			continue;
		if (outer->sp == entry->sp)
			j->jumped[outer->function * j->n + f]++;
		else
			j->inside[outer->function * j->n + f]++;
	}
	if (entry->seen && t->n < DEEP)
		t->calls[t->n++] = *entry;
}

/* --- results --- */

struct result {
	const struct call_entry *call;
	const struct call_back *back;
};

enum agrees { DENIES, AGREES, SAYS_NOTHING };

static bool is_power(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* A block of `size` bytes, which may have to be aligned. */
static enum agrees has_size(const struct call_judge *j, const struct result *r, uint64_t size,
			    uint64_t align)
{
	uint64_t room, rounded, has = r->back->block.size;

	if (!size)
		return SAYS_NOTHING;
	if (r->back->ret % align || size > UINT64_MAX / 2)
		return DENIES;
	room = j->room(size);
	if (room == has)
		return AGREES;
	rounded = j->room((size + align - 1) & ~(align - 1));
	return align > 1 && (rounded == has || (rounded < LARGE_LEAST && has == LARGE_LEAST))
		       ? AGREES
		       : DENIES;
}

/* mallocx: the lower bits of its flags are the alignment's logarithm. */
static uint64_t flags_align(const struct result *r)
{
	uint64_t flags = r->call->arg[1], align = 1ull << (flags & FLAGS_ALIGN);

	return flags < FLAGS_MOST && align < FLAGS_MOST && r->back->ret % align == 0 ? align : 1;
}

/* The block that is passed in, if there is one: in use, from its beginning on. */
static bool takes_block(const struct call_entry *call)
{
	return !call->arg[0] ||
	       (call->block.answer == CALL_BLOCK_IN_USE && call->block.start == call->arg[0]);
}

static enum agrees agrees_to(const struct call_judge *j, const struct result *r,
			     enum call_shape shape)
{
	const uint64_t *arg = r->call->arg;
	uint64_t product;

	switch (shape) {
	case CALL_SIZE:
		return has_size(j, r, arg[0], flags_align(r));
	case CALL_COUNT_SIZE:
		if (__builtin_mul_overflow(arg[0], arg[1], &product))
			return DENIES;
		return has_size(j, r, product, 1);
	case CALL_ALIGN_SIZE:
		return is_power(arg[0]) && arg[0] >= ALIGN_LEAST ? has_size(j, r, arg[1], arg[0])
								 : DENIES;
	case CALL_REALLOC:
		return takes_block(r->call) ? has_size(j, r, arg[1], 1) : DENIES;
	default:
		return DENIES;
	}
}

/* Once a shape has its thousand and no other is left that could have, it is known. */
static void decide(struct call_judge *j, uint32_t f)
{
	struct judged *row = &j->rows[f];
	uint32_t enough = 0, denied = 0;

	row->verdict.promising = false;
	for (int s = 0; s < N_CALL_SHAPES; s++) {
		row->verdict.promising |= row->verdict.results && !row->shapes[s].denied;
		denied += row->shapes[s].denied >= DENIED_ENOUGH;
		if (row->shapes[s].agreed < CALL_RESULTS_ENOUGH)
			continue;
		enough++;
		row->verdict.shape = (enum call_shape)s;
		row->verdict.agreed = row->shapes[s].agreed;
	}
	if (denied == N_CALL_SHAPES)
		row->verdict.state = CALL_DOES_NOT;
	else if (enough == 1)
		row->verdict.state = CALL_ALLOCATES;
}

static void judge(struct call_judge *j, const struct call_entry *call, const struct call_back *back)
{
	struct judged *row = &j->rows[call->function];
	struct result r = { call, back };

	if (row->verdict.state != CALL_OPEN)
		return;
	if (!back->ret || back->block.answer == CALL_BLOCK_UNKNOWN) {
		if (++row->verdict.unjudged >= UNJUDGED_ENOUGH &&
		    row->verdict.unjudged > row->verdict.results)
			row->verdict.state = CALL_DOES_NOT;
		return;
	}
	row->verdict.results++;
	for (int s = 0; s < N_CALL_SHAPES; s++) {
		bool block =
			back->block.answer == CALL_BLOCK_IN_USE && back->block.start == back->ret;
		enum agrees a = block ? agrees_to(j, &r, (enum call_shape)s) : DENIES;

		row->shapes[s].agreed = a == DENIES ? 0 : row->shapes[s].agreed + (a == AGREES);
		row->shapes[s].denied += a == DENIES;
	}
	decide(j, call->function);
}

void call_judge_back(struct call_judge *j, const struct call_back *back)
{
	struct open_thread *t = thread_of(j, back->tid);

	/* All that jumped on to one another return at once. */
	while (t->n && t->calls[t->n - 1].sp + ENTRY_WORD <= back->sp) {
		const struct call_entry *call = &t->calls[--t->n];

		if (call->sp + ENTRY_WORD == back->sp && call->ra == back->pc)
			judge(j, call, back);
	}
}

struct call_verdict call_judge_of(const struct call_judge *j, uint32_t function)
{
	struct call_verdict v = j->rows[function].verdict;

	if (v.state == CALL_ALLOCATES && is_part(j, function))
		v.state = CALL_PART;
	return v;
}
