/*
 * Which container a process is in, for labels: from the id of its control group, as the totals have it. In a
 * run of several control groups (-G), also in which of these.
 *
 *   a group that was there   its path is asked for, once
 *   one that is made         the programs tell its path, so that it is known when it has gone
 *   no unified hierarchy     /proc/PID/cgroup, while the process lives
 *
 * A name is looked up as soon as a container's group is seen: an engine may have forgotten it soon after. One that no engine had then
 * is asked for again, ever more rarely: what they say is read so often and no more.
 */
#include "base/clock.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "container/container.h"
#include "proc/namespace.h"
#include "run/component.h"
#include "run/targets.h"

#include <errno.h>
#include <string.h>

#define REREAD_NS   100000000ULL /* between two looks at what the engines say, at least … */
#define REREAD_REST 20           /* … and so many times the CPU time that one took      */
#define ASKED_MAX   10           /* times for a name, each after twice the time: 100 s  */
#define REMEMBERED  65536        /* processes, groups, containers; then they are looked up again */
#define NAME_BYTES  128

struct who {
	char *key;             /* its id, and before it whose it is where that is not root */
	char *id, *name;       /* its short id: no engine has named it yet */
	char *pod, *namespace; /* of Kubernetes; NULL */
	char *path;            /* of its group, while it is asked for */
	unsigned asked;        /* … in vain */
	uint64_t again_ns;     /* when it is asked for again; 0: not any more */
	UT_hash_handle hh;
};

/* A control group of the unified hierarchy. `who` NULL: of no container. */
struct known_group {
	uint64_t id;
	struct who *who;
	UT_hash_handle hh;
};

/* An image: whoever enters a container does so before its last exec. */
struct known_process {
	struct proc_id key;
	struct who *who;
	pid_t ns_pid;
	int group;     /* of those of -G; -1: none */
	bool by_group; /* its group's id was known when it was looked up */
	UT_hash_handle hh;
};

/* A process of a -G, when it was met: it may have ended when its samples come. */
struct met_process {
	pid_t pid;
	int group;
	UT_hash_handle hh;
};

struct containers {
	struct run *run;
	struct cgroup_mounts mounts;
	struct container_list list;
	uint64_t read_ns, next_read_ns;
	struct who *whos;
	struct known_group *groups;
	struct known_process *processes;
	struct met_process *met;
};

/* --- names --- */

static char *clean(const char *name)
{
	struct strbuf b = { 0 };

	strbuf_add_clean(&b, name, strnlen(name, NAME_BYTES));
	return strbuf_take(&b);
}

static void who_free(struct who *w)
{
	free(w->key);
	free(w->id);
	free(w->name);
	free(w->pod);
	free(w->namespace);
	free(w->path);
	free(w);
}

enum { WHO_KEY = NAME_MAX + 16 };

/* A user may call groups of its own by the ids of others. */
static void who_key(uid_t uid, const char *id, char key[WHO_KEY])
{
	if (uid)
		snprintf(key, WHO_KEY, "%u/%.*s", (unsigned)uid, NAME_MAX, id);
	else
		snprintf(key, WHO_KEY, "%.*s", NAME_MAX, id);
}

static struct who *who_find(const struct containers *cs, uid_t uid, const char *id)
{
	char key[WHO_KEY];
	struct who *w;

	who_key(uid, id, key);
	HASH_FIND_STR(cs->whos, key, w);
	return w;
}

static struct who *who_add(struct containers *cs, uid_t uid, const char *id)
{
	struct who *w = calloc(1, sizeof(*w));
	char key[WHO_KEY];

	if (!w)
		return NULL;
	who_key(uid, id, key);
	w->key = strdup(key);
	w->id = clean(id);
	if (w->key && w->id)
		HASH_ADD_KEYPTR(hh, cs->whos, w->key, strlen(w->key), w);
	if (w->key && w->id && hash_added(w))
		return w;
	who_free(w);
	return NULL;
}

static void replace(char **text, const char *by)
{
	char *copy = by ? clean(by) : NULL;

	if (by && !copy)
		return;
	free(*text);
	*text = copy;
}

static struct who *who_named(struct containers *cs, uid_t uid, const char *id, const char *name,
			     const char *pod, const char *namespace)
{
	struct who *w = who_find(cs, uid, id);

	if (w && w->name && !w->again_ns)
		return w;
	if (!w)
		w = who_add(cs, uid, id);
	if (!w)
		return NULL;
	replace(&w->name, name);
	replace(&w->pod, pod);
	replace(&w->namespace, namespace);
	w->again_ns = 0;
	return w;
}

static struct who *who_known(struct containers *cs, const struct container *c)
{
	return who_named(cs, c->uid, c->id, container_title(c), c->pod, c->namespace);
}

static struct who *who_nameless(struct containers *cs, const char *id, const char *path)
{
	char short_id[CONTAINER_ID_SHORT + 1];
	struct who *w;

	snprintf(short_id, sizeof(short_id), "%.*s", CONTAINER_ID_SHORT, id);
	w = who_named(cs, container_slice_of(path), id, short_id, NULL, NULL);
	if (w && !w->path)
		w->path = strdup(path);
	if (w && w->path)
		w->again_ns = now_ns() + REREAD_NS;
	return w;
}

/* Was there a new look? */
static bool reread(struct containers *cs, uint64_t now)
{
	uint64_t begin_ns = thread_cpu_ns(), rest_ns;

	if (now < cs->next_read_ns)
		return false;
	containers_fini(&cs->list);
	containers_read(NULL, NULL, &cs->list, NULL);
	cs->read_ns = now;
	rest_ns = REREAD_REST * (thread_cpu_ns() - begin_ns);
	cs->next_read_ns = now + (rest_ns > REREAD_NS ? rest_ns : REREAD_NS);
	return true;
}

/* The look before it may have been another's, and an engine's word not yet written. */
static void ask_again(struct containers *cs, struct who *w)
{
	const struct container *c;
	uint64_t now;

	if (!w || !w->again_ns)
		return;
	now = now_ns();
	if (now < w->again_ns)
		return;
	reread(cs, now);
	if (cs->read_ns + REREAD_NS < w->again_ns)
		return; /* before it was seen */
	c = container_by_path(&cs->list, w->path);
	if (c)
		who_known(cs, c);
	else
		w->again_ns = ++w->asked < ASKED_MAX ? now + (REREAD_NS << w->asked) : 0;
}

/* Are there containers whose groups have no id in their path? */
static bool has_other_ids(const struct container_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->list[i].cgroup && strlen(l->list[i].id) != CONTAINER_ID_HEX)
			return true;
	return false;
}

/* A group that is watched has its name from there: what the user called it by. */
static struct who *who_asked(struct containers *cs, const char *path)
{
	for (uint32_t i = 0; i < cs->run->cfg->n_groups; i++) {
		const struct group *g = &cs->run->cfg->groups[i];
		size_t len = strlen(g->at.path);

		if (g->id && strncmp(path, g->at.path, len) == 0 &&
		    (!path[len] || path[len] == '/'))
			return who_named(cs, g->uid, g->id, group_title(g), g->pod, g->namespace);
	}
	return NULL;
}

static struct who *who_of_path(struct containers *cs, const char *path)
{
	struct who *who = who_asked(cs, path);
	char id[CONTAINER_ID_HEX + 1];
	const struct container *c;
	bool has_id;
	size_t len;

	if (who)
		return who;
	if (!cs->read_ns)
		reread(cs, now_ns());
	has_id = container_id_in(path, id, &len);
	who = has_id ? who_find(cs, container_slice_of(path), id) : NULL;
	if (who)
		return who;
	c = container_by_path(&cs->list, path);
	if (!c && (has_id || has_other_ids(&cs->list)) && reread(cs, now_ns()))
		c = container_by_path(&cs->list, path);
	if (c)
		return who_known(cs, c);
	return has_id ? who_nameless(cs, id, path) : NULL;
}

/* --- groups and processes --- */

static void group_put(struct containers *cs, uint64_t id, struct who *who)
{
	struct known_group *g = hash_get(cs->groups, id, &id);

	if (g)
		g->who = who;
}

static bool preload(void *ctx, const char *path)
{
	struct containers *cs = ctx;
	struct who *who = who_of_path(cs, path);
	uint64_t id;

	if (who && cgroup_id_of(&cs->mounts, 0, path, &id) == 0)
		group_put(cs, id, who);
	return true;
}

static int prepare(void *self, struct session_opts *opts, struct err *e)
{
	struct containers *cs = self;

	(void)opts;
	(void)e;
	if (cgroup_mounts_read(&cs->mounts, NULL) == 0 && cs->run->cfg->all)
		cgroup_each(&cs->mounts, 0, preload, cs);
	return 0;
}

static void forget_all(struct containers *cs)
{
	struct who *w, *next;

	hash_free(cs->processes);
	hash_free(cs->groups);
	HASH_ITER (hh, cs->whos, w, next) {
		HASH_DEL(cs->whos, w);
		who_free(w);
	}
}

static void free_containers(void *self)
{
	struct containers *cs = self;

	forget_all(cs);
	hash_free(cs->met);
	containers_fini(&cs->list);
	cgroup_mounts_fini(&cs->mounts);
}

static enum drain_says on_cgroup(void *ctx, const void *record, const void *more)
{
	const struct drain_cgroup *made = record;
	struct containers *cs = ctx;
	struct who *who;

	/* Those that are there are found again. */
	if (HASH_COUNT(cs->groups) >= REMEMBERED || HASH_COUNT(cs->whos) >= REMEMBERED)
		forget_all(cs);
	who = who_of_path(cs, made->path);
	if (!made->hierarchy)
		group_put(cs, made->id, who);
	(void)more;
	return DRAIN_TAKEN;
}

/* NULL: in none, or not known. */
static struct who *who_of_group(struct containers *cs, uint64_t id)
{
	struct who *who = NULL;
	struct known_group *g;
	char path[PATH_MAX];

	if (!id)
		return NULL;
	HASH_FIND(hh, cs->groups, &id, sizeof(id), g);
	if (g)
		return g->who;
	if (cgroup_path_of(&cs->mounts, id, path, sizeof(path)) == 0)
		who = who_of_path(cs, path);
	group_put(cs, id, who);
	return who;
}

static struct who *who_of_process(struct containers *cs, pid_t pid)
{
	char path[PATH_MAX];
	uint32_t hierarchy;

	if (cgroup_of_process(pid, &hierarchy, path, sizeof(path)) < 0)
		return NULL;
	return who_of_path(cs, path);
}

/* -G: samples say of which group they are, where there are several. */
static bool tells_groups(const struct containers *cs)
{
	const struct run_config *cfg = cs->run->cfg;

	return cfg->n_groups > 1 && !cfg->groups[0].id;
}

static int group_of_living(const struct containers *cs, pid_t pid)
{
	const struct run_config *cfg = cs->run->cfg;
	char path[PATH_MAX];

	for (uint32_t i = 0; i < cfg->n_groups; i++) {
		uint32_t hierarchy = cfg->groups[i].at.hierarchy;
		int group;

		if (cgroup_path_in(pid, hierarchy, path, sizeof(path)) < 0)
			continue;
		group = group_of_path(cfg->groups, cfg->n_groups, hierarchy, path);
		if (group >= 0)
			return group;
	}
	return -1;
}

static int group_of_met(const struct containers *cs, pid_t pid)
{
	struct met_process *m;

	HASH_FIND_INT(cs->met, &pid, m);
	return m ? m->group : -1;
}

/* By the id that the kernel's programs saw, which holds for one that has ended; by /proc; as it was met. */
static int group_of(struct containers *cs, uint64_t cgroup_id, pid_t pid)
{
	const struct run_config *cfg = cs->run->cfg;
	char path[PATH_MAX];
	int group = -1;

	if (!tells_groups(cs))
		return -1;
	if (cgroup_id && cgroup_path_of(&cs->mounts, cgroup_id, path, sizeof(path)) == 0)
		group = group_of_path(cfg->groups, cfg->n_groups, 0, path);
	if (group < 0)
		group = group_of_living(cs, pid);
	return group < 0 ? group_of_met(cs, pid) : group;
}

/* A child is in its parent's, unless it is known better. */
static void process(void *self, const struct process_event *event)
{
	struct containers *cs = self;
	struct met_process *m;
	pid_t pid = event->pid;
	int group;

	if (!tells_groups(cs) || (event->kind != PROCESS_ADDED && event->kind != PROCESS_MEMBER &&
				  event->kind != PROCESS_FORKED && event->kind != PROCESS_LISTED))
		return;
	group = group_of_living(cs, pid);
	if (group < 0 && event->kind == PROCESS_FORKED)
		group = group_of_met(cs, event->ppid);
	if (group < 0)
		return;
	if (HASH_COUNT(cs->met) >= REMEMBERED)
		hash_free(cs->met);
	m = hash_get(cs->met, pid, &pid);
	if (m)
		m->group = group;
}

/* 0: gone, or the same. */
static pid_t read_ns_pid(pid_t pid)
{
	pid_t ns_pid = proc_ns_pid(pid);

	return ns_pid != pid ? ns_pid : 0;
}

static void forget_processes(struct containers *cs)
{
	if (HASH_COUNT(cs->processes) < REMEMBERED)
		return;
	hash_free(cs->processes);
}

static void look_up(struct containers *cs, struct known_process *p, uint64_t cgroup_id)
{
	pid_t pid = (pid_t)p->key.pid;

	p->by_group = cgroup_id;
	p->who = who_of_group(cs, cgroup_id);
	/* The root of the unified hierarchy: there may be others. */
	if (!p->who)
		p->who = who_of_process(cs, pid);
	p->group = group_of(cs, cgroup_id, pid);
	p->ns_pid = target_ns_pid(cs->run, pid);
	if (p->who && !p->ns_pid)
		p->ns_pid = read_ns_pid(pid);
}

static const struct known_process *known(struct containers *cs, const struct proc_id *proc,
					 uint64_t cgroup_id)
{
	struct known_process *p;

	HASH_FIND(hh, cs->processes, proc, sizeof(*proc), p);
	if (p)
		ask_again(cs, p->who);
	if (p && (p->by_group || p->who || !cgroup_id))
		return p;
	if (!p) {
		forget_processes(cs);
		p = hash_new(cs->processes, key, proc);
	}
	if (p)
		look_up(cs, p, cgroup_id);
	return p;
}

static void on_group(void *ctx, const struct proc_id *proc, uint64_t cgroup_id)
{
	known(ctx, proc, cgroup_id);
}

static void whose(void *ctx, const struct proc_id *proc, uint64_t cgroup_id,
		  struct ingest_container *ret_container)
{
	struct containers *cs = ctx;
	const struct known_process *p = known(cs, proc, cgroup_id);

	if (!p)
		return;
	ret_container->name = p->who ? p->who->name : NULL;
	ret_container->id = p->who ? p->who->id : NULL;
	ret_container->pod = p->who ? p->who->pod : NULL;
	ret_container->namespace = p->who ? p->who->namespace : NULL;
	if (p->group >= 0)
		ret_container->cgroup = group_unique_title(
			cs->run->cfg->groups, cs->run->cfg->n_groups, (uint32_t)p->group);
	ret_container->ns_pid = p->ns_pid;
	ret_container->unsure = !p->by_group && !p->who;
}

static int open_containers(void *self, struct err *e)
{
	struct containers *cs = self;

	(void)e;
	drain_on(cs->run->drain, DRAIN_CGROUP, on_cgroup, cs);
	drain_on_groups(cs->run->drain, on_group, cs);
	return 0;
}

static int attach(void *self, struct err *e)
{
	struct containers *cs = self;

	(void)e;
	ingest_container_lookup(cs->run->ingest, whose, cs);
	return 0;
}

const struct component containers_component = {
	.name = "containers",
	.size = sizeof(struct containers),
	.prepare = prepare,
	.open = open_containers,
	.attach = attach,
	.process = process,
	.free = free_containers,
};
