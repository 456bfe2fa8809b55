/*
 * Loading. The verifier's work is most of a run's start, and the kernel does it for several programs at a
 * time: so the programs are divided among some objects of libbpf, each loaded by a thread, which have the
 * first one's maps. The skeleton's programs are those of whichever object has loaded them. What few targets
 * need, and takes long, is loaded when one does.
 */
#include "collect/session/session_parts.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/*
 * ms that the verifier took on Linux 6.18; others count as one. A figure that is wrong, or a program that is not
 * here, costs some time and nothing else.
 */
static const struct {
	const char *name;
	uint32_t ms;
} heavy[] = {
	{ "both_ends", 110 },      { "on_switch_btf", 90 },   { "on_cpu", 85 },
	{ "enter_new", 72 },       { "enter_realloc_n", 72 }, { "sampled_alloc", 60 },
	{ "sampled_untrack", 60 }, { "on_switch_raw", 57 },   { "enter_size", 50 },
	{ "enter_count", 50 },     { "enter_align", 50 },     { "enter_outptr", 50 },
	{ "enter_realloc", 50 },   { "enter_xalloc", 50 },    { "on_rss_stat", 40 },
	{ "on_waking_btf", 80 },   { "on_waking_raw", 50 },   { "on_sys_exit_btf", 35 },
	{ "on_sys_exit_raw", 35 }, { "on_call_exit", 40 },    { "on_trace_enter", 40 },
	{ "on_trace_exit", 40 },   { "on_event", 50 },        { "on_tracepoint", 50 },
	{ "on_site", 40 },
};
#define HEAVY_MS 30 /* that is worth a thread and an object of libbpf */

static uint32_t cost_of(const char *name)
{
	for (size_t i = 0; i < sizeof(heavy) / sizeof(*heavy); i++)
		if (!strcmp(heavy[i].name, name))
			return heavy[i].ms;
	return 1;
}

static uint32_t n_programs(const struct memscope_bpf *k)
{
	return (uint32_t)k->skeleton->prog_cnt;
}

static struct bpf_program **program(const struct memscope_bpf *k, uint32_t i)
{
	return k->skeleton->progs[i].prog;
}

static uint32_t usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

uint32_t session_load_parts(const uint32_t *costs, uint32_t n, uint32_t most, uint32_t *ret_part)
{
	uint32_t sums[SESSION_PARTS] = { 0 }, parts = 0;

	for (uint32_t i = 0; i < n; i++) {
		parts += costs[i] >= HEAVY_MS;
		ret_part[i] = UINT32_MAX;
	}
	if (parts > most)
		parts = most;
	if (parts > SESSION_PARTS)
		parts = SESSION_PARTS;
	if (!parts)
		parts = 1;
	/* The costliest that is left to the part that has least. */
	for (;;) {
		uint32_t costliest = n, least = 0;

		for (uint32_t i = 0; i < n; i++)
			if (costs[i] && ret_part[i] == UINT32_MAX &&
			    (costliest == n || costs[i] > costs[costliest]))
				costliest = i;
		if (costliest == n)
			return parts;
		for (uint32_t p = 1; p < parts; p++)
			if (sums[p] < sums[least])
				least = p;
		ret_part[costliest] = least;
		sums[least] += costs[costliest];
	}
}

struct part {
	pthread_t thread;
	const struct session *session;
	const struct memscope_bpf *first; /* whose maps there are */
	struct memscope_bpf *k;
	const uint32_t *part_of; /* each program's */
	const uint32_t *costs;   /* 0: not wanted  */
	uint32_t number;
	int result;
};

/* What was set for the first one's programs is set for those of this part; the others are left out. */
static void take_programs(const struct part *p)
{
	for (uint32_t i = 0; i < n_programs(p->k); i++) {
		struct bpf_program *from = *program(p->first, i), *to = *program(p->k, i);

		bpf_program__set_autoload(to, p->costs[i] && p->part_of[i] == p->number);
		bpf_program__set_expected_attach_type(to, bpf_program__expected_attach_type(from));
	}
}

static int take_maps(const struct part *p)
{
	struct bpf_map *from = NULL, *to = NULL;
	int r = 0;

	while (r == 0 && (from = bpf_object__next_map(p->first->obj, from)) &&
	       (to = bpf_object__next_map(p->k->obj, to)))
		r = bpf_map__fd(from) >= 0 ? bpf_map__reuse_fd(to, bpf_map__fd(from))
					   : bpf_map__set_autocreate(to, false);
	return r;
}

static void *load_part(void *arg)
{
	struct part *p = arg;

	p->k = session_skeleton_open(p->session);
	if (!p->k) {
		p->result = -errno;
		return NULL;
	}
	take_programs(p);
	p->result = take_maps(p);
	if (p->result == 0)
		p->result = bpf_object__load(p->k->obj);
	return NULL;
}

/* The skeleton's programs are from now on those that this part has loaded. */
static void adopt(struct session *s, struct part *p, uint32_t slot)
{
	for (uint32_t i = 0; i < n_programs(s->skel); i++)
		if (p->costs[i] && p->part_of[i] == p->number)
			*program(s->skel, i) = *program(p->k, i);
	s->parts[slot] = p->k;
}

/* For an object with programs of this kind libbpf reads all of the kernel's types: they are put together. */
static void gather_tracing(const struct session *s, const uint32_t *costs, uint32_t *part_of)
{
	uint32_t most = 0, together = 0;

	for (uint32_t i = 0; i < n_programs(s->skel); i++)
		if (costs[i] > most &&
		    bpf_program__type(*program(s->skel, i)) == BPF_PROG_TYPE_TRACING) {
			most = costs[i];
			together = part_of[i];
		}
	for (uint32_t i = 0; most && i < n_programs(s->skel); i++)
		if (bpf_program__type(*program(s->skel, i)) == BPF_PROG_TYPE_TRACING)
			part_of[i] = together;
}

int session_load(struct session *s)
{
	uint32_t n = n_programs(s->skel), n_parts, costs[SESSION_PROGRAMS],
		 part_of[SESSION_PROGRAMS];
	struct part parts[SESSION_PARTS] = { 0 };
	bool threads[SESSION_PARTS] = { false };
	int r;

	if (n > SESSION_PROGRAMS)
		return memscope_bpf__load(s->skel);
	for (uint32_t i = 0; i < n; i++)
		costs[i] = bpf_program__autoload(*program(s->skel, i))
				   ? cost_of(bpf_program__name(*program(s->skel, i)))
				   : 0;
	n_parts = session_load_parts(costs, n, usable_cpus(), part_of);
	if (n_parts == 1)
		return memscope_bpf__load(s->skel);
	gather_tracing(s, costs, part_of);
	for (uint32_t i = 0; i < n; i++)
		bpf_program__set_autoload(*program(s->skel, i), false);
	r = memscope_bpf__load(s->skel); /* the maps */
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n_parts; i++) {
		parts[i] = (struct part){ .session = s,
					  .first = s->skel,
					  .part_of = part_of,
					  .costs = costs,
					  .number = i };
		threads[i] = i && pthread_create(&parts[i].thread, NULL, load_part, &parts[i]) == 0;
	}
	for (uint32_t i = 0; i < n_parts; i++) {
		if (threads[i])
			pthread_join(parts[i].thread, NULL);
		else
			load_part(&parts[i]);
		if (parts[i].k)
			adopt(s, &parts[i], i);
		if (parts[i].result < 0 && r == 0)
			r = parts[i].result;
	}
	/* An object of libbpf had the kernel's types: some 11 MB while they are read. */
	malloc_trim(0);
	return r;
}

int session_load_later(struct session *s, struct bpf_program *const *programs, uint32_t n)
{
	uint32_t costs[SESSION_PROGRAMS] = { 0 }, part_of[SESSION_PROGRAMS] = { 0 };
	struct part p = { .session = s, .first = s->skel, .part_of = part_of, .costs = costs };
	uint32_t slot = SESSION_PARTS;

	while (slot < SESSION_PARTS + SESSION_LATER && s->parts[slot])
		slot++;
	if (n_programs(s->skel) > SESSION_PROGRAMS || slot == SESSION_PARTS + SESSION_LATER)
		return -E2BIG;
	for (uint32_t i = 0; i < n_programs(s->skel); i++)
		for (uint32_t j = 0; j < n; j++)
			costs[i] |= *program(s->skel, i) == programs[j];
	load_part(&p);
	if (p.k)
		adopt(s, &p, slot);
	malloc_trim(0);
	return p.result;
}

void session_unload(struct session *s)
{
	for (uint32_t i = 0; i < SESSION_PARTS + SESSION_LATER; i++)
		if (s->parts[i])
			memscope_bpf__destroy(s->parts[i]);
	memscope_bpf__destroy(s->skel);
}
