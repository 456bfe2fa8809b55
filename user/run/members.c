#include "run/members.h"

#include "base/clock.h"
#include "container/container.h"
#include "proc/cgroup.h"
#include "run/budget.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pids {
	pid_t list[MEMBERS_MAX];
	uint32_t n;
};

struct members {
	const struct run_config *cfg;
	struct cgroup_mounts mounts;
	struct member_about about;
	struct pids one, told; /* in ascending order: of the one in hand, of all before it */
	struct pids programs;  /* all processes with a program, as of the last look at /proc */
	uint64_t look_ns;      /* when the next one is due */
	members_fn fn;
	void *ctx;
};

int members_new(const struct run_config *cfg, struct members **ret_members, struct err *e)
{
	struct members *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return err_set(e, -ENOMEM, "out of memory");
	m->cfg = cfg;
	r = cgroup_mounts_read(&m->mounts, e);
	if (r < 0) {
		free(m);
		return r;
	}
	*ret_members = m;
	return 0;
}

void members_free(struct members *m)
{
	if (m)
		cgroup_mounts_fini(&m->mounts);
	free(m);
}

const struct cgroup_mounts *members_mounts(const struct members *m)
{
	return &m->mounts;
}

const struct member_about *members_about(const struct members *m)
{
	return &m->about;
}

static int compare_pids(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

static void sort(struct pids *p)
{
	if (p->n)
		qsort(p->list, p->n, sizeof(*p->list), compare_pids);
}

static bool was_told(const struct members *m, pid_t pid)
{
	return m->told.n && bsearch(&pid, m->told.list, m->told.n, sizeof(pid), compare_pids);
}

static void tell(struct members *m, const char *owner, const char *path)
{
	sort(&m->one);
	m->fn(m->ctx, owner, path, m->one.list, m->one.n);
	for (uint32_t i = 0; i < m->one.n && m->told.n < MEMBERS_MAX; i++)
		m->told.list[m->told.n++] = m->one.list[i];
	sort(&m->told);
}

static void tell_group(struct members *m, const char *owner, const struct cgroup *at)
{
	uint32_t n = cgroup_processes(&m->mounts, at, m->one.list, MEMBERS_MAX);

	if (n > MEMBERS_MAX)
		n = MEMBERS_MAX;
	m->one.n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!was_told(m, m->one.list[i]))
			m->one.list[m->one.n++] = m->one.list[i];
	if (m->one.n)
		tell(m, owner, at->path);
}

/* Those within others first. */
static void tell_asked(struct members *m)
{
	const struct run_config *cfg = m->cfg;
	bool done[GROUPS_MAX] = { false };

	for (uint32_t k = 0; k < cfg->n_groups; k++) {
		uint32_t next = cfg->n_groups;

		for (uint32_t i = 0; i < cfg->n_groups; i++)
			if (!done[i] &&
			    (next == cfg->n_groups ||
			     strlen(cfg->groups[i].at.path) > strlen(cfg->groups[next].at.path)))
				next = i;
		done[next] = true;
		m->about =
			(struct member_about){ cfg->groups[next].id, cfg->groups[next].image,
					       cfg->groups[next].pod, cfg->groups[next].namespace };
		if (!cfg->groups[next].gone_ns)
			tell_group(m, group_unique_title(cfg->groups, cfg->n_groups, next),
				   &cfg->groups[next].at);
	}
}

/* A kernel thread has no memory of its own. */
static bool has_program(pid_t pid)
{
	char path[32], to[2];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, to, sizeof(to)) > 0;
}

/* All processes that are not known to be in a container. */
static void look_at_all(struct members *m)
{
	uint64_t from_ns = thread_cpu_ns(), took_ns;
	DIR *d = opendir("/proc");

	m->programs.n = 0;
	for (struct dirent *entry; d && (entry = readdir(d)) && m->programs.n < MEMBERS_MAX;) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (pid && !was_told(m, pid) && has_program(pid))
			m->programs.list[m->programs.n++] = pid;
	}
	if (d)
		closedir(d);
	took_ns = thread_cpu_ns() - from_ns;
	m->look_ns = took_ns < MEMBERS_QUICK_NS
			     ? 0
			     : now_ns() + (uint64_t)(budget_look_rest(m->cfg) * (double)took_ns);
}

static void tell_rest(struct members *m)
{
	if (now_ns() >= m->look_ns)
		look_at_all(m);
	m->one.n = 0;
	for (uint32_t i = 0; i < m->programs.n; i++)
		if (!was_told(m, m->programs.list[i]))
			m->one.list[m->one.n++] = m->programs.list[i];
	tell(m, NULL, NULL);
}

static void tell_all(struct members *m)
{
	struct container_list all = { 0 };

	if (containers_read(NULL, &m->mounts, &all, NULL) == 0)
		for (uint32_t i = 0; i < all.n; i++) {
			const struct container *c = &all.list[i];
			struct cgroup at = { .hierarchy = c->hierarchy };

			if (!c->running || !c->path || strlen(c->path) >= sizeof(at.path))
				continue;
			strcpy(at.path, c->path);
			m->about = (struct member_about){ c->id, c->image, c->pod, c->namespace };
			tell_group(m, container_title(c), &at);
		}
	containers_fini(&all);
	m->about = (struct member_about){ 0 };
	tell_rest(m);
}

void members_each(struct members *m, members_fn fn, void *ctx)
{
	m->fn = fn;
	m->ctx = ctx;
	m->told.n = 0;
	if (m->cfg->all)
		tell_all(m);
	else
		tell_asked(m);
}
