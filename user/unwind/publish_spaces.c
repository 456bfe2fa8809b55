/*
 * Processes: the lists of spans in the pool, and the entries that lead to them.
 */
#include "unwind/publish_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPANS_TOP (1ULL << 63)

/* --- lists --- */

static const struct ms_span *spans_of(const struct publish *p, const struct span_list *l)
{
	return (const struct ms_span *)(const void *)(p->mem.pool + (size_t)l->at * MS_SPAN_WORDS);
}

static void list_unref(struct publish *p, struct span_list *l, uint64_t now_ns)
{
	const struct ms_span *spans;

	if (!l || --l->refs)
		return;
	spans = spans_of(p, l);
	for (uint32_t i = 0; i < l->n; i++)
		if (spans[i].kind == MS_SPAN_TABLE)
			publish_table_unref(p, spans[i].table, now_ns);
	HASH_DELETE(hh, p->lists, l);
	pool_give_back(&p->pool, l->at, now_ns);
	p->stats.lists--;
	p->stats.spans -= l->n;
	free(l);
}

static int list_new(struct publish *p, const struct ms_span *spans, uint32_t n, uint64_t now_ns,
		    struct span_list **ret_list)
{
	struct span_list *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->refs = 1;
	l->n = n;
	r = publish_take(p, POOL_SPANS, 0, pool_units((uint64_t)n * MS_SPAN_WORDS), true, now_ns,
			 &l->at);
	if (r < 0) {
		free(l);
		return r;
	}
	memcpy(p->mem.pool + (size_t)l->at * MS_SPAN_WORDS, spans, n * sizeof(*spans));
	HASH_ADD_KEYPTR(hh, p->lists, spans_of(p, l), n * sizeof(*spans), l);
	if (!hash_added(l)) {
		pool_give_back(&p->pool, l->at, now_ns);
		free(l);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		if (spans[i].kind == MS_SPAN_TABLE)
			publish_table_ref(p, spans[i].table);
	p->stats.lists++;
	p->stats.spans += n;
	*ret_list = l;
	return 0;
}

static int list_get(struct publish *p, const struct ms_span *spans, uint32_t n, uint64_t now_ns,
		    struct span_list **ret_list)
{
	struct span_list *l;

	HASH_FIND(hh, p->lists, spans, n * sizeof(*spans), l);
	if (!l)
		return list_new(p, spans, n, now_ns, ret_list);
	l->refs++;
	*ret_list = l;
	return 0;
}

/* --- putting spans in order --- */

static int by_start(const void *a, const void *b)
{
	const struct ms_span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* What a span without a table says does not depend on these. */
static void normalize(const struct publish *p, struct ms_span *s)
{
	if (s->kind == MS_SPAN_TABLE && s->table >= p->n_tables)
		s->kind = MS_SPAN_PENDING;
	if (s->kind != MS_SPAN_TABLE) {
		s->bias = 0;
		s->table = 0;
	}
}

static bool joins(const struct ms_span *a, const struct ms_span *b)
{
	return a->end == b->start && a->kind == b->kind && a->table == b->table &&
	       a->bias == b->bias;
}

/*
 * Sorted, disjoint, joined; in place. Returns how many are left. [vsyscall] lies among the kernel's
 * addresses, where nobody runs, and is left out: the walker's comparisons hold below 2^63 alone, and its
 * search would go astray where it meets such a span, before the one that it looks for.
 */
static uint32_t put_in_order(const struct publish *p, struct ms_span *s, uint32_t n)
{
	uint32_t kept = 0;

	qsort(s, n, sizeof(*s), by_start);
	for (uint32_t i = 0; i < n; i++) {
		struct ms_span next = s[i];

		normalize(p, &next);
		if (kept && next.start < s[kept - 1].end)
			next.start = s[kept - 1].end;
		if (next.start >= next.end || next.end > SPANS_TOP)
			continue;
		if (kept && joins(&s[kept - 1], &next))
			s[kept - 1].end = next.end;
		else
			s[kept++] = next;
	}
	return kept;
}

/* No more than the walker searches: first those go that have no table. */
static uint32_t leave_out(struct publish *p, struct ms_span *s, uint32_t n)
{
	uint32_t surplus = n > MS_MAX_SPANS ? n - MS_MAX_SPANS : 0, kept = 0;

	p->stats.spans_left_out += surplus;
	for (uint32_t i = 0; i < n && surplus; i++) {
		if (s[i].kind != MS_SPAN_TABLE)
			surplus--;
		else
			s[kept++] = s[i];
		if (!surplus) {
			memmove(s + kept, s + i + 1, (n - i - 1) * sizeof(*s));
			kept += n - i - 1;
		}
	}
	if (n > MS_MAX_SPANS)
		n = kept < MS_MAX_SPANS ? kept : MS_MAX_SPANS;
	return n;
}

/* --- processes --- */

static struct process *find_proc(const struct publish *p, const struct ms_proc *proc)
{
	struct process *q;

	HASH_FIND(hh, p->by_proc, proc, sizeof(*proc), q);
	return q;
}

static struct process *find_pid(const struct publish *p, uint32_t pid)
{
	struct process *q;

	HASH_FIND(hh_pid, p->by_pid, &pid, sizeof(pid), q);
	return q;
}

/* Its entry no longer leads to its spans; whether another one took the place is the caller's. */
static void leave(struct publish *p, struct process *q, uint64_t now_ns)
{
	if (q->entered) {
		HASH_DELETE(hh_pid, p->by_pid, q);
		p->stats.spaces--;
	}
	q->entered = false;
	if (!q->end_ns)
		q->end_ns = now_ns;
	if (q->end_ns + PUBLISH_KEEP_NS < p->next_forget_ns || !p->next_forget_ns)
		p->next_forget_ns = q->end_ns + PUBLISH_KEEP_NS;
}

static void forget(struct publish *p, struct process *q, uint64_t now_ns)
{
	list_unref(p, q->list, now_ns);
	HASH_DELETE(hh, p->by_proc, q);
	free(q);
}

void publish_space_end(struct publish *p, uint32_t pid, uint64_t now_ns)
{
	struct process *q = find_pid(p, pid);

	/* A child may have inherited an entry that nobody here knows of. */
	p->sink.drop(p->sink.ctx, pid);
	if (q)
		leave(p, q, now_ns);
}

static struct process *add_process(struct publish *p, const struct ms_proc *proc)
{
	struct process *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->proc = *proc;
	HASH_ADD(hh, p->by_proc, proc, sizeof(q->proc), q);
	if (!hash_added(q)) {
		free(q);
		return NULL;
	}
	return q;
}

static struct ms_space space_of(const struct process *q)
{
	return (struct ms_space){
		.start_ns = q->proc.start_ns,
		.exec_id = q->proc.exec_id,
		.spans = q->list->at * MS_SPAN_WORDS,
		.n_spans = q->list->n,
		.as_gen = q->as_gen,
	};
}

/* Makes the entry of its pid lead to its spans. */
static void enter(struct publish *p, struct process *q, uint64_t now_ns)
{
	struct process *before = find_pid(p, q->proc.tgid);
	struct ms_space space = space_of(q);

	if (p->sink.put(p->sink.ctx, q->proc.tgid, &space) < 0) {
		p->stats.entries_failed++;
		publish_space_end(p, q->proc.tgid, now_ns);
		leave(p, q, now_ns);
		return;
	}
	if (before == q)
		return;
	if (before)
		leave(p, before, now_ns);
	q->end_ns = 0;
	q->entered = true;
	HASH_ADD(hh_pid, p->by_pid, proc.tgid, sizeof(q->proc.tgid), q);
	if (!q->hh_pid.tbl) { /* out of memory: nothing could take the entry away later */
		p->sink.drop(p->sink.ctx, q->proc.tgid);
		q->entered = false;
		leave(p, q, now_ns);
		return;
	}
	p->stats.spaces++;
}

static int copy_spans(struct publish *p, const struct ms_span *spans, uint32_t n)
{
	if (n > p->cap_scratch) {
		struct ms_span *more = reallocarray(p->scratch, n, sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->scratch = more;
		p->cap_scratch = n;
	}
	memcpy(p->scratch, spans, n * sizeof(*spans));
	return 0;
}

int publish_space_put(struct publish *p, const struct ms_proc *proc, uint32_t as_gen,
		      const struct ms_span *spans, uint32_t n, bool ended, uint64_t now_ns)
{
	struct process *q = find_proc(p, proc);
	struct span_list *list = NULL, *old;
	int r = n ? copy_spans(p, spans, n) : -ENODATA;

	if (r == 0)
		n = leave_out(p, p->scratch, put_in_order(p, p->scratch, n));
	if (r == 0)
		r = n ? list_get(p, p->scratch, n, now_ns, &list) : -ENODATA;
	if (r == 0 && !q) {
		q = add_process(p, proc);
		r = q ? 0 : -ENOMEM;
	}
	if (r < 0) {
		list_unref(p, list, now_ns);
		publish_space_end(p, proc->tgid, now_ns);
		return r;
	}
	old = q->list;
	q->list = list;
	q->as_gen = as_gen;
	if (!ended) {
		enter(p, q, now_ns);
	} else {
		if (q->entered)
			publish_space_end(p, proc->tgid, now_ns);
		q->end_ns = 0; /* kept from now on */
		leave(p, q, now_ns);
	}
	list_unref(p, old, now_ns);
	return 0;
}

bool publish_space(const struct publish *p, const struct ms_proc *proc, struct ms_space *ret_space)
{
	struct process *q = find_proc(p, proc);

	if (q)
		*ret_space = space_of(q);
	return q != NULL;
}

bool publish_space_of_pid(const struct publish *p, uint32_t pid, struct ms_proc *ret_proc,
			  struct ms_space *ret_space)
{
	struct process *q = find_pid(p, pid);

	if (!q)
		return false;
	*ret_proc = q->proc;
	*ret_space = space_of(q);
	return true;
}

void publish_spaces_tick(struct publish *p, uint64_t now_ns)
{
	struct process *q, *next;

	if (!p->next_forget_ns || now_ns < p->next_forget_ns)
		return;
	p->next_forget_ns = 0;
	HASH_ITER (hh, p->by_proc, q, next) {
		if (q->entered)
			continue;
		if (q->end_ns + PUBLISH_KEEP_NS <= now_ns)
			forget(p, q, now_ns);
		else if (!p->next_forget_ns || q->end_ns + PUBLISH_KEEP_NS < p->next_forget_ns)
			p->next_forget_ns = q->end_ns + PUBLISH_KEEP_NS;
	}
}

void publish_spaces_fini(struct publish *p)
{
	struct process *q, *next;

	HASH_ITER (hh, p->by_proc, q, next) {
		if (q->entered)
			HASH_DELETE(hh_pid, p->by_pid, q);
		HASH_DELETE(hh, p->by_proc, q);
		list_unref(p, q->list, 0);
		free(q);
	}
	free(p->scratch);
}
