#include "container/container.h"

#include "base/grow.h"
#include "base/strbuf.h"
#include "container/engine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHORTEST_PREFIX 3
#define LISTED_MAX      8
#define IMAGE_MAX       512

/* --- ids in paths --- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* 64 hexadecimal digits that stand alone in [s, end). */
static const char *find_id(const char *s, const char *end)
{
	for (const char *at = s; at + CONTAINER_ID_HEX <= end; at++) {
		int n = 0;

		while (n < CONTAINER_ID_HEX && isxdigit((unsigned char)at[n]) &&
		       !isupper((unsigned char)at[n]))
			n++;
		if (n == CONTAINER_ID_HEX && (at == s || !is_word(at[-1])) &&
		    (at + n == end || !is_word(at[n])))
			return at;
	}
	return NULL;
}

/* Podman's conmon and CRI-O's, which are in groups of their own: libpod-conmon-ID.scope. */
static bool is_helper(const char *s, const char *id)
{
	static const char word[] = "conmon";

	for (; s + sizeof(word) - 1 <= id; s++)
		if (strncmp(s, word, sizeof(word) - 1) == 0)
			return true;
	return false;
}

bool container_id_in(const char *path, char out[CONTAINER_ID_HEX + 1], size_t *ret_len)
{
	for (const char *s = path; *s; s += *s == '/') {
		const char *end = s + strcspn(s, "/"), *id = find_id(s, end);

		if (id && !is_helper(s, id)) {
			memcpy(out, id, CONTAINER_ID_HEX);
			out[CONTAINER_ID_HEX] = '\0';
			*ret_len = (size_t)(end - path);
			return true;
		}
		s = end;
	}
	return false;
}

/* --- the list --- */

const struct container *container_by_id(const struct container_list *l, const char *id)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->list[i].id, id) == 0)
			return &l->list[i];
	return NULL;
}

static void container_fini(struct container *c)
{
	free(c->id);
	free(c->name);
	free(c->alias);
	free(c->pod);
	free(c->namespace);
	free(c->image);
	free(c->cgroup);
	free(c->path);
}

/* What is no number may be used twice, in two namespaces of an engine. */
static bool is_known(const struct container_list *l, const char *engine, const char *id)
{
	const struct container *c = container_by_id(l, id);

	return c && (strlen(id) == CONTAINER_ID_HEX || strcmp(c->engine, engine) != 0);
}

struct container *container_add(struct container_list *l, const char *engine, const char *id,
				const char *name, const char *image)
{
	struct container *c;

	if (!*id || l->n == CONTAINERS_MAX || is_known(l, engine, id))
		return NULL;
	if (!GROW(l->list, l->n, l->cap))
		return NULL;
	c = &l->list[l->n];
	*c = (struct container){
		.engine = engine,
		.id = strndup(id, NAME_MAX),
		.name = strndup(name ? name : "", NAME_MAX),
		.image = image ? strndup(image, IMAGE_MAX) : NULL,
		.uid = l->uid,
	};
	if (!c->id || !c->name) {
		container_fini(c);
		return NULL;
	}
	l->n++;
	return c;
}

struct container *container_add_kubernetes(struct container_list *l, const char *engine,
					   const char *id, const struct kubernetes_names *names,
					   const char *image)
{
	char name[2 * NAME_MAX];
	struct container *c;

	if (names->pod && names->container)
		snprintf(name, sizeof(name), "%.127s/%.127s", names->pod, names->container);
	else
		snprintf(name, sizeof(name), "%s", names->container ? names->container : "");
	c = container_add(l, engine, id, name, image);
	if (!c)
		return NULL;
	c->alias = names->container ? strndup(names->container, NAME_MAX) : NULL;
	c->pod = names->pod ? strndup(names->pod, NAME_MAX) : NULL;
	c->namespace = names->namespace ? strndup(names->namespace, NAME_MAX) : NULL;
	return c;
}

void containers_fini(struct container_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		container_fini(&l->list[i]);
	free(l->list);
	*l = (struct container_list){ 0 };
}

uid_t container_slice_of(const char *path)
{
	const char *at = strstr(path, "/user-");
	char *end;
	unsigned long uid;

	if (!at)
		return 0;
	uid = strtoul(at + 6, &end, 10);
	return end > at + 6 && strncmp(end, ".slice", 6) == 0 ? (uid_t)uid : 0;
}

bool container_may_be_at(const struct container *c, const char *path)
{
	return container_slice_of(path) == c->uid;
}

struct place {
	struct container_list *l;
	const struct cgroup_mounts *m;
	uint32_t hierarchy;
};

/* Who made the group, as far as that can be seen: a user of a service that has groups of its own may give one any name. */
static bool is_made_by(const struct place *p, const struct container *c, const char *path,
		       size_t len)
{
	char parent[PATH_MAX], dir[2 * PATH_MAX];
	struct stat st;

	while (len > 1 && path[len - 1] != '/')
		len--;
	snprintf(parent, sizeof(parent), "%.*s", (int)(len > 1 ? len - 1 : 1), path);
	if (!cgroup_directory(p->m, p->hierarchy, parent, dir, sizeof(dir)) || stat(dir, &st) < 0)
		return !c->uid;
	return st.st_uid == c->uid || (!c->uid && st.st_uid == geteuid());
}

static void runs_at(struct container *c, uint32_t hierarchy, const char *path, size_t len)
{
	char *copy = strndup(path, len);

	if (!copy)
		return;
	free(c->path);
	c->path = copy;
	c->hierarchy = hierarchy;
	c->running = true;
}

/* A container's own groups below it are not read. */
static bool take_group(void *ctx, const char *path)
{
	struct place *p = ctx;
	char id[CONTAINER_ID_HEX + 1];
	struct container *c;
	size_t len;

	if (!container_id_in(path, id, &len))
		return true;
	c = (struct container *)container_by_id(p->l, id);
	if (c && ((!c->uid && !container_may_be_at(c, path)) || !is_made_by(p, c, path, len)))
		return false;
	if (!c) {
		c = container_add(p->l, "", id, "", NULL);
		if (c)
			c->uid = container_slice_of(path);
	}
	if (c && !c->running)
		runs_at(c, p->hierarchy, path, len);
	return false;
}

/* Each hierarchy has it; the unified one is asked first. */
static void find_places(struct container_list *l, const struct cgroup_mounts *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		uint32_t hierarchy = m->list[i].id;
		struct place p = { l, m, hierarchy };
		uint64_t id;

		for (uint32_t j = 0; j < l->n; j++)
			if (l->list[j].cgroup && !l->list[j].running &&
			    cgroup_id_of(m, hierarchy, l->list[j].cgroup, &id) == 0)
				runs_at(&l->list[j], hierarchy, l->list[j].cgroup, PATH_MAX);
		cgroup_each(m, hierarchy, take_group, &p);
	}
}

static int open_root(const char *root)
{
	if (!root)
		root = getenv("MEMSCOPE_ENGINES_ROOT");
	return open(root && *root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int containers_read(const char *root, const struct cgroup_mounts *m,
		    struct container_list *ret_list, struct err *e)
{
	_cleanup_(closep) int fd = open_root(root);
	struct container_list l = { 0 };
	char where[128];

	for (const struct engine *engine = engines; fd >= 0 && engine->name; engine++)
		engine->read(fd, &l, where, sizeof(where));
	/* After all of root's: the first that names an id has it. */
	for (const struct engine *engine = engines; fd >= 0 && engine->name; engine++)
		state_read_homes(fd, engine, &l);
	if (m)
		find_places(&l, m);
	(void)e;
	*ret_list = l;
	return 0;
}

uint32_t engines_find(const char *root, const struct container_list *l, struct engine_finding *out,
		      uint32_t cap)
{
	_cleanup_(closep) int fd = open_root(root);
	uint32_t n = 0;

	for (const struct engine *engine = engines; engine->name && n < cap; engine++, n++) {
		struct container_list own = { 0 };

		out[n] = (struct engine_finding){
			.name = engine->name,
			.env = engine->env,
			.looked = engine->looked,
		};
		if (fd >= 0 && !engine->read(fd, &own, out[n].where, sizeof(out[n].where)))
			snprintf(out[n].where, sizeof(out[n].where), "%s",
				 state_read_homes(fd, engine, &own) ? "homes of users" : "");
		containers_fini(&own);
		for (uint32_t i = 0; i < l->n; i++)
			if (strcmp(l->list[i].engine, engine->name) == 0) {
				out[n].containers++;
				out[n].running += l->list[i].running;
			}
	}
	return n;
}

/* --- which one is meant --- */

const char *container_title(const struct container *c)
{
	static char text[NAME_MAX + 1];

	if (*c->name)
		return c->name;
	snprintf(text, sizeof(text), "%.*s",
		 strlen(c->id) == CONTAINER_ID_HEX ? CONTAINER_ID_SHORT : NAME_MAX, c->id);
	return text;
}

/* Is `name` NAMESPACE/`rest`, in its namespace? */
static bool is_in_namespace(const struct container *c, const char *name, const char *rest)
{
	size_t len = c->namespace ? strlen(c->namespace) : 0;

	return len && strncmp(name, c->namespace, len) == 0 && name[len] == '/' &&
	       strcmp(name + len + 1, rest) == 0;
}

bool container_is_called(const struct container *c, const char *name)
{
	return *c->name && (strcmp(c->name, name) == 0 || is_in_namespace(c, name, c->name));
}

/* A pod's container by itself, or the pod of one. */
static bool is_shared_name(const struct container *c, const char *name)
{
	return (c->alias && strcmp(c->alias, name) == 0) ||
	       (c->pod && (strcmp(c->pod, name) == 0 || is_in_namespace(c, name, c->pod)));
}

/* How well a name fits: 3 its own, 2 an id's beginning, 1 one that replicas share, 0 not. */
static int fit(const struct container *c, const char *name)
{
	size_t len = strlen(name);

	if (container_is_called(c, name) || strcmp(c->id, name) == 0)
		return 3;
	if (len >= SHORTEST_PREFIX && strncmp(c->id, name, len) == 0)
		return 2;
	return is_shared_name(c, name) ? 1 : 0;
}

static void list_one(struct strbuf *b, const struct container *c)
{
	const char *title = container_title(c);

	strbuf_puts(b, b->len ? ", " : "");
	if (c->namespace) {
		strbuf_add_clean(b, c->namespace, strnlen(c->namespace, 64));
		strbuf_puts(b, "/");
	}
	strbuf_add_clean(b, title, strnlen(title, 64));
	if (*c->name)
		strbuf_printf(b, " (%s%s%.*s)", c->engine, *c->engine ? " " : "",
			      CONTAINER_ID_SHORT, c->id);
}

/* Those that fit so well, or (0) those that run. */
static void list_all(struct strbuf *b, const struct container_list *l, const char *name, int how,
		     bool running)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n; i++) {
		const struct container *c = &l->list[i];

		if ((running && !c->running) || (how && fit(c, name) != how) || n++ >= LISTED_MAX)
			continue;
		list_one(b, c);
	}
	if (n > LISTED_MAX)
		strbuf_printf(b, " and %u more", n - LISTED_MAX);
}

/* Of those that fit best, root's alone count where there is one. */
static bool counts(const struct container_list *l, const struct container *c, const char *name,
		   int how)
{
	if (!c->uid)
		return true;
	for (uint32_t i = 0; i < l->n; i++)
		if (!l->list[i].uid && fit(&l->list[i], name) == how)
			return false;
	return true;
}

/* Is there one of which only the control group was found? */
static bool has_nameless(const struct container_list *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (!*l->list[i].engine)
			return true;
	return false;
}

int container_find(const struct container_list *l, const char *name,
		   const struct container **ret_container, struct err *e)
{
	const struct container *found = NULL;
	uint32_t n[4] = { 0 }, running[4] = { 0 };
	struct strbuf b = { 0 };
	int how, rc;

	for (uint32_t i = 0; i < l->n; i++) {
		how = fit(&l->list[i], name);
		if (how && !counts(l, &l->list[i], name, how))
			continue;
		n[how]++;
		running[how] += l->list[i].running;
	}
	how = n[3] ? 3 : n[2] ? 2 : n[1] ? 1 : 0;
	for (uint32_t i = 0; how && i < l->n; i++)
		if (fit(&l->list[i], name) == how && counts(l, &l->list[i], name, how) &&
		    (!found || (l->list[i].running && !found->running)))
			found = &l->list[i];
	if (how && running[how] == 1) {
		*ret_container = found;
		return 0;
	}
	list_all(&b, l, name, how && n[how] > 1 ? how : 0, running[how] > 0 || n[how] < 2);
	if (how && n[how] > 1)
		rc = err_set(e, -EEXIST,
			     "%u containers are called \"%.64s\": %s; name one by its id",
			     running[how] ? running[how] : n[how], name, b.s ? b.s : "");
	else if (how)
		rc = err_set(e, -ESRCH, "container \"%.64s\" (%s) does not run; those that do: %s",
			     container_title(found), found->engine, b.s ? b.s : "none");
	else
		rc = err_set(e, -ENOENT,
			     has_nameless(l) ? "there is no container \"%.64s\"; those that run: "
					       "%s; of some the name is not known (memscope doctor "
					       "says where it was looked for)"
					     : "there is no container \"%.64s\"; those that run: "
					       "%s",
			     name, b.s ? b.s : "none");
	strbuf_free(&b);
	return rc;
}

const struct container *container_by_path(const struct container_list *l, const char *path)
{
	char id[CONTAINER_ID_HEX + 1];
	size_t id_len;

	if (container_id_in(path, id, &id_len)) {
		const struct container *c = container_by_id(l, id);

		return c && container_may_be_at(c, path) ? c : NULL;
	}
	for (uint32_t i = 0; i < l->n; i++) {
		const char *own = l->list[i].path ? l->list[i].path : l->list[i].cgroup;
		size_t len = own ? strlen(own) : 0;

		if (len > 1 && strncmp(path, own, len) == 0 && (!path[len] || path[len] == '/'))
			return &l->list[i];
	}
	return NULL;
}
