/* Duty cycles (bpf/slices.h): sources that are attached for a part of the time, and their clocks. */
#include "collect/session/session_parts.h"
#include "slices.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* Stacks of waits that began between two slices, which are sent at the begin of one: each takes user space some 20 us. */
#define RESUME_LOOKS 64

/* The thread of slices, and who asks what they cost. */
static pthread_mutex_t rest_lock = PTHREAD_MUTEX_INITIALIZER;

struct source_slices {
	volatile struct ms_slice *slices;
	volatile uint32_t *no, *rest;
};

static struct source_slices of_source(const struct session *s, enum source source)
{
	struct memscope_bpf__bss *bss = s->skel->bss;

	if (source == SOURCE_GROWTH)
		return (struct source_slices){ bss->growth_slices, &bss->growth_slice_no,
					       &bss->growth_rest };
	return (struct source_slices){ bss->wait_slices, &bss->wait_slice_no, &bss->waits_rest };
}

static struct bpf_link **links_of(struct session *s, enum source source)
{
	return s->slice_links[source == SOURCE_GROWTH];
}

/* Those whose attachment costs something at each event. */
static uint32_t programs_of(const struct session *s, enum source source,
			    struct bpf_program *ret_programs[SESSION_SLICE_LINKS])
{
	struct memscope_bpf *k = s->skel;
	struct bpf_program *all[] = {
		k->progs.on_waking_btf, k->progs.on_waking_raw, k->progs.on_switch_btf,
		k->progs.on_switch_raw, k->progs.on_rss_stat,
	};
	bool wakers = session_has_wakers(s);
	uint32_t n = 0;

	for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		bool of_growth = all[i] == k->progs.on_rss_stat, of_wakers = i < 2;

		if (of_growth != (source == SOURCE_GROWTH) || (of_wakers && !wakers) ||
		    !bpf_program__autoload(all[i]) || n == SESSION_SLICE_LINKS)
			continue;
		ret_programs[n++] = all[i];
	}
	return n;
}

static struct program_cost cost_so_far(const struct session *s, enum source source)
{
	struct bpf_program *programs[SESSION_SLICE_LINKS];
	uint32_t n = programs_of(s, source, programs);
	struct program_cost sum = { 0 }, one;

	for (uint32_t i = 0; i < n; i++) {
		if (!session_program_cost(bpf_program__fd(programs[i]), &one))
			continue;
		sum.runs += one.runs;
		sum.run_ns += one.run_ns;
	}
	return sum;
}

/* Up to now; with the lock. */
static struct program_cost rest_cost(const struct session *s, enum source source)
{
	const struct session_rest *r = &s->rest[source == SOURCE_GROWTH];
	struct program_cost cost = r->sum, now;

	if (!r->on)
		return cost;
	now = cost_so_far(s, source);
	cost.runs += now.runs - r->begin.runs;
	cost.run_ns += now.run_ns - r->begin.run_ns;
	return cost;
}

struct program_cost session_rest_cost(struct session *s, enum source source)
{
	struct program_cost cost;

	pthread_mutex_lock(&rest_lock);
	cost = rest_cost(s, source);
	pthread_mutex_unlock(&rest_lock);
	return cost;
}

static void set_rest(struct session *s, enum source source, bool on)
{
	struct session_rest *r = &s->rest[source == SOURCE_GROWTH];

	if (r->on == on)
		return;
	pthread_mutex_lock(&rest_lock);
	*of_source(s, source).rest = on;
	if (on)
		r->begin = cost_so_far(s, source);
	else
		r->sum = rest_cost(s, source);
	r->on = on;
	pthread_mutex_unlock(&rest_lock);
}

void session_rest_slice(struct session *s, enum source source)
{
	set_rest(s, source, true);
}

int session_attach_slice(struct session *s, enum source source)
{
	struct bpf_program *programs[SESSION_SLICE_LINKS];
	struct bpf_link **links = links_of(s, source);
	uint32_t n = programs_of(s, source, programs);

	for (uint32_t i = 0; i < n; i++) {
		if (links[i])
			continue;
		links[i] = bpf_program__attach(programs[i]);
		if (!links[i]) {
			int r = -errno;

			session_detach_slice(s, source);
			return r;
		}
	}
	set_rest(s, source, false);
	return 0;
}

void session_detach_slice(struct session *s, enum source source)
{
	struct bpf_link **links = links_of(s, source);

	/* First what begins waits, then what ends them. */
	for (int i = SESSION_SLICE_LINKS - 1; i >= 0; i--)
		bpf_link__destroy(TAKE_PTR(links[i]));
}

bool session_can_slice(const struct session *s, enum source source)
{
	const char *why;

	if (!session_has(s, source, &why))
		return false;
	if (source == SOURCE_GROWTH)
		return true;
	return source == SOURCE_OFFCPU && bpf_program__autoload(s->skel->progs.resume_threads);
}

void session_slice_next(struct session *s, enum source source, const struct ms_slice *slice)
{
	struct source_slices of = of_source(s, source);
	uint32_t no = *of.no + 1;

	of.slices[no & 1].from_ns = slice->from_ns;
	of.slices[no & 1].until_ns = slice->until_ns;
	of.slices[no & 1].at_ns = slice->at_ns;
	of.slices[no & 1].shift = slice->shift;
	__atomic_store_n(of.no, no, __ATOMIC_RELEASE);
}

void session_slice_until(struct session *s, enum source source, uint64_t ns)
{
	struct source_slices of = of_source(s, source);

	of.slices[*of.no & 1].until_ns = ns;
}

uint64_t session_slice_clock(const struct session *s, enum source source, uint64_t ns)
{
	struct source_slices of = of_source(s, source);

	return slice_clock(&of.slices[*of.no & 1], ns);
}

void session_slices_open(struct session *s)
{
	s->skel->bss->wait_slices[0].until_ns = UINT64_MAX;
	s->skel->bss->growth_slices[0].until_ns = UINT64_MAX;
}

void session_slice_resume(struct session *s)
{
	int fd = session_open_tasks(s->skel->progs.resume_threads, NULL);
	char none[64];

	__atomic_store_n(&s->skel->bss->resume_looks, RESUME_LOOKS, __ATOMIC_RELAXED);
	while (fd >= 0 && read(fd, none, sizeof(none)) > 0)
		;
	closep(&fd);
}
