#include "run/group.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

const char *group_title(const struct group *g)
{
	const char *slash = strrchr(g->at.path, '/');

	if (g->name && *g->name)
		return g->name;
	if (g->id)
		return g->id;
	return slash && slash[1] ? slash + 1 : g->at.path;
}

const char *group_unique_title(const struct group *all, uint32_t n, uint32_t i)
{
	const char *title = group_title(&all[i]);

	for (uint32_t k = 0; !all[i].id && k < n; k++)
		if (k != i && strcmp(group_title(&all[k]), title) == 0)
			return all[i].at.path[1] ? all[i].at.path + 1 : all[i].at.path;
	return title;
}

int group_of_path(const struct group *all, uint32_t n, uint32_t hierarchy, const char *path)
{
	size_t longest = 0;
	int found = -1;

	for (uint32_t i = 0; i < n; i++) {
		const char *group = all[i].at.path;
		size_t len = group[1] ? strlen(group) : 0; /* the root holds all */

		if (all[i].at.hierarchy == hierarchy && (found < 0 || len > longest) &&
		    strncmp(path, group, len) == 0 && (!path[len] || path[len] == '/')) {
			longest = len;
			found = (int)i;
		}
	}
	return found;
}

void groups_free(struct group *g, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(g[i].name);
		free(g[i].id);
		free(g[i].engine);
		free(g[i].image);
		free(g[i].pod);
		free(g[i].namespace);
		g[i] = (struct group){ 0 };
	}
}

/* Cuts the next name off; false: it is empty. */
static bool next_name(const char **list, char *out, size_t cap)
{
	size_t len = strcspn(*list, ",");

	if (!len || len >= cap)
		return false;
	memcpy(out, *list, len);
	out[len] = '\0';
	*list += len + ((*list)[len] == ',' && (*list)[len + 1]);
	return true;
}

int groups_check(const char *option, const char *names, struct err *e)
{
	char name[PATH_MAX];
	int n = 0;

	do {
		if (n++ == GROUPS_MAX || !next_name(&names, name, sizeof(name)))
			return err_set(e, -EINVAL, "%s takes names separated by commas, %d at most",
				       option, GROUPS_MAX);
	} while (*names);
	return 0;
}

static bool is_there(const struct group *g, uint32_t n, const struct cgroup *at)
{
	for (uint32_t i = 0; i < n; i++)
		if (g[i].at.hierarchy == at->hierarchy && g[i].at.id == at->id)
			return true;
	return false;
}

/* The same of control groups: a hierarchy of several controllers has commas in its directory, /sys/fs/cgroup/cpu,cpuacct. */
static bool next_group(const char **list, char *out, size_t cap)
{
	const char *end = **list == '/' ? strstr(*list, ",/") : NULL;
	size_t len = end ? (size_t)(end - *list) : strlen(*list);

	if (**list != '/')
		return next_name(list, out, cap);
	if (len >= cap)
		return false;
	memcpy(out, *list, len);
	out[len] = '\0';
	*list += len + (end != NULL);
	return true;
}

/* One without a slash before it may follow one with: "/a,b". */
static int find_cgroup(const struct cgroup_mounts *m, const char **names, struct cgroup *ret,
		       struct err *e)
{
	const char *rest = *names, *first = *names;
	char name[PATH_MAX];
	int r;

	if (!next_group(&rest, name, sizeof(name)))
		return groups_check("-G", ",", e);
	r = cgroup_find(m, name, ret, e);
	if (r < 0 && strchr(name, ',') && next_name(&first, name, sizeof(name)) &&
	    cgroup_find(m, name, ret, NULL) == 0) {
		*names = first;
		return 0;
	}
	*names = rest;
	return r;
}

int groups_of_cgroups(const struct cgroup_mounts *m, const char *names, struct group *out,
		      struct err *e)
{
	uint32_t n = 0;

	do {
		struct group *g = &out[n];
		int r;

		if (n == GROUPS_MAX)
			return groups_check("-G", ",", e);
		*g = (struct group){ 0 };
		r = find_cgroup(m, &names, &g->at, e);
		if (r < 0)
			return r;
		n += !is_there(out, n, &g->at);
	} while (*names);
	return (int)n;
}

/* `g` is zeroed, or is another container of that name. */
static int set_container(const struct cgroup_mounts *m, const struct container *c, struct group *g,
			 struct err *e)
{
	struct group fresh = { .by_name = g->by_name, .restarts = g->restarts, .uid = c->uid };
	int r;

	fresh.name = strdup(container_title(c));
	fresh.id = strdup(c->id);
	fresh.engine = strdup(c->engine);
	fresh.image = c->image ? strdup(c->image) : NULL;
	fresh.pod = c->pod ? strdup(c->pod) : NULL;
	fresh.namespace = c->namespace ? strdup(c->namespace) : NULL;
	fresh.at.hierarchy = c->hierarchy;
	snprintf(fresh.at.path, sizeof(fresh.at.path), "%s", c->path ? c->path : "");
	r = fresh.name && fresh.id && fresh.engine ? 0 : -ENOMEM;
	if (r < 0) {
		groups_free(&fresh, 1);
		return err_set(e, r, "out of memory");
	}
	if (c->path)
		r = cgroup_id_of(m, c->hierarchy, c->path, &fresh.at.id);
	if (r < 0) {
		groups_free(&fresh, 1);
		return err_set(e, -ESRCH, "container \"%.64s\" has just ended", container_title(c));
	}
	groups_free(g, 1);
	*g = fresh;
	return 0;
}

int groups_of_containers(const struct cgroup_mounts *m, const char *names, struct group *out,
			 struct err *e)
{
	struct container_list all;
	char name[NAME_MAX + 1];
	int r = containers_read(NULL, m, &all, e), n = 0;

	if (r < 0)
		return r;
	do {
		const struct container *c;

		if (n == GROUPS_MAX || !next_name(&names, name, sizeof(name))) {
			r = groups_check("-c", ",", e);
			break;
		}
		out[n] = (struct group){ 0 };
		r = container_find(&all, name, &c, e);
		if (r < 0)
			break;
		out[n].by_name = container_is_called(c, name);
		r = set_container(m, c, &out[n], e);
		if (r == 0 && is_there(out, (uint32_t)n, &out[n].at))
			groups_free(&out[n], 1);
		else
			n += r == 0;
	} while (r == 0 && *names);
	containers_fini(&all);
	if (r < 0)
		groups_free(out, (uint32_t)n);
	return r < 0 ? r : n;
}

/* Something of that name may come. */
static bool may_come(int error)
{
	return error == -ESRCH || error == -ENOENT || error == -EEXIST;
}

int groups_there(const struct cgroup_mounts *m, bool containers, const char *names,
		 struct group *out, struct strbuf *missing, struct err *e)
{
	char name[PATH_MAX];
	uint32_t n = 0;

	while (*names && n < GROUPS_MAX &&
	       (containers ? next_name : next_group)(&names, name, sizeof(name))) {
		struct group one[GROUPS_MAX] = { 0 };
		int r = containers ? groups_of_containers(m, name, one, e)
				   : cgroup_find(m, name, &one[0].at, e);

		r += !containers && r == 0; /* one is there */
		if (r == 1 && is_there(out, n, &one[0].at)) {
			groups_free(one, 1);
		} else if (r == 1) {
			out[n++] = one[0];
		} else if (!may_come(r)) {
			groups_free(out, n);
			return r;
		} else if (missing) {
			strbuf_printf(missing, "%s%s", missing->len ? "," : "", name);
		}
	}
	return (int)n;
}

uint32_t groups_processes(const struct cgroup_mounts *m, const struct group *g, uint32_t n,
			  pid_t *out, uint32_t cap)
{
	uint32_t have = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t more = cgroup_processes(m, &g[i].at, out + have, cap - have), from = have;

		if (more > cap - have)
			more = cap - have;
		/* One group may be below another. */
		for (uint32_t j = from; j < from + more; j++) {
			bool again = out[j] == getpid();

			for (uint32_t k = 0; k < from && !again; k++)
				again = out[k] == out[j];
			if (!again)
				out[have++] = out[j];
		}
	}
	return have;
}

/* `path` with one id in the place of the other; NULL: it does not have that, or out of memory. */
static char *path_with(const char *path, const char *old_id, const char *new_id)
{
	const char *at = strstr(path, old_id);
	char *made = NULL;

	if (!at ||
	    asprintf(&made, "%.*s%s%s", (int)(at - path), path, new_id, at + strlen(old_id)) < 0)
		return NULL;
	return made;
}

/* Pods of two namespaces may have the same. */
static bool is_one_of_its_name(const struct container *c, const struct group *g)
{
	return c->uid == g->uid && strcmp(c->name, g->name) == 0 &&
	       strcmp(c->engine, g->engine) == 0 &&
	       strcmp(c->namespace ? c->namespace : "", g->namespace ? g->namespace : "") == 0;
}

int group_renewed(const struct cgroup_mounts *m, struct group *g, struct cgroup *ret_at)
{
	_cleanup_(freep) char *expected = NULL;
	struct container_list all;
	const struct container *c = NULL;
	struct cgroup at = { .hierarchy = g->at.hierarchy };
	int r;

	if (!g->by_name || containers_read(NULL, m, &all, NULL) < 0)
		return -ENOENT;
	for (uint32_t i = 0; i < all.n; i++)
		if (is_one_of_its_name(&all.list[i], g) && (!c || all.list[i].running))
			c = &all.list[i];
	r = c && strcmp(c->id, g->id) != 0 ? 0 : -ENOENT;
	if (r == 0) {
		expected = path_with(g->at.path, g->id, c->id);
		at.hierarchy = c->path ? c->hierarchy : g->at.hierarchy;
		snprintf(at.path, sizeof(at.path), "%s",
			 c->path    ? c->path
			 : expected ? expected
				    : "");
		r = at.path[0] ? set_container(m, c, g, NULL) : -ENOENT;
	}
	containers_fini(&all);
	if (r == 0) {
		g->at.hierarchy = at.hierarchy;
		memcpy(g->at.path, at.path, sizeof(at.path));
		*ret_at = g->at;
	}
	return r;
}

int group_first_process(const char *name, pid_t *ret_pid, struct err *e)
{
	_cleanup_(cgroup_mounts_fini) struct cgroup_mounts mounts = { 0 };
	struct group groups[GROUPS_MAX];
	int n, r = cgroup_mounts_read(&mounts, e);

	if (r < 0)
		return r;
	n = groups_of_containers(&mounts, name, groups, e);
	if (n > 1)
		r = err_set(e, -EINVAL, "-c: name one container here, not %d", n);
	else if (n < 0)
		r = n;
	else if (!groups_processes(&mounts, groups, 1, ret_pid, 1))
		r = err_set(e, -ESRCH, "container \"%.64s\" has no process", name);
	groups_free(groups, n > 0 ? (uint32_t)n : 0);
	return r;
}
