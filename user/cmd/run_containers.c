/*
 * Which container a process is in, for labels: from the id of its control group, as the totals have it.
 *
 *   a group that was there   its path is asked for, once
 *   one that is made         the programs tell its path, so that it is known when it has gone
 *   no unified hierarchy     /proc/PID/cgroup, while the process lives
 *
 * A name is looked up as soon as a container's group is seen: an engine may have forgotten it soon after.
 */
#include "base/strbuf.h"
#include "cmd/run_parts.h"
#include "proc/namespace.h"

#include <errno.h>
#include <string.h>

#define REREAD_NS  100000000ULL /* between two looks at what the engines say           */
#define REMEMBERED 65536        /* processes; then they are looked up again            */
#define NAME_BYTES 128

struct who {
	char *id, *name;
	UT_hash_handle hh;
};

/* A control group of the unified hierarchy. `who` NULL: of no container. */
struct known_group {
	uint64_t id;
	const struct who *who;
	UT_hash_handle hh;
};

/* An image: whoever enters a container does so before its last exec. */
struct known_process {
	struct ms_proc key;
	const struct who *who;
	pid_t ns_pid;
	UT_hash_handle hh;
};

struct run_containers {
	struct cgroup_mounts mounts;
	struct container_list list;
	uint64_t read_ns;
	struct who *whos;
	struct known_group *groups;
	struct known_process *processes;
};

/* --- names --- */

static char *clean(const char *name)
{
	struct strbuf b = { 0 };

	strbuf_add_clean(&b, name, strnlen(name, NAME_BYTES));
	return strbuf_take(&b);
}

static const struct who *who_add(struct run_containers *rc, const char *id, const char *name)
{
	struct who *w;

	HASH_FIND_STR(rc->whos, id, w);
	if (w)
		return w;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->id = clean(id);
	w->name = clean(name);
	if (w->id && w->name)
		HASH_ADD_KEYPTR(hh, rc->whos, w->id, strlen(w->id), w);
	if (w->id && w->name && hash_added(w))
		return w;
	free(w->id);
	free(w->name);
	free(w);
	return NULL;
}

static void reread(struct run_containers *rc)
{
	uint64_t now = run_now_ns();

	if (rc->read_ns && now - rc->read_ns < REREAD_NS)
		return;
	rc->read_ns = now;
	containers_fini(&rc->list);
	containers_read(NULL, NULL, &rc->list, NULL);
}

/* A group that is watched has its name from there: what the user called it by. */
static const struct who *who_asked(struct run *r, const char *path)
{
	for (uint32_t i = 0; i < r->cfg->n_groups; i++) {
		const struct group *g = &r->cfg->groups[i];
		size_t len = strlen(g->at.path);

		if (g->id && strncmp(path, g->at.path, len) == 0 &&
		    (!path[len] || path[len] == '/'))
			return who_add(r->containers, g->id, group_title(g));
	}
	return NULL;
}

static const struct who *who_of_path(struct run *r, const char *path)
{
	struct run_containers *rc = r->containers;
	const struct who *asked = who_asked(r, path);
	char id[CONTAINER_ID_HEX + 1], short_id[CONTAINER_ID_SHORT + 1];
	const struct container *c;
	struct who *known;
	size_t len;

	if (asked)
		return asked;
	if (!rc->read_ns)
		reread(rc);
	if (!container_id_in(path, id, &len)) {
		c = container_by_path(&rc->list, path);
		return c ? who_add(rc, c->id, container_title(c)) : NULL;
	}
	HASH_FIND_STR(rc->whos, id, known);
	if (known)
		return known;
	c = container_by_id(&rc->list, id);
	if (!c) {
		reread(rc);
		c = container_by_id(&rc->list, id);
	}
	snprintf(short_id, sizeof(short_id), "%.*s", CONTAINER_ID_SHORT, id);
	return who_add(rc, id, c ? container_title(c) : short_id);
}

/* --- groups and processes --- */

static void group_put(struct run_containers *rc, uint64_t id, const struct who *who)
{
	struct known_group *g = hash_get(rc->groups, id, &id);

	if (g)
		g->who = who;
}

static bool preload(void *ctx, const char *path)
{
	struct run *r = ctx;
	const struct who *who = who_of_path(r, path);
	uint64_t id;

	if (who && cgroup_id_of(&r->containers->mounts, 0, path, &id) == 0)
		group_put(r->containers, id, who);
	return true;
}

int run_containers_begin(struct run *r, struct err *e)
{
	r->containers = calloc(1, sizeof(*r->containers));
	if (!r->containers)
		return err_set(e, -ENOMEM, "out of memory");
	if (cgroup_mounts_read(&r->containers->mounts, NULL) == 0 && r->cfg->all)
		cgroup_each(&r->containers->mounts, 0, preload, r);
	return 0;
}

void run_containers_free(struct run *r)
{
	struct run_containers *rc = r->containers;
	struct who *w, *next;

	if (!rc)
		return;
	hash_free(rc->processes);
	hash_free(rc->groups);
	HASH_ITER (hh, rc->whos, w, next) {
		HASH_DEL(rc->whos, w);
		free(w->id);
		free(w->name);
		free(w);
	}
	containers_fini(&rc->list);
	cgroup_mounts_fini(&rc->mounts);
	free(rc);
	r->containers = NULL;
}

void run_on_cgroup(void *ctx, const struct ms_cgroup_rec *rec)
{
	struct run *r = ctx;
	char path[MS_CGROUP_PATH];
	const struct who *who;

	memcpy(path, rec->at.path, sizeof(path));
	path[sizeof(path) - 1] = '\0';
	who = who_of_path(r, path);
	if (!rec->at.hierarchy)
		group_put(r->containers, rec->id, who);
}

/* NULL: in none, or not known. */
static const struct who *who_of_group(struct run *r, uint64_t id)
{
	struct run_containers *rc = r->containers;
	const struct who *who = NULL;
	struct known_group *g;
	char path[PATH_MAX];

	if (!id)
		return NULL;
	HASH_FIND(hh, rc->groups, &id, sizeof(id), g);
	if (g)
		return g->who;
	if (cgroup_path_of(&rc->mounts, id, path, sizeof(path)) == 0)
		who = who_of_path(r, path);
	group_put(rc, id, who);
	return who;
}

static const struct who *who_of_process(struct run *r, pid_t pid)
{
	char path[PATH_MAX];
	uint32_t hierarchy;

	if (cgroup_of_process(pid, &hierarchy, path, sizeof(path)) < 0)
		return NULL;
	return who_of_path(r, path);
}

/* 0: gone, or the same. */
static pid_t read_ns_pid(pid_t pid)
{
	pid_t ns_pid = proc_ns_pid(pid);

	return ns_pid != pid ? ns_pid : 0;
}

static void forget_processes(struct run_containers *rc)
{
	if (HASH_COUNT(rc->processes) < REMEMBERED)
		return;
	hash_free(rc->processes);
}

void run_whose(void *ctx, const struct ms_proc *proc, uint64_t cgroup_id,
	       struct ingest_container *ret_container)
{
	struct run *r = ctx;
	struct known_process *p;

	HASH_FIND(hh, r->containers->processes, proc, sizeof(*proc), p);
	if (!p) {
		forget_processes(r->containers);
		p = calloc(1, sizeof(*p));
		if (!p)
			return;
		p->key = *proc;
		p->who = who_of_group(r, cgroup_id);
		/* The root of the unified hierarchy: there may be others. */
		if (!p->who)
			p->who = who_of_process(r, (pid_t)proc->tgid);
		p->ns_pid = run_ns_pid(r, (pid_t)proc->tgid);
		if (p->who && !p->ns_pid)
			p->ns_pid = read_ns_pid((pid_t)proc->tgid);
		HASH_ADD(hh, r->containers->processes, key, sizeof(p->key), p);
		if (!hash_added(p)) {
			free(p);
			return;
		}
	}
	ret_container->name = p->who ? p->who->name : NULL;
	ret_container->id = p->who ? p->who->id : NULL;
	ret_container->ns_pid = p->ns_pid;
}
