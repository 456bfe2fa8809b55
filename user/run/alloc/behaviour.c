/*
 * The allocation functions of an allocator that was linked in and has lost its names, by what they do.
 *
 *   heap/jemalloc.h         finds its structures in the process, by what they contain
 *   elf/code_refs.h         the functions that use its tables of size classes, some twenty or thirty: those
 *                           that turn a size into a class are among them
 *   probes/call_watch.h     what these are called with, and what is in the result register behind the call
 *   analyse/call_shapes.h   a thousand results in a row that are live blocks of the size asked for
 *
 * Before the run begins, for ten seconds at most, and at the pace that --max-overhead allows. Each function
 * is watched until it is known what it does. Places behind calls are learned from return addresses at the
 * entries. What may throw never gets a return probe, neither now nor later.
 */
#include "analyse/call_shapes.h"
#include "base/units.h"
#include "collect/overhead/governor.h"
#include "collect/probes/call_watch.h"
#include "collect/probes/placement.h"
#include "elf/code_refs.h"
#include "heap/jemalloc.h"
#include "heap/process.h"
#include "run/alloc/alloc.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

enum {
	BACKS_MAX = 512,    /* places behind calls                                       */
	BURST_CALLS = 1000, /* hits                                                      */
	BURSTS_LEAST = 4,   /* before it may be said that there is nothing more to find  */
	QUIET_BURSTS = 3,   /* without anything new that may be an allocation function   */
	FUNCTION_MAX =
		1 << 18, /* bytes of a function in which a place behind a call is looked up */
};
#define SEARCH_NS 10000000000ULL
#define BURST_NS  100000000ULL
#define LOOK_NS   1000000L     /* between two looks into the ring */
#define MEMORY_NS 8000000000LL /* CPU time of reading the process                               */

/* An instruction behind a call. */
struct back {
	uint64_t pc;       /* an address                            */
	uint32_t function; /* that was last called from there       */
	bool usable, watched;
};

struct search {
	struct alloc *al;
	struct alloc_hidden hidden;
	struct elf_file *elf;
	struct cfi *cfi;
	struct heap_jemalloc je;
	uint32_t fdes[CODE_REFS_MAX], n;
	struct back backs[BACKS_MAX];
	uint32_t n_backs;
	struct call_judge *judge;
	struct call_watch watch;
	uint64_t begin_ns, end_ns, hits;
	double cost_ns;
	uint32_t bursts, quiet;
};

static void search_fini(struct search *s)
{
	call_judge_free(s->judge);
	cfi_free(s->cfi);
	elf_file_close(s->elf);
	closep(&s->hidden.fd);
}

/* --- what the allocator says --- */

static struct call_block block_of(const struct search *s, const struct drain_call *call)
{
	struct call_block b = { .answer = CALL_BLOCK_UNKNOWN };
	int r = heap_jemalloc_block(&s->je, call->addr, call->entry, call->edata, &b.start,
				    &b.size);

	if (r == HEAP_IN_USE)
		b.answer = CALL_BLOCK_IN_USE;
	else if (r == -ENOENT)
		b.answer = CALL_BLOCK_NONE;
	return b;
}

/* --- calls --- */

/* Of the process's own image alone, and a place where an instruction begins. */
static bool is_behind_call(const struct search *s, uint64_t pc)
{
	uint64_t vaddr = pc - s->hidden.bias, off;
	_cleanup_(freep) uint8_t *code = NULL;
	const struct elf_segment *segs;
	struct cfi_fde fde;
	uint32_t ix, n;

	if (cfi_find(s->cfi, vaddr, &ix) < 0)
		return false;
	fde = cfi_fde_at(s->cfi, ix);
	segs = elf_file_segments(s->elf, &n);
	if (fde.end - fde.start > FUNCTION_MAX ||
	    !elf_segments_vaddr_to_off(segs, n, fde.start, &off))
		return false;
	code = malloc(fde.end - fde.start);
	return code && elf_file_read(s->elf, off, code, fde.end - fde.start, NULL) == 0 &&
	       placement_behind_call(code, fde.end - fde.start, vaddr - fde.start);
}

static struct back *back_of(struct search *s, uint64_t pc)
{
	for (uint32_t i = 0; i < s->n_backs; i++)
		if (s->backs[i].pc == pc)
			return &s->backs[i];
	return NULL;
}

/* false: it is none of the functions that are watched. */
static bool function_at(const struct search *s, uint64_t pc, uint32_t *ret_function)
{
	uint64_t vaddr = pc - s->hidden.bias;
	uint32_t low = 0, high = s->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (cfi_fde_at(s->cfi, s->fdes[mid]).start < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	*ret_function = low;
	return low < s->n && cfi_fde_at(s->cfi, s->fdes[low]).start == vaddr;
}

enum drain_says behaviour_on_call(void *ctx, const void *record, const void *more)
{
	const struct drain_call *call = record;
	struct alloc *al = ctx;
	struct search *s = al->search;
	struct back *back;
	uint32_t function;

	(void)more;
	if (!s)
		return DRAIN_TAKEN;
	if (call->behind) {
		call_judge_back(s->judge, &(struct call_back){ call->tid, call->sp, call->pc,
							       call->addr, block_of(s, call) });
		return DRAIN_TAKEN;
	}
	if (!function_at(s, call->pc, &function))
		return DRAIN_TAKEN;
	back = back_of(s, call->word);
	if (!back && s->n_backs < BACKS_MAX) {
		back = &s->backs[s->n_backs++];
		*back = (struct back){ .pc = call->word };
		back->usable = is_behind_call(s, call->word);
	}
	if (back)
		back->function = function;
	call_judge_entry(s->judge, &(struct call_entry){
					   .function = function,
					   .tid = call->tid,
					   .sp = call->sp,
					   .ra = call->word,
					   .arg = { call->arg[0], call->arg[1] },
					   .block = block_of(s, call),
					   .seen = back && back->watched,
				   });
	return DRAIN_TAKEN;
}

/* --- the search --- */

static bool is_open(const struct search *s, uint32_t function)
{
	return call_judge_of(s->judge, function).state == CALL_OPEN;
}

struct places {
	uint64_t offsets[CODE_REFS_MAX + BACKS_MAX];
	bool behind[CODE_REFS_MAX + BACKS_MAX];
	uint32_t n;
};

static bool add_place(const struct search *s, uint64_t vaddr, bool behind, struct places *p)
{
	const struct elf_segment *segs;
	uint32_t n_segs;

	segs = elf_file_segments(s->elf, &n_segs);
	if (!elf_segments_vaddr_to_off(segs, n_segs, vaddr, &p->offsets[p->n]))
		return false;
	p->behind[p->n++] = behind;
	return true;
}

/* Entries of functions that are not known yet, and the places behind calls of them. */
static void find_places(struct search *s, struct places *p)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (is_open(s, i))
			add_place(s, cfi_fde_at(s->cfi, s->fdes[i]).start, false, p);
	for (uint32_t i = 0; i < s->n_backs; i++) {
		struct back *b = &s->backs[i];

		b->watched = b->usable && is_open(s, b->function) &&
			     add_place(s, b->pc - s->hidden.bias, true, p);
	}
}

/* Somebody wants the run to end. */
static bool is_interrupted(void)
{
	sigset_t set;

	return sigpending(&set) == 0 && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM));
}

static void sleep_until(uint64_t ns)
{
	while (now_ns() < ns && !is_interrupted())
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static int one_burst(struct search *s)
{
	_cleanup_(freep) struct places *p = calloc(1, sizeof(*p));
	uint64_t cpu_ns = thread_cpu_ns(), detach_ns = uprobes_detach_ns(), from, hits;
	int r;

	if (!p)
		return -ENOMEM;
	find_places(s, p);
	if (!p->n)
		return -ENOENT;
	r = call_watch_begin(&s->watch, p->offsets, p->behind, p->n, BURST_CALLS);
	if (r < 0)
		return r;
	from = now_ns();
	while (session_calls_left(s->al->run->session) && now_ns() < from + BURST_NS) {
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
		drain_events(s->al->run->drain);
	}
	hits = call_watch_end(&s->watch);
	drain_events(s->al->run->drain);
	call_judge_break(s->judge);
	s->hits += hits;
	s->bursts++;
	s->cost_ns += (double)hits * CALL_WATCH_HIT_NS +
		      (double)(thread_cpu_ns() - cpu_ns + uprobes_detach_ns() - detach_ns);
	return 0;
}

/* Is there a function of which it may still turn out that it allocates? */
static bool may_find_more(struct search *s, uint64_t hits_before)
{
	bool promising = false;

	for (uint32_t i = 0; i < s->n; i++)
		promising |= call_judge_of(s->judge, i).promising && is_open(s, i);
	/* Nothing is called at present: that says nothing. */
	if (s->hits != hits_before)
		s->quiet = promising ? 0 : s->quiet + 1;
	return s->bursts < BURSTS_LEAST || s->quiet < QUIET_BURSTS;
}

static void watch_all(struct search *s)
{
	double share = fmax(s->al->run->cfg->max_overhead / 100, 1e-3);
	uint64_t hits_before, due;

	s->al->search = s;
	do {
		hits_before = s->hits;
		if (one_burst(s) < 0)
			break;
		due = s->begin_ns + (uint64_t)fmin(s->cost_ns / share, 2.0 * SEARCH_NS);
		sleep_until(due < s->begin_ns + SEARCH_NS ? due : s->begin_ns + SEARCH_NS);
	} while (may_find_more(s, hits_before) && now_ns() < s->begin_ns + SEARCH_NS &&
		 !is_interrupted());
	s->end_ns = now_ns();
	s->al->search = NULL;
}

/* What it begins with: structures, code, and functions that may be it. -ENOENT: not all of that is there. */
static int search_open(struct search *s, pid_t pid)
{
	uint64_t tables[2];
	_cleanup_(heap_process_closep) struct heap_process *process = NULL;
	int r = heap_process_open(pid, MEMORY_NS, &process, NULL);

	if (r == 0)
		r = heap_jemalloc_find(heap_process_memory(process), &s->je);
	if (r == 0)
		r = elf_file_open(s->hidden.fd, s->hidden.path, &s->elf, NULL);
	if (r == 0)
		r = cfi_open(s->elf, CFI_EH_FRAME, &s->cfi, NULL);
	if (r < 0)
		return r;
	session_calls_map(s->al->run->session, s->je.root, heap_jemalloc_edata_bits(&s->je));
	tables[0] = s->je.sizes - s->hidden.bias;
	tables[1] = s->je.classes - s->hidden.bias;
	r = code_refs_users(s->elf, s->cfi, tables, 2, s->fdes, CODE_REFS_MAX);
	if (r > 0)
		r = code_refs_entries(s->elf, s->cfi, s->fdes, (uint32_t)r);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	s->n = (uint32_t)r;
	s->judge = call_judge_new(s->n, heap_jemalloc_room);
	return s->judge ? 0 : -ENOMEM;
}

/* --- what was found --- */

static enum alloc_way way_of(const struct search *s, uint32_t function, enum call_shape shape)
{
	static const enum alloc_way ways[N_CALL_SHAPES] = {
		[CALL_SIZE] = ALLOC_WAY_MALLOC,
		[CALL_COUNT_SIZE] = ALLOC_WAY_CALLOC,
		[CALL_ALIGN_SIZE] = ALLOC_WAY_ALIGNED,
		[CALL_REALLOC] = ALLOC_WAY_REALLOC,
	};

	if (shape == CALL_SIZE && code_refs_may_throw(s->elf, s->cfi, s->fdes[function]))
		return ALLOC_WAY_NEW;
	return ways[shape];
}

static const char *way_name(enum alloc_way way, enum call_shape shape)
{
	return way == ALLOC_WAY_NEW ? "operator new" : call_shape_name(shape);
}

/* Stacks end in these functions: so a site is who called them, as where they have names. */
static void name_function(struct alloc *al, module_id module, const struct alloc_known *known,
			  const char *what)
{
	struct line line = { 0 };
	char name[64];

	if (!known->probed)
		return;
	snprintf(name, sizeof(name), "%s [by behaviour]", what);
	line.function = dict_string(al->run->dict, name);
	dict_location_name(al->run->dict, dict_location(al->run->dict, module, known->probed),
			   &line, 1);
}

static void say_found(const struct search *s, const char *list, uint32_t more)
{
	run_note(
		s->al->run, false,
		"allocation functions of %s found by their behaviour: %s%s (found in %.1f s, for %s of CPU "
		"time)",
		s->hidden.path, list, more ? ", and others" : "",
		(double)(s->end_ns - s->begin_ns) / 1e9, unit_ns((int64_t)s->cost_ns).s);
}

static int take_found(struct search *s)
{
	struct alloc_known known[64];
	enum call_shape shapes[64];
	uint32_t n = 0, more = 0, rare = 0;
	char list[400] = "";
	size_t len = 0;
	int r;

	for (uint32_t i = 0; i < s->n; i++) {
		struct call_verdict v = call_judge_of(s->judge, i);
		struct cfi_fde fde = cfi_fde_at(s->cfi, s->fdes[i]);

		rare += v.state == CALL_OPEN && v.promising;
		if (v.state != CALL_ALLOCATES || n == 64)
			continue;
		shapes[n] = v.shape;
		known[n] = (struct alloc_known){ fde.start, fde.end - fde.start,
						 way_of(s, i, v.shape), 0 };
		if (len < sizeof(list) - 100)
			len += (size_t)snprintf(
				list + len, sizeof(list) - len,
				"%s0x%llx as %s (%s of %s results were live blocks of the size asked)",
				len ? ", " : "", (unsigned long long)fde.start,
				way_name(known[n].way, v.shape), unit_count((int64_t)v.agreed).s,
				unit_count((int64_t)v.results).s);
		else
			more++;
		n++;
	}
	r = n ? alloc_probes_known(s->al->probes, s->hidden.module, known, n) : 0;
	if (r <= 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		name_function(s->al, s->hidden.module, &known[i],
			      way_name(known[i].way, shapes[i]));
	say_found(s, list, more);
	if (rare)
		run_note(
			s->al->run, false,
			"%u other functions of %s may allocate, but were called too rarely to be sure: what they "
			"allocate is not in the figures",
			rare, s->hidden.path);
	return r;
}

/* Why nothing was found, for the sentence that says so. */
static void say_nothing(struct search *s, int result)
{
	char *why = s->al->unfound;
	size_t size = sizeof(s->al->unfound);

	if (result == -ENOENT || result == -EOPNOTSUPP)
		snprintf(why, size, "its structures were not found in memory");
	else if (result < 0)
		snprintf(why, size, "they could not be searched for: %s", strerror(-result));
	else
		snprintf(
			why, size,
			"none had a thousand results that were live blocks, in %s calls and %.1f s",
			unit_count((int64_t)s->hits).s, (double)(s->end_ns - s->begin_ns) / 1e9);
}

static int search_in(struct alloc *al, pid_t pid, const struct alloc_hidden *hidden)
{
	struct search *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->al = al;
	s->hidden = *hidden;
	s->begin_ns = now_ns();
	s->watch = (struct call_watch){ .session = al->run->session, .fd = hidden->fd, .pid = pid };
	r = search_open(s, pid);
	if (r == 0) {
		run_say(al->run, "%s: %u functions use jemalloc's tables; their calls are watched",
			hidden->path, s->n);
		watch_all(s);
		r = take_found(s);
	}
	if (r <= 0)
		say_nothing(s, r);
	run_say(al->run, "%s: %llu hits in %u bursts, %u places behind calls, %.1f ms",
		hidden->path, (unsigned long long)s->hits, s->bursts, s->n_backs, s->cost_ns / 1e6);
	for (uint32_t i = 0; i < s->n && s->judge; i++) {
		struct call_verdict v = call_judge_of(s->judge, i);

		if (v.entries)
			run_say(al->run,
				"0x%llx: state %d, shape %d, %llu entries, %llu results, %llu not judged",
				(unsigned long long)cfi_fde_at(s->cfi, s->fdes[i]).start, v.state,
				v.shape, (unsigned long long)v.entries,
				(unsigned long long)v.results, (unsigned long long)v.unjudged);
	}
	search_fini(s);
	free(s);
	return r;
}

struct each {
	struct alloc *al;
	int found;
};

static void look_in(void *ctx, const struct target *t)
{
	struct alloc_hidden hidden;
	struct each *each = ctx;
	int r;

	if (t->ended_ns || each->found < 0 ||
	    !alloc_probes_hidden(each->al->probes, t->pid, &hidden))
		return;
	if (strcmp(hidden.allocator, "jemalloc") != 0) {
		close(hidden.fd);
		snprintf(each->al->unfound, sizeof(each->al->unfound),
			 "they can be found by their behaviour in jemalloc alone");
		return;
	}
	r = search_in(each->al, t->pid, &hidden);
	if (r > 0)
		each->found += r;
}

int behaviour_find(struct alloc *al)
{
	const struct run_config *cfg = al->run->cfg;
	struct each each = { al, 0 };

	if (!live_wanted(cfg) || cfg->command || !call_watch_can(al->run->session))
		return 0;
	targets_each(al->run, look_in, &each);
	return each.found;
}
