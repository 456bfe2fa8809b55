#include "run/serve/metrics_groups.h"

#include "base/clock.h"
#include "base/saturate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	enum profile_kind kind;
	uint32_t type; /* of the kind's */
} sum_rows[N_GROUP_SUMS] = {
	[GROUP_SAMPLES] = { PROFILE_ONCPU, 0 },
	[GROUP_SAMPLED_CPU_NS] = { PROFILE_ONCPU, 1 },
	[GROUP_BLOCKED_NS] = { PROFILE_OFFCPU, 1 },
	[GROUP_RUNNABLE_NS] = { PROFILE_OFFCPU, 3 },
	[GROUP_TOUCHED_BYTES] = { PROFILE_GROWTH, 0 },
	[GROUP_RETURNED_BYTES] = { PROFILE_GROWTH, 1 },
	[GROUP_ALLOC_BYTES] = { PROFILE_ALLOC, 1 },
};

static const char *shown_name(const char *name, char buf[METRICS_NAME])
{
	bool taken = strcmp(name, METRICS_HOST) == 0 || strcmp(name, METRICS_OTHER) == 0;

	snprintf(buf, METRICS_NAME, "%s%s", name, taken ? "_" : "");
	return buf;
}

static void forget_rows(struct metrics_groups *g)
{
	if (g->rows)
		memset(g->rows, 0, g->n_rows * sizeof(*g->rows));
}

/*
 * A group that has ended makes room; label sets are looked up again then. One that was there in the row before may still be reported in
 * this one, until all have been. NULL: there is no room.
 */
static struct metrics_group *make_group(struct metrics_groups *g, const char *name)
{
	struct metrics_group *group = NULL;

	if (g->n < METRICS_GROUPS)
		group = &g->list[g->n++];
	for (uint32_t i = 0; !group && i < g->n; i++)
		if (!g->list[i].here && (g->full || !g->list[i].was_here))
			group = &g->list[i];
	if (!group)
		return NULL;
	forget_rows(g);
	*group = (struct metrics_group){ 0 };
	snprintf(group->name, sizeof(group->name), "%s", name);
	return group;
}

static struct metrics_group *find_group(struct metrics_groups *g, const char *name)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (strncmp(g->list[i].name, name, METRICS_NAME - 1) == 0)
			return &g->list[i];
	return NULL;
}

/* `id` NULL, "": of no container. */
static struct metrics_group *find_container(struct metrics_groups *g, const char *id)
{
	for (uint32_t i = 0; id && *id && i < g->n; i++)
		if (strncmp(g->list[i].id, id, METRICS_NAME - 1) == 0)
			return &g->list[i];
	return NULL;
}

static bool is_of(const struct metrics_group *group, const char *id)
{
	return strncmp(group->id, id ?: "", METRICS_NAME - 1) == 0;
}

/* Two containers may be called alike: pods of two namespaces, or those of two engines. */
static void unlike_name(const char *name, const char *by, char buf[METRICS_NAME])
{
	snprintf(buf, METRICS_NAME, "%.63s/%.63s", by ?: "", name);
}

static void take_about(struct metrics_group *group, const struct member_about *about)
{
	snprintf(group->id, sizeof(group->id), "%s", about->id ?: "");
	snprintf(group->image, sizeof(group->image), "%s", about->image ?: "");
	snprintf(group->pod, sizeof(group->pod), "%s", about->pod ?: "");
	snprintf(group->namespace, sizeof(group->namespace), "%s", about->namespace ?: "");
}

/*
 * The series of a container: its own, by id, else those of the one that had its name before. Where a running container has that name, the
 * namespace or the id stands in front. *ret_later: whether that one still runs is known when all have been reported.
 */
static struct metrics_group *series_of(struct metrics_groups *g, const char *name,
				       const struct member_about *about, bool *ret_later)
{
	struct metrics_group *group = find_container(g, about->id);
	char unlike[METRICS_NAME];

	*ret_later = false;
	if (group)
		return group;
	group = find_group(g, name);
	if (group && !group->here && group->was_here && !is_of(group, about->id) && !g->full) {
		*ret_later = true;
		return NULL;
	}
	for (int by_id = 0; by_id < 2 && group && group->here && !is_of(group, about->id);
	     by_id++) {
		unlike_name(name, by_id ? about->id : about->namespace, unlike);
		group = find_group(g, unlike);
		if (!group)
			return make_group(g, unlike);
	}
	return group ? group : make_group(g, name);
}

static void take_group(void *ctx, const char *owner, const char *path, const pid_t *pids,
		       uint32_t n)
{
	struct metrics_groups *g = ctx;
	const struct member_about none = { 0 }, *about = owner ? members_about(g->members) : &none;
	char buf[METRICS_NAME];
	const char *name = owner ? shown_name(owner, buf) : METRICS_HOST;
	bool later;
	struct metrics_group *group = series_of(g, name, about, &later);

	(void)pids;
	if (g->full && group && group->here)
		return; /* it was reported in the first pass */
	if (!group) {
		g->left_out++;
		g->left_out_processes += n;
		return;
	}
	group->here = true;
	take_about(group, about);
	group->processes = n;
	group->has_charge = path != NULL;
	if (!path)
		return;
	cgroup_charge_read(members_mounts(g->members), path, &group->charge);
	growth_hour_add(&group->growth, (double)now_ns() / 1e9, group->charge.anon);
}

static int reach(struct metrics_groups *g, uint32_t labels)
{
	uint32_t n = labels + labels / 2 + 64;
	uint16_t *more;

	if (labels < g->n_rows)
		return 0;
	more = reallocarray(g->rows, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + g->n_rows, 0, (n - g->n_rows) * sizeof(*more));
	g->rows = more;
	g->n_rows = n;
	return 0;
}

/* `other`: it is not in the list, as it is gone, or left out. */
static struct metrics_group *group_of(struct metrics_groups *g, const struct dict *d,
				      labels_id labels)
{
	uint16_t *row = &g->rows[labels.ix];
	const struct label *l;
	struct metrics_group *group;
	char buf[METRICS_NAME];

	if (g->has_target)
		return &g->target;
	if (*row)
		return &g->list[*row - 1];
	l = dict_label_find(d, labels, "container_id");
	group = l ? find_container(g, dict_str(d, l->str)) : NULL;
	l = dict_label_find(d, labels, "container");
	if (!l)
		l = dict_label_find(d, labels, "cgroup");
	if (!group)
		group = find_group(g, l ? shown_name(dict_str(d, l->str), buf) : g->rest);
	if (!group)
		return &g->other;
	*row = (uint16_t)(group - g->list + 1);
	return group;
}

static void add_gain(int64_t *sum, int64_t *owed, int64_t gain)
{
	gain = add_saturating(gain, *owed);
	*owed = gain < 0 ? gain : 0;
	if (gain > 0)
		*sum = add_saturating(*sum, gain);
}

static int add_wait(struct metrics_groups *g, struct metrics_group *group, const struct dict *d,
		    const struct profile_sample *s)
{
	int64_t ns = s->values[sum_rows[GROUP_BLOCKED_NS].type];
	enum wait_kind kind;

	if (wait_kinds_of(&g->kinds, d, s->stack, &kind) < 0)
		return -ENOMEM;
	add_gain(&group->waits_ns[kind], &group->waits_owed_ns[kind], ns);
	return 0;
}

static void add_values(struct metrics_group *to, const struct profile_sample *s,
		       enum profile_kind kind)
{
	for (int v = 0; v < N_GROUP_SUMS; v++)
		if (sum_rows[v].kind == kind)
			add_gain(&to->sums[v], &to->sums_owed[v], s->values[sum_rows[v].type]);
}

/* What it gained since the last row. */
static int add_gains(struct metrics_groups *g, struct profile *p, enum profile_kind kind)
{
	bool by_kind = kind == PROFILE_OFFCPU && g->has_waits;
	_cleanup_(profile_freep) struct profile *gained = NULL;
	int rc = p ? profile_since(p, &g->had[kind], &gained) : 0;

	for (uint32_t i = 0; gained && i < profile_n_samples(gained) && rc == 0; i++) {
		struct profile_sample s = profile_sample(gained, i);
		struct metrics_group *group;

		rc = reach(g, s.labels.ix);
		if (rc < 0)
			break;
		group = group_of(g, profile_dict(p), s.labels);
		add_values(group, &s, kind);
		if (by_kind)
			rc = add_wait(g, group, profile_dict(p), &s);
	}
	return rc;
}

/* The row of the memory series was taken before: components have an order. */
static void take_target(struct metrics_groups *g, const struct run *r)
{
	const struct mem_sample *row = &r->row.memory;

	g->has_target = true;
	if (!row->time_ns || row->time_ns == g->memory.time_ns)
		return;
	g->memory = *row;
	g->target.processes = row->processes;
	if (row->interval_cpu_ns > 0)
		g->target_cpu_ns += row->interval_cpu_ns;
	growth_hour_add(&g->target.growth, (double)now_ns() / 1e9,
			row->anonymous_kb < 0 ? -1 : row->anonymous_kb * 1024);
}

static void take_groups(struct metrics_groups *g, const struct run *r)
{
	g->left_out = g->left_out_processes = 0;
	g->rest = METRICS_HOST;
	for (uint32_t i = 0; i < g->n; i++) {
		g->list[i].was_here = g->list[i].here;
		g->list[i].here = false;
	}
	if (r->cfg->all && !g->n)
		make_group(g, g->rest);
	if (r->cfg->all) /* it comes last, and has series however many others there are */
		g->list[0].here = true;
	members_each(g->members, take_group, g);
	if (g->left_out) {
		g->left_out = g->left_out_processes = 0;
		g->full = true;
		members_each(g->members, take_group, g);
		g->full = false;
	}
	if (!r->cfg->all && r->cfg->n_groups == 1 && g->n) /* its samples need no label */
		g->rest = g->list[0].name;
}

/* Ids of label sets may be those of others now. */
static void forget_swept(struct metrics_groups *g, const struct dict *d)
{
	if (g->swept != dict_labels_swept(d))
		forget_rows(g);
	g->swept = dict_labels_swept(d);
}

int metrics_groups_take(struct metrics_groups *g, struct run *r)
{
	int rc = 0;

	if (!r->cfg->all && !r->cfg->n_groups)
		take_target(g, r);
	else if (!g->members && members_new(r->cfg, &g->members, NULL) < 0)
		return 0; /* no control groups are to be seen here */
	else
		take_groups(g, r);
	g->other.here = !g->has_target;
	forget_swept(g, r->dict);
	for (int v = 0; v < N_GROUP_SUMS; v++)
		g->has[v] = r->profiles[sum_rows[v].kind] != NULL;
	g->has_waits = g->has[GROUP_BLOCKED_NS] && wait_kinds_known(&g->kinds);
	for (int kind = 0; kind < N_PROFILE_KINDS && rc == 0; kind++)
		if (kind == PROFILE_ONCPU || kind == PROFILE_OFFCPU || kind == PROFILE_GROWTH ||
		    kind == PROFILE_ALLOC)
			rc = add_gains(g, r->profiles[kind], (enum profile_kind)kind);
	return rc;
}

void metrics_groups_fini(struct metrics_groups *g)
{
	members_free(g->members);
	for (int kind = 0; kind < N_PROFILE_KINDS; kind++)
		profile_checkpoint_fini(&g->had[kind]);
	free(g->rows);
	wait_kinds_fini(&g->kinds);
	*g = (struct metrics_groups){ 0 };
}
