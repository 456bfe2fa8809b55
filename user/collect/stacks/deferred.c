/*
 * Stacks that the kernel could not walk in place: walked here, by the same walker over the same
 * tables, from the registers and the copy of the stack that it sent.
 *
 * A record waits until the kernel's records about processes have been read up to it, and until the
 * tables it needs are made; those are asked for now, so that the next stack of that process is
 * walked in place.
 */
#include "collect/stacks/stacks_parts.h"
#include "collect/stream/ingest_wire.h"

#include "proc/peek.h"
#include "unwind/host_walk.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

struct deferred_stack {
	struct deferred_stack *prev, *next;
	/* The spans that were in force when it was taken, where others are now; they stay in the pool
	 * for a while. 0: those of now are. */
	struct ms_space space;
	uint64_t space_until_ns;
	struct chain *chain; /* NULL: none came with it */
	uint64_t stack[];    /* struct ms_deferred_rec and the bytes */
};

/* Frames of a language, which come right before the stack that they belong to. */
struct chain {
	struct chain *prev, *next;
	struct ms_chain_rec rec;
	struct ms_chain_link links[];
};

/* Chains that wait for their stacks: those of other CPUs may come in between. */
#define CHAINS_MAX 64

static const struct ms_deferred_rec *record_of(const struct deferred_stack *p)
{
	return (const struct ms_deferred_rec *)p->stack;
}

#define WAITING_LEAST (16u << 20)

/* Bytes of stacks that may wait, in all: beyond, they are finished as they are. With the tables that
 * are under way this is most of what a run on a host takes where no table was made before. */
static uint64_t waiting_max(const struct user_stacks *st)
{
	uint64_t part = ((uint64_t)st->env.mem_mb << 20) * 3 / 8;

	return part > WAITING_LEAST ? part : WAITING_LEAST;
}

/*
 * While many totals are read, stacks come in between and none is finished: the records about their processes have not been read. Of
 * this many bytes no more are kept: a host with 20,000 processes has had half a gigabyte of them in memory.
 */
static bool is_full(const struct user_stacks *st)
{
	return st->ingest && st->deferred_bytes >= 2 * waiting_max(st);
}

static size_t size_of(const struct deferred_stack *p)
{
	const struct ms_deferred_rec *rec = record_of(p);

	return sizeof(*rec) + rec->stack_bytes +
	       (p->chain ? sizeof(*p->chain) + p->chain->rec.n_links * sizeof(struct ms_chain_link)
			 : 0);
}

/* Memory of the process that was not copied, as it is now: code is what it was. */
static bool read_process(void *ctx, void *dst, size_t size, uint64_t addr)
{
	const struct ms_deferred_rec *rec = ctx;

	return size <= MS_LANG_BYTES && peek((pid_t)rec->proc.tgid, addr, dst, size);
}

/* How often a thread has left a CPU so far; false when it has ended. */
static bool read_switches(const struct ms_deferred_rec *rec, uint32_t *ret_switches)
{
	static const char voluntary[] = "voluntary_ctxt_switches:",
			  other[] = "nonvoluntary_ctxt_switches:";
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	uint32_t sum = 0;
	int rows = 0;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/status", rec->proc.tgid, rec->tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		size_t skip = strncmp(line, voluntary, strlen(voluntary)) == 0 ? strlen(voluntary)
			      : strncmp(line, other, strlen(other)) == 0       ? strlen(other)
									       : 0;

		if (!skip)
			continue;
		sum += (uint32_t)strtoull(line + skip, NULL, 10);
		rows++;
	}
	*ret_switches = sum;
	return rows == 2;
}

/*
 * Reads the stack of a thread that the kernel found blocked: page by page, as far as it goes. It is
 * good if the thread is in the same place afterwards, and has not run meanwhile: it may be back in
 * the same system call with another caller. Returns bytes.
 */
static size_t read_blocked(const struct ms_deferred_rec *rec, uint8_t *to, size_t room)
{
	uint64_t sp = rec->regs[MS_WALK_SP], at = sp;
	unsigned long long is_sp = 0, is_pc = 0;
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256], *end;
	uint32_t switches;

	while (at - sp < room) {
		size_t part = MS_PAGE_BYTES - at % MS_PAGE_BYTES;

		if (part > room - (at - sp) ||
		    !peek((pid_t)rec->proc.tgid, at, to + (at - sp), part))
			break;
		at += part;
	}
	/* proc(5): … stack pointer, program counter, the last two words. */
	snprintf(path, sizeof(path), "/proc/%u/task/%u/syscall", rec->proc.tgid, rec->tid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return 0;
	end = strrchr(line, ' ');
	if (!end || sscanf(end, "%llx", &is_pc) != 1)
		return 0;
	*end = '\0';
	end = strrchr(line, ' ');
	if (!end || sscanf(end, "%llx", &is_sp) != 1)
		return 0;
	if (is_sp != sp || is_pc != rec->pc || !read_switches(rec, &switches))
		return 0;
	return switches == rec->switches ? at - sp : 0;
}

/* Are the language's frames those of the native stack? Their code is read from memory, and known by its cookie. */
static bool is_on_stack(const struct ms_lang_row *row)
{
	return row && row->lang == MS_LANG_HOTSPOT;
}

/* It has its first frame alone: nothing is kept of it that could be walked. */
static void finish_unkept(struct user_stacks *st, const struct ms_deferred_rec *rec)
{
	struct ms_stack_rec out = { .kind = MS_EV_STACK,
				    .hash = rec->hash,
				    .time_ns = rec->time_ns,
				    .n_frames = 1,
				    .verdict = STACK_NO_TABLE };
	uint64_t pc = rec->pc;

	*st->env.oom |= ingest_stack_placed(st->ingest, &out, &pc, rec->as_gen) < 0;
	if (rec->source < N_SOURCES)
		st->finished[rec->source][STACK_NO_TABLE]++;
	st->unkept++;
}

/* The stack of `rec` into the profiles. false: it should wait for its tables. */
static bool finish(struct user_stacks *st, struct deferred_stack *p, bool may_wait)
{
	struct ms_deferred_rec *rec = (struct ms_deferred_rec *)p->stack;
	static uint64_t frames[MS_MAX_FRAMES];
	static uint8_t blocked[MS_DEFERRED_LARGE];
	struct ms_stack_rec out = { .kind = MS_EV_STACK,
				    .hash = rec->hash,
				    .time_ns = rec->time_ns };
	enum stack_verdict verdict = STACK_NO_TABLE;
	struct host_stack stack = {
		.pc = rec->pc,
		.regs = (const uint64_t *)rec->regs,
		.addr = rec->regs[MS_WALK_SP],
		.bytes = (const uint8_t *)(rec + 1),
		.len = rec->stack_bytes,
		.read = read_process,
		.ctx = rec,
	};
	struct proc_id id = wire_id(&rec->proc);
	uint64_t missing;
	struct ms_space space;
	struct proc *proc;
	uint32_t n = 1;
	uint32_t gen = rec->as_gen;
	int rc = tables_space(st, &id, &space);

	if (rc == -EAGAIN && may_wait)
		return false;
	proc = proc_table_find(st->env.procs, &id);
	if (proc)
		gen = proc_generation_at(proc, rec->as_gen, rec->time_ns);
	/* What is mapped now is not what was: see user_stacks_remapping(). */
	if (proc && gen != proc_generation(proc)) {
		rc = now_ns() < p->space_until_ns ? 0 : -ESTALE;
		space = p->space;
	}
	frames[0] = rec->pc;
	if (!rec->stack_bytes) {
		stack.bytes = blocked;
		stack.len = read_blocked(rec, blocked, sizeof(blocked));
		/* Frames of a language are read from memory: only of a thread that has not run since. */
		stack.lang = rec->thread_base ? langs_row(st, &id) : NULL;
		stack.thread_base = rec->thread_base;
	} else if (is_on_stack(langs_row(st, &id))) {
		stack.lang = langs_row(st, &id);
	} else if (p->chain) {
		stack.lang = langs_row(st, &id);
		stack.chain = &p->chain->rec;
		stack.links = p->chain->links;
	}
	if (!stack.len) { /* it has moved on: what is there now is another stack */
		verdict = STACK_UNREADABLE;
	} else if (rc == 0) {
		stack.space = &space;
		verdict =
			(enum stack_verdict)host_walk(tables_mem(st), &stack, frames, &n, &missing);
		if (verdict == STACK_NO_TABLE && may_wait &&
		    tables_need(st, &space, missing) == -EAGAIN)
			return false;
		if (stack.lang)
			langs_walked(st, host_lang_lost(), host_lang_misplaced());
	}
	out.n_frames = (uint16_t)n;
	out.verdict = (uint8_t)verdict;
	*st->env.oom |= ingest_stack_placed(st->ingest, &out, frames, gen) < 0;
	if (rec->source < N_SOURCES)
		st->finished[rec->source][verdict]++;
	return true;
}

enum drain_says on_chain(void *ctx, const void *record, const void *links)
{
	const struct ms_chain_rec *rec = record;
	size_t bytes = rec->n_links * sizeof(struct ms_chain_link);
	struct chain *c = malloc(sizeof(*c) + bytes), *oldest;
	struct user_stacks *st = ctx;
	struct proc_id id = wire_id(&rec->proc);

	if (!c) {
		*st->env.oom = true;
		return DRAIN_TAKEN;
	}
	c->rec = *rec;
	memcpy(c->links, links, bytes);
	for (uint32_t i = 0; i < rec->n_links; i++)
		if (c->links[i].words[0])
			langs_seen(st, &id, (const uint64_t *)c->links[i].words);
	DL_APPEND(st->chains, c);
	if (++st->n_chains > CHAINS_MAX) {
		oldest = st->chains;
		DL_DELETE(st->chains, oldest);
		free(oldest);
		st->n_chains--;
	}
	return DRAIN_TAKEN;
}

static struct chain *take_chain(struct user_stacks *st, const struct ms_hash *hash)
{
	struct chain *c;

	DL_FOREACH (st->chains, c) {
		if (memcmp(&c->rec.hash, hash, sizeof(*hash)) != 0)
			continue;
		DL_DELETE(st->chains, c);
		st->n_chains--;
		return c;
	}
	return NULL;
}

enum drain_says on_deferred(void *ctx, const void *record, const void *bytes)
{
	const struct ms_deferred_rec *rec = record;
	struct user_stacks *st = ctx;
	struct chain *chain = take_chain(st, &rec->hash);
	struct deferred_stack *p;

	if (is_full(st)) {
		free(chain);
		finish_unkept(st, rec);
		return DRAIN_TAKEN;
	}
	p = malloc(sizeof(*p) + sizeof(*rec) + rec->stack_bytes);
	if (!p) {
		free(chain);
		*st->env.oom = true;
		return DRAIN_TAKEN;
	}
	p->space_until_ns = 0;
	p->chain = chain;
	memcpy(p->stack, rec, sizeof(*rec));
	memcpy((struct ms_deferred_rec *)p->stack + 1, bytes, rec->stack_bytes);
	DL_APPEND(st->deferred, p);
	st->deferred_bytes += size_of(p);
	(*st->env.n_deferred)++;
	return DRAIN_TAKEN;
}

/* false: it waits for a table. */
static bool try_finish(struct user_stacks *st, struct deferred_stack *p, bool all)
{
	size_t size = size_of(p);

	if (!finish(st, p, !all && st->deferred_bytes < waiting_max(st)))
		return false;
	DL_DELETE(st->deferred, p);
	st->deferred_bytes -= size;
	(*st->env.n_deferred)--;
	free(p->chain);
	free(p);
	return true;
}

bool deferred_of(const struct user_stacks *st, pid_t pid)
{
	for (const struct deferred_stack *p = st->deferred; p; p = p->next)
		if ((pid_t)record_of(p)->proc.tgid == pid)
			return true;
	return false;
}

void user_stacks_walk(struct user_stacks *st, bool all)
{
	struct deferred_stack *p, *next;

	DL_FOREACH_SAFE(st->deferred, p, next)
	try_finish(st, p, all);
}

void user_stacks_remapping(struct user_stacks *st, pid_t pid, uint64_t ns)
{
	struct deferred_stack *p, *next;

	DL_FOREACH_SAFE(st->deferred, p, next)
	{
		const struct ms_deferred_rec *rec = record_of(p);
		struct proc_id id = wire_id(&rec->proc);

		if ((pid_t)rec->proc.tgid != pid || rec->time_ns >= ns || p->space_until_ns ||
		    try_finish(st, p, false))
			continue;
		if (tables_known(st, &id, &p->space))
			p->space_until_ns = now_ns() + MS_POOL_GRACE_NS / 10 * 9;
	}
}

void deferred_free(struct user_stacks *st)
{
	struct deferred_stack *p, *next;
	struct chain *c, *after;

	DL_FOREACH_SAFE(st->deferred, p, next)
	{
		DL_DELETE(st->deferred, p);
		free(p->chain);
		free(p);
	}
	DL_FOREACH_SAFE(st->chains, c, after)
	{
		DL_DELETE(st->chains, c);
		free(c);
	}
}

void user_stacks_verdicts(const struct user_stacks *st, uint64_t ret_n[N_SOURCES][N_STACK_VERDICTS])
{
	memcpy(ret_n, st->finished, sizeof(st->finished));
}

uint64_t user_stacks_unkept(const struct user_stacks *st)
{
	return st->unkept;
}
