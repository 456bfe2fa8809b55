#include "collect/busy.h"

#include "memscope.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* How long a change is given to show before the next one, and how long it must be quiet before more is
 * looked at again. */
#define SETTLE_NS 250000000ULL
#define QUIET_NS  2000000000ULL

#define FIND_NS  100000000ULL /* at least, between two looks at all tasks */
#define BUSY_MAX 4096         /* threads; some 900 bytes each */

struct busy {
	struct session *session;
	struct bpf_link *finder, *lister;
	struct look_gap gap;
	uint64_t found_ns, found_switches;
};

static struct memscope_bpf__bss *bss(const struct busy *b)
{
	return session_skeleton(b->session)->bss;
}

int busy_new(struct session *s, struct busy **ret_busy, struct err *e)
{
	struct memscope_bpf *k = session_skeleton(s);
	_cleanup_(busy_freep) struct busy *b = NULL;

	if (!bpf_program__autoload(k->progs.find_busy))
		return err_set(e, -EOPNOTSUPP,
			       "this kernel has no storage for tasks that tracing programs can use "
			       "(5.15), or its type information does not have the scheduler's run "
			       "queues");
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, -ENOMEM, "out of memory");
	b->session = s;
	b->gap.look_ns = LOOK_USUAL_NS;
	b->finder = bpf_program__attach_iter(k->progs.find_busy, NULL);
	b->lister = bpf_program__attach_iter(k->progs.list_busy, NULL);
	if (!b->finder || !b->lister)
		return err_set(e, -errno, "cannot list tasks through a BPF iterator: %s",
			       strerror(errno));
	bss(b)->n_busy_max = BUSY_MAX;
	*ret_busy = TAKE_PTR(b);
	return 0;
}

void busy_free(struct busy *b)
{
	if (!b)
		return;
	bpf_link__destroy(b->finder);
	bpf_link__destroy(b->lister);
	free(b);
}

int busy_each(struct busy *b, session_record_fn each, void *ctx)
{
	_cleanup_(closep) int fd = bpf_iter_create(bpf_link__fd(b->lister));

	return fd < 0 ? fd : session_read_records(fd, sizeof(struct ms_busy), each, ctx);
}

/* --- what it costs --- */

void look_gap_tick(struct look_gap *g, uint64_t now_ns, uint64_t looks)
{
	double elapsed_s, keep;

	if (!g->last_ns || now_ns <= g->last_ns || looks < g->last_looks) {
		g->last_ns = g->changed_ns = now_ns;
		g->last_looks = looks;
		return;
	}
	elapsed_s = (double)(now_ns - g->last_ns) / 1e9;
	keep = exp(-elapsed_s);
	g->recent = g->recent * keep +
		    (double)(looks - g->last_looks) * g->look_ns / elapsed_s / 1e7 * (1 - keep);
	g->last_ns = now_ns;
	g->last_looks = looks;
	if (g->recent > g->max_percent && (!g->gap_ns || now_ns - g->changed_ns >= SETTLE_NS)) {
		g->gap_ns = !g->gap_ns                    ? LOOK_GAP_MIN_NS
			    : g->gap_ns < LOOK_GAP_MAX_NS ? 2 * g->gap_ns
							  : LOOK_GAP_MAX_NS;
	} else if (g->gap_ns > LOOK_GAP_MIN_NS && g->recent < g->max_percent / 4 &&
		   now_ns - g->changed_ns >= QUIET_NS) {
		g->gap_ns /= 2;
	} else {
		return;
	}
	g->changed_ns = now_ns;
	/* What was looked at before the change says nothing of the cost after it. */
	if (g->recent > g->max_percent)
		g->recent = g->max_percent;
}

static void set_gap(struct busy *b)
{
	__atomic_store_n(&bss(b)->look_gap_ns, b->gap.gap_ns, __ATOMIC_RELAXED);
}

/* Whoever switches oftener than a gap allows looks for. */
static void find(struct busy *b, uint64_t now_ns, uint64_t not_busy)
{
	uint64_t elapsed_ns = now_ns - b->found_ns, most = elapsed_ns / b->gap.gap_ns;
	_cleanup_(closep) int fd = -1;
	char none[64];

	if (elapsed_ns < FIND_NS)
		return;
	if (not_busy - b->found_switches >= most || !b->found_ns) {
		bss(b)->busy_switches = most ? most : 1;
		fd = bpf_iter_create(bpf_link__fd(b->finder));
		while (fd >= 0 && read(fd, none, sizeof(none)) > 0)
			;
	}
	b->found_ns = now_ns;
	b->found_switches = not_busy;
}

void busy_begin(struct busy *b)
{
	b->gap.gap_ns = LOOK_GAP_MIN_NS;
	set_gap(b);
}

void busy_limit(struct busy *b, double max_percent)
{
	b->gap.max_percent = max_percent;
}

void busy_look_costs(struct busy *b, double look_ns)
{
	b->gap.look_ns = look_ns;
}

double busy_look_ns(const struct busy *b)
{
	return b->gap.look_ns;
}

double busy_percent(const struct busy *b)
{
	return b->gap.recent;
}

void busy_tick(struct busy *b, uint64_t now_ns, uint64_t switches, uint64_t busy_switches,
	       uint64_t looks)
{
	uint64_t not_busy = switches - busy_switches;

	look_gap_tick(&b->gap, now_ns, not_busy + looks);
	set_gap(b);
	if (b->gap.gap_ns)
		find(b, now_ns, not_busy);
}

uint64_t busy_gap_ns(const struct busy *b)
{
	return b->gap.gap_ns;
}
