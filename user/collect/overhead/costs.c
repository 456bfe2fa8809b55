#include "collect/overhead/costs.h"
#include "collect/overhead/counter.h"
#include "collect/session/session_wire.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_NS    100000000 /* at least */
#define EVERY_NS     1000000000
#define MAX_PROGRAMS SESSION_PROGRAMS_MAX

struct costs {
	struct session *session;
	int stats_fd; /* -1: no window is open */
	uint64_t begun_ns, next_ns, window_ns, length_ns, every_ns;
	struct program_cost at_begin[MAX_PROGRAMS], sums[N_COSTS];
	struct program_cost rest_at_begin[N_SOURCES];
	uint64_t stats_at_begin[N_STATS];
	struct costs_window last;
};

/* Programs of a source by the beginnings of their names. */
static const struct {
	const char *name;
	int cost;
} owners[] = {
	{ "on_cpu", SOURCE_ONCPU },
	{ "on_switch", SOURCE_OFFCPU },
	{ "on_wak", MS_OFFCPU },
	{ "both_ends", SOURCE_ALLOC },
	{ "enter_", SOURCE_ALLOC },
	{ "exit_new", MS_ALLOC },
	{ "return_", SOURCE_ALLOC },
	{ "sampled_", SOURCE_ALLOC },
	{ "on_rss_stat", MS_GROWTH },
	{ "on_call_", SOURCE_SYSCALLS },
	{ "on_trace_", SOURCE_SYSCALLS },
	{ "on_event", SOURCE_EVENTS },
	{ "on_tracepoint", SOURCE_EVENTS },
	{ "on_site", SOURCE_EVENTS },
};

static int owner(const char *program)
{
	for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++)
		if (strncmp(program, owners[i].name, strlen(owners[i].name)) == 0)
			return owners[i].cost;
	return COST_EVENTS;
}

struct costs *costs_new(struct session *s)
{
	struct costs *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->session = s;
	costs_pace(c, WINDOW_NS, EVERY_NS);
	c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (c->stats_fd < 0) {
		free(c);
		return NULL;
	}
	close(c->stats_fd);
	c->stats_fd = -1;
	return c;
}

void costs_free(struct costs *c)
{
	if (c && c->stats_fd >= 0)
		close(c->stats_fd);
	free(c);
}

static struct program_cost rest_of(struct costs *c, int source)
{
	return source == SOURCE_OFFCPU || source == SOURCE_GROWTH
		       ? session_rest_cost(c->session, (enum source)source)
		       : (struct program_cost){ 0 };
}

static void begin(struct costs *c, uint64_t now_ns)
{
	const char *name;

	for (uint32_t i = 0; i < MAX_PROGRAMS; i++) {
		int fd = session_program(c->session, i, &name);

		memset(&c->at_begin[i], 0, sizeof(c->at_begin[i]));
		if (fd >= 0)
			session_program_cost(fd, &c->at_begin[i]);
	}
	for (int i = 0; i < N_SOURCES; i++)
		c->rest_at_begin[i] = rest_of(c, i);
	counters_read(c->session, SESSION_STATS, N_STATS, c->stats_at_begin);
	c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	c->begun_ns = now_ns;
	c->next_ns = now_ns + c->every_ns;
}

static void end(struct costs *c, uint64_t now_ns)
{
	struct costs_window *last = &c->last;
	struct program_cost cost;
	uint64_t stats[N_STATS];
	const char *name;

	close(c->stats_fd);
	c->stats_fd = -1;
	c->window_ns += now_ns - c->begun_ns;
	counters_read(c->session, SESSION_STATS, N_STATS, stats);
	*last = (struct costs_window){
		.no = last->no + 1,
		.length_ns = now_ns - c->begun_ns,
		.switches = stats[STAT_OFFCPU_SWITCHES] - c->stats_at_begin[STAT_OFFCPU_SWITCHES],
		.changes = stats[STAT_GROWTH_EVENTS] - c->stats_at_begin[STAT_GROWTH_EVENTS],
	};
	for (int i = 0; i < N_SOURCES; i++) {
		cost = rest_of(c, i);
		last->rest[i].runs = cost.runs - c->rest_at_begin[i].runs;
		last->rest[i].run_ns = cost.run_ns - c->rest_at_begin[i].run_ns;
	}
	for (uint32_t i = 0; i < MAX_PROGRAMS; i++) {
		int fd = session_program(c->session, i, &name);
		int whose = fd >= 0 ? owner(name) : COST_EVENTS;

		if (fd < 0 || !session_program_cost(fd, &cost))
			continue;
		cost.runs -= c->at_begin[i].runs;
		cost.run_ns -= c->at_begin[i].run_ns;
		last->costs[whose].runs += cost.runs;
		last->costs[whose].run_ns += cost.run_ns;
		c->sums[whose].runs += cost.runs;
		c->sums[whose].run_ns += cost.run_ns;
	}
}

void costs_pace(struct costs *c, uint64_t window_ns, uint64_t every_ns)
{
	c->length_ns = window_ns;
	c->every_ns = every_ns;
}

void costs_tick(struct costs *c, uint64_t now_ns)
{
	if (c->stats_fd < 0 && now_ns >= c->next_ns)
		begin(c, now_ns);
	else if (c->stats_fd >= 0 && now_ns - c->begun_ns >= c->length_ns)
		end(c, now_ns);
}

void costs_stop(struct costs *c, uint64_t now_ns)
{
	if (c->stats_fd >= 0)
		end(c, now_ns);
	c->next_ns = UINT64_MAX;
}

const struct costs_window *costs_last(const struct costs *c)
{
	return &c->last;
}

uint64_t costs_read(const struct costs *c, struct program_cost *ret_costs)
{
	memcpy(ret_costs, c->sums, sizeof(c->sums));
	return c->window_ns;
}
