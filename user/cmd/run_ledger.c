/*
 * The RSS ledger of the processes that were asked for: at the start what is in use already, now and
 * then where RSS is, and at the end which blocks in use were there before the run.
 *
 *   the start    probes are on   walk ─► blocks in use then                      (exact tracing only)
 *   the end      before the gate closes   walk ─► blocks in use now
 *                when it has closed       the table of traced blocks
 *
 * A block in use at the end that is in the table was allocated in the run; one that is not, and was in
 * use at the start with that address and size, was there before. The table is of a moment after the
 * walk, so what was freed in between is in neither.
 */
#include "cmd/run_parts.h"
#include "heap/census.h"
#include "heap/process.h"
#include "render/ledger_csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	PROCESSES_MAX = 64,
	SHARE = 100,     /* a look may take this part of the time that goes by          */
	LISTS_SHARE = 4, /* lists of blocks may take this part of --mem, each            */
	LOOKS = 3,       /* at one process, where its allocator was not found at the first        */
};
#define WALK_NS 2000000000LL /* the longest that one walk may take                          */

#define BEFORE_ADDR (UINT64_MAX - 2) /* of the pseudo-frame */

/* One process. */
struct holder {
	pid_t pid;
	const struct proc *image; /* whose blocks `at_start` are; another after an exec        */
	bool asked;               /* by its pid, or it is the command: not as a member         */
	bool newborn;             /* it began with the run: nothing was there before           */
	bool started;             /* `at_start` is known and whole                             */
	bool walked;              /* an allocator was found in it by the last look             */
	struct heap_blocks at_start, at_end;
	uint64_t *traced; /* addresses of the table */
	uint64_t n_traced, room_traced;
	struct ledger ledger; /* the last one           */
};

struct holders {
	struct holder rows[PROCESSES_MAX];
	uint32_t n;
	bool splits;   /* what is in use at the end is told apart */
	bool complete; /* the last look was the one at the end    */
	bool oom;
	bool full;  /* there were more processes at one time   */
	int csv_fd; /* -1: there is none, or it failed          */
	uint64_t next_ns;
	uint64_t at_ns; /* CLOCK_MONOTONIC of the last look */
	uint64_t start_blocks, start_bytes, before_blocks, before_bytes;
};

/* Those that are listed, as it is they that can be told apart later. */
static struct heap_amount live_of(const struct heap_census *c)
{
	struct heap_amount sum = { 0 };

	for (uint32_t i = 0; i < c->n; i++) {
		if (c->use[i].objects)
			continue;
		sum.blocks += c->use[i].live.blocks;
		sum.bytes += c->use[i].live.bytes;
		sum.resident += c->use[i].live.resident;
	}
	return sum;
}

static void add_row(struct ledger_row *row, const struct heap_amount *a)
{
	row->blocks += (int64_t)a->blocks;
	row->bytes += (int64_t)a->bytes;
	row->resident += (int64_t)a->resident;
}

static void add_use(struct ledger_row *parts, const struct heap_use *u)
{
	add_row(&parts[LEDGER_LIVE], &u->live);
	add_row(&parts[LEDGER_FREE], &u->cached);
	add_row(&parts[LEDGER_FREE], &u->fast);
	add_row(&parts[LEDGER_FREE], &u->free);
	add_row(&parts[LEDGER_FREE], &u->top);
	add_row(&parts[LEDGER_METADATA], &u->metadata);
	add_row(&parts[LEDGER_HELD], &u->unknown);
}

static void take_census(struct ledger *l, const struct heap_census *c)
{
	size_t len = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		const struct heap_use *u = &c->use[i];

		add_use(l->parts, u);
		if (u->objects) {
			add_use(l->objects, u);
			l->object_arenas += u->arenas;
			l->objects_by = u->allocator;
		}
		if (u->doubt)
			l->doubt = u->doubt;
		if (len < sizeof(l->allocators))
			len += (size_t)snprintf(l->allocators + len, sizeof(l->allocators) - len,
						"%s%s", len ? ", " : "", u->allocator);
	}
}

static void take_resident(struct ledger *l, const struct heap_resident *r)
{
	int64_t heap = 0;

	for (int i = 0; i < N_LEDGER_PARTS; i++)
		if (ledger_of_heap((enum ledger_part)i))
			heap += l->parts[i].resident;
	l->rss = (int64_t)r->rollup;
	l->parts[LEDGER_STACKS].resident = (int64_t)r->stacks;
	l->parts[LEDGER_DATA].resident = (int64_t)r->written;
	l->parts[LEDGER_FILE].resident = (int64_t)(r->file + r->special);
	l->parts[LEDGER_SHARED].resident = (int64_t)r->shmem;
	/* The heap has grown since smaps was read: what is too much is in not explained. */
	if ((int64_t)r->anonymous > heap)
		l->parts[LEDGER_ANONYMOUS].resident = (int64_t)r->anonymous - heap;
}

/* One process, now. `with_objects`: an interpreter's are traced; `blocks`: where those in use go, or
 * NULL. */
static int look(pid_t pid, bool with_objects, struct heap_blocks *blocks, struct ledger *ret_ledger,
		struct heap_census *ret_census, struct err *e)
{
	_cleanup_(heap_process_closep) struct heap_process *p = NULL;
	struct heap_census c = { .blocks = blocks };
	struct ledger l = { .processes = 1 };
	uint64_t from = run_now_ns();
	int r = heap_process_open(pid, WALK_NS, &p, e);

	if (r < 0)
		return r;
	/* One that has ended, and not been waited for. */
	if (!heap_process_memory(p)->n_maps)
		return err_set(e, -ESRCH, "process %d has ended", (int)pid);
	r = heap_census_take(heap_process_memory(p), &c);
	if (r < 0)
		return err_set(e, r, "out of memory for the heap of process %d", (int)pid);
	take_census(&l, &c);
	take_resident(&l, heap_process_resident(p));
	l.stranger = heap_process_stranger(p);
	l.objects_traced = l.objects_by && with_objects;
	for (uint32_t i = 0; l.stranger && i < c.n; i++)
		if (strstr(l.stranger, c.use[i].allocator))
			l.stranger = NULL;
	l.took_ns = (int64_t)(run_now_ns() - from);
	*ret_ledger = l;
	*ret_census = c;
	return 0;
}

/*
 * The same of one that runs: an allocator that is in the middle of a call may not be found, because what it
 * writes does not add up for that moment. Looked for again where it was there before, or nobody knows.
 */
static int look_at(const struct run *r, struct holder *h, struct heap_blocks *blocks,
		   struct ledger *ret_ledger, struct heap_census *ret_census, struct err *e)
{
	int rc = 0;

	for (int i = 0; i < LOOKS; i++) {
		rc = look(h->pid, r->cfg->python_objects, blocks, ret_ledger, ret_census, e);
		if (rc < 0 || ret_census->n || !h->walked)
			break;
	}
	h->walked = rc == 0 && ret_census->n;
	return rc;
}

static void begin_holder(struct run *r, struct holder *h)
{
	struct heap_census c;
	struct ledger l;
	struct err e = { 0 };
	int rc;

	h->at_start.max = h->at_end.max =
		((uint64_t)r->cfg->mem_mb << 20) / LISTS_SHARE / sizeof(struct heap_block);
	if (h->newborn) {
		h->started = true;
		return;
	}
	if (!run_tracing_allocs(r))
		return;
	h->walked = true;
	rc = look_at(r, h, &h->at_start, &l, &c, &e);
	if (rc < 0) {
		run_say(r, "what is in use already is not known: %s", e.msg);
		return;
	}
	h->started = !h->at_start.over;
	if (h->at_start.over)
		run_note(
			r, false,
			"process %d had more blocks in use at the start than --mem has room to list: what was there before is not told apart",
			(int)h->pid);
	h->image = proc_table_live(r->procs, h->pid);
	r->holders->start_blocks += live_of(&c).blocks;
	r->holders->start_bytes += live_of(&c).bytes;
	run_say(r, "process %d had %llu blocks in use, %llu bytes: walked in %.1f ms", (int)h->pid,
		(unsigned long long)live_of(&c).blocks, (unsigned long long)live_of(&c).bytes,
		(double)l.took_ns / 1e6);
}

static void write_text(struct run *r, const struct strbuf *text)
{
	struct holders *all = r->holders;

	if (all->csv_fd < 0 ||
	    (text->s && write(all->csv_fd, text->s, text->len) == (ssize_t)text->len))
		return;
	run_note(r, true, "ledger.csv is not whole: %s", strerror(text->s ? errno : ENOMEM));
	closep(&all->csv_fd);
	all->csv_fd = -1;
}

void run_ledger_open(struct run *r)
{
	_cleanup_(strbuf_free) struct strbuf header = { 0 };
	char path[4096];

	if (!r->cfg->dir || !r->holders)
		return;
	snprintf(path, sizeof(path), "%s/ledger%s%s.csv", r->cfg->dir, r->cfg->stamp ? "-" : "",
		 r->cfg->stamp ? r->cfg->stamp : "");
	r->holders->csv_fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->holders->csv_fd < 0)
		run_note(r, true, "%s: %s", path, strerror(errno));
	ledger_csv_header(&header);
	write_text(r, &header);
}

static bool is_listed(const struct holders *all, pid_t pid)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].pid == pid)
			return true;
	return false;
}

/* Of those that were asked for, what they had forked before the run. */
static void add_descendants(struct run *r)
{
	struct holders *all = r->holders;
	struct watched *t, *next;

	if (r->cfg->n_groups || !r->cfg->children)
		return;
	HASH_ITER (hh, r->targets, t, next) {
		if (t->ended_ns || is_listed(all, t->pid))
			continue;
		all->full |= all->n == PROCESSES_MAX;
		if (all->n < PROCESSES_MAX)
			all->rows[all->n++] = (struct holder){ .pid = t->pid };
	}
}

void run_ledger_begin(struct run *r)
{
	const struct run_config *cfg = r->cfg;

	if (cfg->all || cfg->tid)
		return;
	r->holders = calloc(1, sizeof(*r->holders));
	if (!r->holders)
		return;
	r->holders->csv_fd = -1;
	if (cfg->command && r->launch)
		r->holders->rows[r->holders->n++] = (struct holder){ .pid = launch_pid(r->launch),
								     .asked = !cfg->n_groups,
								     .newborn = cfg->delay_s <= 0 };
	for (uint32_t i = 0; i < cfg->n_pids && r->holders->n < PROCESSES_MAX; i++)
		r->holders->rows[r->holders->n++] =
			(struct holder){ .pid = cfg->pids[i], .asked = !cfg->n_groups };
	add_descendants(r);
	if (!r->holders->n && !cfg->n_groups) {
		free(TAKE_PTR(r->holders));
		return;
	}
	for (uint32_t i = 0; i < r->holders->n; i++)
		begin_holder(r, &r->holders->rows[i]);
}

/* Its pid may be another's by now. */
static bool is_over(struct run *r, const struct holder *h)
{
	const struct watched *t = run_target_find(r, h->pid);

	return t ? t->ended_ns != 0 : !h->asked;
}

void run_ledger_member(struct run *r, pid_t pid)
{
	struct holders *all = r->holders;
	struct holder *h = NULL;

	for (uint32_t i = 0; all && i < all->n; i++)
		if (all->rows[i].pid == pid && !is_over(r, &all->rows[i]))
			return;
	if (all && all->n < PROCESSES_MAX)
		h = &all->rows[all->n++];
	for (uint32_t i = 0; all && !h && i < all->n; i++)
		if (is_over(r, &all->rows[i])) {
			h = &all->rows[i];
			heap_blocks_free(&h->at_start);
			heap_blocks_free(&h->at_end);
			free(h->traced);
		}
	if (!h) {
		if (all)
			all->full = true;
		return;
	}
	*h = (struct holder){ .pid = pid, .newborn = true };
	begin_holder(r, h);
}

static void sum_up(const struct holders *all, struct ledger *ret_sum)
{
	struct ledger sum = { 0 };

	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].ledger.processes)
			ledger_add(&sum, &all->rows[i].ledger);
	*ret_sum = sum;
}

/* false: none of them is left. */
static bool look_at_all(struct run *r, bool with_blocks)
{
	struct holders *all = r->holders;
	bool any = false;

	for (uint32_t i = 0; i < all->n; i++) {
		struct holder *h = &all->rows[i];
		struct heap_census c;
		struct err e = { 0 };
		struct ledger l;
		int rc = is_over(r, h)
				 ? -ESRCH
				 : look_at(r, h, with_blocks && h->started ? &h->at_end : NULL, &l,
					   &c, &e);

		all->oom |= rc == -ENOMEM;
		if (rc < 0)
			continue;
		/* Of several, those that have ended are in the sum no more. */
		for (uint32_t k = 0; !any && k < all->n; k++)
			all->rows[k].ledger.processes = 0;
		h->ledger = l;
		any = true;
	}
	if (any)
		all->at_ns = run_now_ns();
	return any;
}

void run_ledger_tick(struct run *r, int64_t traced)
{
	_cleanup_(strbuf_free) struct strbuf row = { 0 };
	uint64_t from = run_now_ns();
	struct timespec wall;
	struct ledger sum;

	if (!r->holders || from < r->holders->next_ns || !look_at_all(r, false))
		return;
	r->holders->next_ns = from + SHARE * (r->holders->at_ns - from);
	sum_up(r->holders, &sum);
	clock_gettime(CLOCK_REALTIME, &wall);
	ledger_csv_row(&sum, (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec, traced, &row);
	write_text(r, &row);
}

void run_ledger_end(struct run *r, bool exact)
{
	if (!r->holders)
		return;
	r->holders->complete = look_at_all(r, exact);
	r->holders->splits = exact && r->holders->complete;
}

void run_ledger_block(struct run *r, const struct ms_block_key *key)
{
	struct holders *all = r->holders;

	for (uint32_t i = 0; all && all->splits && i < all->n; i++) {
		struct holder *h = &all->rows[i];

		if (h->pid != (pid_t)key->proc.tgid || is_over(r, h))
			continue;
		if (h->n_traced == h->room_traced) {
			uint64_t room = h->room_traced ? 2 * h->room_traced : 1024;
			uint64_t *more = reallocarray(h->traced, room, sizeof(*more));

			all->oom |= !more;
			if (!more)
				return;
			h->traced = more;
			h->room_traced = room;
		}
		h->traced[h->n_traced++] = key->addr;
		return;
	}
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Was it in use at the start, as it is now? */
static bool was_there(const struct holder *h, const struct heap_block *b)
{
	uint64_t at = heap_blocks_find(&h->at_start, b->addr);

	return at < h->at_start.n && h->at_start.rows[at].addr == b->addr &&
	       h->at_start.rows[at].words == b->words;
}

/* What is in use, by who knows of it. */
static void split(struct holders *all, struct holder *h)
{
	struct ledger_row *rows = h->ledger.parts;
	uint64_t at = 0;

	if (h->n_traced)
		qsort(h->traced, h->n_traced, sizeof(*h->traced), by_number);
	for (uint64_t i = 0; i < h->at_end.n; i++) {
		const struct heap_block *b = &h->at_end.rows[i];
		struct heap_amount one = { 1, 8 * (uint64_t)b->words,
					   8 * (uint64_t)b->resident_words };
		enum ledger_part part = LEDGER_LIVE;

		while (at < h->n_traced && h->traced[at] < b->addr)
			at++;
		/* What is aligned in a mapping of its own begins somewhere in it. */
		if (at < h->n_traced && h->traced[at] - b->addr <= one.bytes)
			part = LEDGER_TRACED;
		else if (was_there(h, b))
			part = LEDGER_BEFORE;
		if (part == LEDGER_LIVE)
			continue;
		add_row(&rows[part], &one);
		rows[LEDGER_LIVE].blocks--;
		rows[LEDGER_LIVE].bytes -= (int64_t)one.bytes;
		rows[LEDGER_LIVE].resident -= (int64_t)one.resident;
	}
	all->before_blocks += (uint64_t)rows[LEDGER_BEFORE].blocks;
	all->before_bytes += (uint64_t)rows[LEDGER_BEFORE].bytes;
}

/* Into the heap profile, as what it is. */
static void add_before(struct run *r, const struct holder *h)
{
	const struct ledger_row *row = &h->ledger.parts[LEDGER_BEFORE];
	location_id at = dict_location(r->dict, (module_id){ 0 }, BEFORE_ADDR);
	struct line line = { .function = dict_string(r->dict, "[before attach]") };
	struct proc *p = proc_table_live(r->procs, h->pid);
	struct label labels[] = {
		{ .key = dict_string(r->dict, "pid"), .num = h->pid },
		{ .key = dict_string(r->dict, "comm"),
		  .str = dict_string(r->dict, p && *proc_comm(p) ? proc_comm(p) : "[unknown]") },
	};
	int64_t values[] = { 0, 0, row->blocks, row->bytes };

	if (!row->blocks || !r->profiles[PROFILE_HEAP])
		return;
	dict_location_name(r->dict, at, &line, 1);
	r->oom |= profile_add(r->profiles[PROFILE_HEAP], dict_stack(r->dict, &at, 1),
			      dict_labels(r->dict, labels, 2), values) < 0;
}

void run_ledger_finish(struct run *r)
{
	struct holders *all = r->holders;

	if (!all)
		return;
	if (all->full)
		run_note(r, false,
			 "where RSS is, is told of %d processes: there were more at one time",
			 PROCESSES_MAX);
	if (all->oom)
		run_note(r, true,
			 "out of memory for the list of blocks: where RSS is, is not told apart");
	for (uint32_t i = 0; i < all->n && all->splits && !all->oom; i++) {
		struct holder *h = &all->rows[i];

		if (!h->started || !h->ledger.processes || h->at_end.over)
			continue;
		if (proc_table_live(r->procs, h->pid) != h->image)
			h->at_start.n = 0;
		split(all, h);
		add_before(r, h);
	}
}

/* Is what was there before known of each that is still there? */
static bool knows_before(const struct holders *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->rows[i].ledger.processes &&
		    (!all->rows[i].started || all->rows[i].at_end.over))
			return false;
	return all->splits && !all->oom;
}

void run_ledger_facts(struct run *r, struct run_summary *to)
{
	const struct holders *all = r->holders;
	uint64_t start = session_start_ns(r->session);

	if (!all)
		return;
	sum_up(all, &to->ledger.now);
	to->ledger.at_ns = all->at_ns > start ? (int64_t)(all->at_ns - start) : 0;
	to->alloc.before_known = knows_before(all);
	to->alloc.before_objects = all->before_blocks;
	to->alloc.before_bytes = all->before_bytes;
	to->alloc.start_objects = all->start_blocks;
	to->alloc.start_bytes = all->start_bytes;
}

void run_ledger_free(struct run *r)
{
	struct holders *all = r->holders;

	if (!all)
		return;
	for (uint32_t i = 0; i < all->n; i++) {
		heap_blocks_free(&all->rows[i].at_start);
		heap_blocks_free(&all->rows[i].at_end);
		free(all->rows[i].traced);
	}
	closep(&all->csv_fd);
	free(all);
}
