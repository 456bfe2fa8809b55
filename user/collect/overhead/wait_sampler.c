#include "collect/overhead/wait_sampler.h"
#include "collect/session/session_wire.h"

#include "memscope.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <string.h>

/* How long a change may take to show before the next one, and how long it must be quiet before more
 * waits are sampled again. */
#define SETTLE_NS 250000000ULL
#define QUIET_NS  2000000000ULL

#define FIND_NS 100000000ULL /* at least, between two searches of all tasks */

_Static_assert(SAMPLE_GAP_MIN_NS == MS_SAMPLE_GAP_LEAST_NS, "the kernel's programs keep the same");

struct wait_sampler {
	struct session *session;
	struct bpf_link *finder, *lister;
	struct sample_gap gap;
	uint64_t found_ns, found_switches;
};

static struct memscope_bpf__bss *bss(const struct wait_sampler *b)
{
	return session_skeleton(b->session)->bss;
}

int wait_sampler_new(struct session *s, struct wait_sampler **ret_sampler, struct err *e)
{
	struct memscope_bpf *k = session_skeleton(s);
	_cleanup_(wait_sampler_freep) struct wait_sampler *b = NULL;

	if (!bpf_program__autoload(k->progs.find_sampled))
		return err_set(
			e, -EOPNOTSUPP,
			"tracing programs of this kernel cannot read a task's user registers "
			"(5.15), or its type information does not have the scheduler's run "
			"queues");
	b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, -ENOMEM, "out of memory");
	b->session = s;
	b->gap.look_ns = LOOK_USUAL_NS;
	b->finder = bpf_program__attach_iter(k->progs.find_sampled, NULL);
	b->lister = bpf_program__attach_iter(k->progs.list_sampled, NULL);
	if (!b->finder || !b->lister)
		return err_set(e, -errno, "cannot list tasks through a BPF iterator: %s",
			       strerror(errno));
	*ret_sampler = TAKE_PTR(b);
	return 0;
}

void wait_sampler_free(struct wait_sampler *b)
{
	if (!b)
		return;
	bpf_link__destroy(b->finder);
	bpf_link__destroy(b->lister);
	free(b);
}

int wait_sampler_each(struct wait_sampler *b, session_record_fn each, void *ctx)
{
	_cleanup_(closep) int fd = bpf_iter_create(bpf_link__fd(b->lister));

	return fd < 0 ? fd : session_read_records(fd, sizeof(struct ms_sampled_thread), each, ctx);
}

/* --- what it costs --- */

void sample_gap_tick(struct sample_gap *g, uint64_t now_ns, uint64_t looks)
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
		g->gap_ns = !g->gap_ns                      ? SAMPLE_GAP_MIN_NS
			    : g->gap_ns < SAMPLE_GAP_MAX_NS ? 2 * g->gap_ns
							    : SAMPLE_GAP_MAX_NS;
	} else if (g->gap_ns > SAMPLE_GAP_MIN_NS && g->recent < g->max_percent / 4 &&
		   now_ns - g->changed_ns >= QUIET_NS) {
		g->gap_ns /= 2;
	} else {
		return;
	}
	g->changed_ns = now_ns;
	/* Samples from before the change say nothing of the cost after it. */
	if (g->recent > g->max_percent)
		g->recent = g->max_percent;
}

uint32_t sample_gap_often(const struct sample_gap *g)
{
	double n = g->gap_ns ? (double)MS_OFTEN_NS / (double)g->gap_ns
			     : g->max_percent / 100 / 2 * (double)MS_OFTEN_NS / g->look_ns;

	return n < OFTEN_LEAST ? OFTEN_LEAST : n > UINT16_MAX ? UINT16_MAX : (uint32_t)n;
}

static void set_gap(struct wait_sampler *b)
{
	__atomic_store_n(&bss(b)->sample_gap_ns, wait_sampler_gap_ns(b), __ATOMIC_RELAXED);
	__atomic_store_n(&bss(b)->often_switches, sample_gap_often(&b->gap), __ATOMIC_RELAXED);
}

/* Finds threads that switch more often than the gap allows samples. */
static void find(struct wait_sampler *b, uint64_t now_ns, uint64_t not_busy)
{
	uint64_t elapsed_ns = now_ns - b->found_ns, most = elapsed_ns / b->gap.gap_ns;
	_cleanup_(closep) int fd = -1;
	char none[64];

	if (elapsed_ns < FIND_NS)
		return;
	if (not_busy - b->found_switches >= most || !b->found_ns) {
		bss(b)->find_switches = most ? most : 1;
		fd = bpf_iter_create(bpf_link__fd(b->finder));
		while (fd >= 0 && read(fd, none, sizeof(none)) > 0)
			;
	}
	b->found_ns = now_ns;
	b->found_switches = not_busy;
}

void wait_sampler_begin(struct wait_sampler *b)
{
	b->gap.gap_ns = SAMPLE_GAP_MIN_NS;
	set_gap(b);
}

void wait_sampler_limit(struct wait_sampler *b, double max_percent)
{
	b->gap.max_percent = max_percent;
	set_gap(b);
}

void wait_sampler_sample_costs(struct wait_sampler *b, double look_ns)
{
	b->gap.look_ns = look_ns;
}

double wait_sampler_sample_ns(const struct wait_sampler *b)
{
	return b->gap.look_ns;
}

double wait_sampler_percent(const struct wait_sampler *b)
{
	return b->gap.recent;
}

void wait_sampler_tick(struct wait_sampler *b, uint64_t now_ns, uint64_t switches,
		       uint64_t wait_sampler_switches, uint64_t looks)
{
	uint64_t not_busy = switches - wait_sampler_switches;

	sample_gap_tick(&b->gap, now_ns, not_busy + looks);
	set_gap(b);
	if (b->gap.gap_ns)
		find(b, now_ns, not_busy);
}

uint64_t wait_sampler_gap_ns(const struct wait_sampler *b)
{
	return b->gap.gap_ns ? b->gap.gap_ns : SAMPLE_GAP_MIN_NS;
}

bool wait_sampler_any(const struct wait_sampler *b)
{
	return __atomic_load_n(&bss(b)->n_sampled, __ATOMIC_RELAXED) != 0;
}

bool wait_sampler_begun(const struct wait_sampler *b)
{
	return b->gap.gap_ns != 0;
}
