#include "proc/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define DEPTH_MAX       32
#define FILEID_KERNFS   0xfe /* linux/exportfs.h */
#define KERNFS_ID_BYTES 8

/* --- hierarchies --- */

bool cgroup_parse_line(char *line, uint32_t *ret_hierarchy, const char **ret_controllers,
		       const char **ret_path)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL, *end;
	unsigned long id;

	if (!path || path[1] != '/' || !isdigit((unsigned char)*line))
		return false;
	errno = 0;
	id = strtoul(line, &end, 10);
	if (errno || end != controllers || id > UINT32_MAX)
		return false;
	*controllers++ = '\0';
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	*ret_hierarchy = (uint32_t)id;
	*ret_controllers = controllers;
	*ret_path = path;
	return true;
}

/* "a" of "x,a,y". */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && strncmp(at, word, len) == 0)
			return true;
	return false;
}

bool cgroup_has_controller(const struct cgroup_hierarchy *h, const char *controller)
{
	return has_word(h->controllers, controller);
}

/* Are all of these controllers among a mount's options? Only one hierarchy has any of them. */
static bool is_mount_of(const char *controllers, const char *options)
{
	char first[128];

	snprintf(first, sizeof(first), "%.*s", (int)strcspn(controllers, ","), controllers);
	return *first && has_word(options, first);
}

/* The id of what is mounted with these options. 1; 0: /proc/self/cgroup does not have it; -ENOMEM. */
static int number_of(struct cgroup_hierarchy *h, const char *options)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
	const char *controllers, *path;
	char line[PATH_MAX + 256];

	if (!f && errno == ENOMEM)
		return -ENOMEM;
	while (f && fgets(line, sizeof(line), f))
		if (cgroup_parse_line(line, &h->id, &controllers, &path) &&
		    is_mount_of(controllers, options)) {
			snprintf(h->controllers, sizeof(h->controllers), "%s", controllers);
			return 1;
		}
	return 0;
}

/* mountinfo writes a blank as \040. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && isdigit((unsigned char)s[1]) && isdigit((unsigned char)s[2]) &&
		    isdigit((unsigned char)s[3])) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/*
 * The root's inode is 1 (kernfs_create_root()). In a namespace of our own, mountinfo shows the host's root as "/../..",
 * and what is "/" there is less.
 */
static bool is_whole(const struct cgroup_hierarchy *h)
{
	struct stat st;

	return stat(h->mount, &st) == 0 && st.st_ino == 1;
}

/* proc(5): id parent major:minor root mount options … - type source super-options. 1; 0: it is none; -ENOMEM. */
static int parse_mount(char *line, struct cgroup_hierarchy *ret)
{
	char *tail = strstr(line, " - "), type[32], options[1024];

	if (!tail || sscanf(tail + 3, "%31s %*s %1023s", type, options) != 2 ||
	    sscanf(line, "%*d %*d %*s %4095s %4095s", ret->root, ret->mount) != 2)
		return 0;
	unescape(ret->root);
	unescape(ret->mount);
	ret->id = 0;
	ret->controllers[0] = '\0';
	if (strcmp(type, "cgroup2") == 0)
		return 1;
	return strcmp(type, "cgroup") == 0 ? number_of(ret, options) : 0;
}

static bool shows_more(const struct cgroup_hierarchy *a, const struct cgroup_hierarchy *b)
{
	return a->whole != b->whole ? a->whole : strlen(a->root) < strlen(b->root);
}

static void put_mount(struct cgroup_mounts *m, struct cgroup_hierarchy *h)
{
	uint32_t at = 0;

	h->whole = is_whole(h);
	if (h->whole)
		strcpy(h->root, "/");
	/* Mounted several times: where most of it is seen. */
	for (uint32_t i = 0; i < m->n; i++)
		if (m->list[i].id == h->id) {
			if (shows_more(h, &m->list[i]))
				m->list[i] = *h;
			return;
		}
	if (m->n == CGROUP_HIERARCHIES_MAX)
		return;
	at = h->id ? m->n : 0;
	memmove(&m->list[at + 1], &m->list[at], (m->n - at) * sizeof(*h));
	m->list[at] = *h;
	m->n++;
}

int cgroup_mounts_read(struct cgroup_mounts *ret_mounts, struct err *e)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_(freep) struct cgroup_hierarchy *one = calloc(1, sizeof(*one));
	_cleanup_(freep) char *line = NULL;
	struct cgroup_mounts m = {
		.list = calloc(CGROUP_HIERARCHIES_MAX + 1, sizeof(*m.list)),
	};
	size_t cap = 0;
	int r;

	if (!m.list || !one) {
		free(m.list);
		return err_set(e, -ENOMEM, "out of memory");
	}
	r = f || errno != ENOMEM ? 0 : -ENOMEM;
	while (f && r >= 0 && getline(&line, &cap, f) > 0) {
		r = parse_mount(line, one);
		if (r > 0)
			put_mount(&m, one);
	}
	if (r < 0 || (f && !feof(f))) {
		free(m.list);
		return err_set(e, -ENOMEM, "out of memory for what is mounted");
	}
	if (!m.n) {
		free(m.list);
		return err_set(e, -ENOENT, "no hierarchy of control groups is mounted here");
	}
	*ret_mounts = m;
	return 0;
}

void cgroup_mounts_fini(struct cgroup_mounts *m)
{
	free(m->list);
	*m = (struct cgroup_mounts){ 0 };
}

const struct cgroup_hierarchy *cgroup_hierarchy_find(const struct cgroup_mounts *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->list[i].id == id)
			return &m->list[i];
	return NULL;
}

/* --- path and id --- */

/* Where a group's directory is seen; false: not below what is mounted, or too long. */
static bool directory_of(const struct cgroup_hierarchy *h, const char *path, char *out, size_t cap)
{
	size_t root = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
	int n;

	if (strncmp(path, h->root, root) != 0 || (path[root] && path[root] != '/'))
		return false;
	n = snprintf(out, cap, "%s%s", h->mount, path[root] ? path + root : "/");
	return n > 0 && (size_t)n < cap;
}

bool cgroup_directory(const struct cgroup_mounts *m, uint32_t hierarchy, const char *path,
		      char *out, size_t cap)
{
	const struct cgroup_hierarchy *h = cgroup_hierarchy_find(m, hierarchy);

	return h && directory_of(h, path, out, cap);
}

static int id_of_directory(const char *dir, uint64_t *ret_id)
{
	struct statfs fs;
	struct stat st;

	if (stat(dir, &st) < 0 || statfs(dir, &fs) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode) ||
	    (fs.f_type != CGROUP2_SUPER_MAGIC && fs.f_type != CGROUP_SUPER_MAGIC))
		return -EINVAL;
	*ret_id = st.st_ino;
	return 0;
}

int cgroup_id_of(const struct cgroup_mounts *m, uint32_t hierarchy, const char *path,
		 uint64_t *ret_id)
{
	char dir[2 * PATH_MAX];

	if (!cgroup_directory(m, hierarchy, path, dir, sizeof(dir)))
		return -ENOENT;
	return id_of_directory(dir, ret_id);
}

int cgroup_path_of(const struct cgroup_mounts *m, uint64_t id, char *out, size_t cap)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = { { .handle_bytes = KERNFS_ID_BYTES, .handle_type = FILEID_KERNFS }, id };
	const struct cgroup_hierarchy *h = cgroup_hierarchy_find(m, 0);
	_cleanup_(closep) int mount = -1, fd = -1;
	char link[64], dir[PATH_MAX];
	size_t skip;
	ssize_t n;

	if (!h)
		return -ENOENT;
	mount = open(h->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = mount < 0 ? -1 : open_by_handle_at(mount, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (n < 0)
		return -errno;
	dir[n] = '\0';
	skip = strlen(h->mount);
	if (strncmp(dir, h->mount, skip) != 0)
		return -ENOENT;
	n = snprintf(out, cap, "%s%s", strcmp(h->root, "/") == 0 ? "" : h->root,
		     dir[skip] ? dir + skip : "/");
	return n < (ssize_t)cap ? 0 : -ENAMETOOLONG;
}

/* A directory below one of the mounts. */
static bool by_directory(const struct cgroup_mounts *m, const char *dir, struct cgroup *ret_group)
{
	for (uint32_t i = 0; i < m->n; i++) {
		const struct cgroup_hierarchy *h = &m->list[i];
		size_t len = strlen(h->mount);
		int n;

		if (strncmp(dir, h->mount, len) != 0 || (dir[len] && dir[len] != '/'))
			continue;
		ret_group->hierarchy = h->id;
		n = snprintf(ret_group->path, sizeof(ret_group->path), "%s%s",
			     strcmp(h->root, "/") == 0 ? "" : h->root, dir[len] ? dir + len : "/");
		return n < PATH_MAX && id_of_directory(dir, &ret_group->id) == 0;
	}
	return false;
}

/* cgroup-v2.rst, "Threads": its processes belong to the domain above it. */
static bool is_threaded(const struct cgroup_mounts *m, const struct cgroup *group)
{
	char dir[2 * PATH_MAX], path[2 * PATH_MAX + 16], type[32] = "";
	_cleanup_(fclosep) FILE *f = NULL;

	if (group->hierarchy || !cgroup_directory(m, 0, group->path, dir, sizeof(dir)))
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.type", dir);
	f = fopen(path, "re");
	return f && fgets(type, sizeof(type), f) && strcmp(type, "threaded\n") == 0;
}

static int find_any(const struct cgroup_mounts *m, const char *name, struct cgroup *ret_group,
		    struct err *e)
{
	_cleanup_(freep) char *dir = realpath(name, NULL);
	char path[PATH_MAX];

	if (dir && by_directory(m, dir, ret_group))
		return 0;
	snprintf(path, sizeof(path), "%s%s", *name == '/' ? "" : "/", name);
	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/';)
		path[--len] = '\0';
	for (uint32_t i = 0; i < m->n && !strstr(path, "/../"); i++) {
		if (cgroup_id_of(m, m->list[i].id, path, &ret_group->id) < 0)
			continue;
		ret_group->hierarchy = m->list[i].id;
		snprintf(ret_group->path, sizeof(ret_group->path), "%s", path);
		return 0;
	}
	if (dir)
		return err_set(e, -EINVAL, "'%.256s' is no control group: those are below %s", name,
			       m->list[0].mount);
	return err_set(
		e, -ENOENT,
		"there is no control group '%.256s': name a directory below %.64s, or a path "
		"as /proc/PID/cgroup has it",
		name, m->list[0].mount);
}

int cgroup_find(const struct cgroup_mounts *m, const char *name, struct cgroup *ret_group,
		struct err *e)
{
	struct cgroup found;
	int r = find_any(m, name, &found, e);

	if (r < 0)
		return r;
	if (is_threaded(m, &found))
		return err_set(
			e, -EOPNOTSUPP,
			"'%.256s' is a threaded control group: it holds single threads of "
			"processes that are in a group above it; name that one, or threads with -t",
			name);
	*ret_group = found;
	return 0;
}

int cgroup_of_process(pid_t pid, uint32_t *ret_hierarchy, char *out, size_t cap)
{
	char name[64], best[PATH_MAX] = "", line[PATH_MAX + 256];
	_cleanup_(fclosep) FILE *f = NULL;
	const char *controllers, *path;
	uint32_t id;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!cgroup_parse_line(line, &id, &controllers, &path) || strlen(path) >= PATH_MAX)
			continue;
		if ((id == 0 && path[1]) || strlen(path) > strlen(best)) {
			snprintf(best, sizeof(best), "%s", path);
			*ret_hierarchy = id;
			if (id == 0 && path[1])
				break;
		}
	}
	if (!*best)
		return -ESRCH;
	return (size_t)snprintf(out, cap, "%s", best) < cap ? 0 : -ENAMETOOLONG;
}

int cgroup_path_in(pid_t pid, uint32_t hierarchy, char *out, size_t cap)
{
	char name[64], line[PATH_MAX + 256];
	_cleanup_(fclosep) FILE *f = NULL;
	const char *controllers, *path;
	uint32_t id;

	snprintf(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	f = fopen(name, "re");
	if (!f)
		return -ESRCH;
	while (fgets(line, sizeof(line), f))
		if (cgroup_parse_line(line, &id, &controllers, &path) && id == hierarchy)
			return (size_t)snprintf(out, cap, "%s", path) < cap ? 0 : -ENAMETOOLONG;
	return ferror(f) ? -ESRCH : -ENOENT;
}

bool cgroup_unit_in(const char *path, char *out, size_t cap)
{
	static const char end[] = ".service", manager[] = "user@";
	const char *unit = NULL;
	size_t unit_len = 0;

	for (const char *s = path; *s; s += *s == '/') {
		size_t len = strcspn(s, "/");

		if (len >= sizeof(end) &&
		    strncmp(s + len - (sizeof(end) - 1), end, sizeof(end) - 1) == 0 &&
		    strncmp(s, manager, sizeof(manager) - 1) != 0) {
			unit = s;
			unit_len = len;
		}
		s += len;
	}
	if (!unit || unit_len >= cap)
		return false;
	snprintf(out, cap, "%.*s", (int)unit_len, unit);
	return true;
}

/* --- below a directory --- */

static void read_processes(const char *dir, pid_t *out, uint32_t cap, uint32_t *n)
{
	char path[3 * PATH_MAX];
	_cleanup_(fclosep) FILE *f = NULL;
	int pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1) {
		if (pid > 0 && *n < cap)
			out[*n] = pid;
		*n += pid > 0;
	}
}

typedef bool (*visit_fn)(void *ctx, const char *dir);

static void visit(char *dir, size_t cap, int depth, visit_fn fn, void *ctx)
{
	size_t len = strlen(dir);
	DIR *d;

	if (!fn(ctx, dir) || depth == DEPTH_MAX)
		return;
	d = opendir(dir);
	for (struct dirent *ent; d && (ent = readdir(d));) {
		if (ent->d_type != DT_DIR || ent->d_name[0] == '.' ||
		    len + 1 + strlen(ent->d_name) >= cap)
			continue;
		snprintf(dir + len, cap - len, "%s%s", dir[len - 1] == '/' ? "" : "/", ent->d_name);
		visit(dir, cap, depth + 1, fn, ctx);
		dir[len] = '\0';
	}
	if (d)
		closedir(d);
}

struct process_list {
	pid_t *out;
	uint32_t cap, n;
};

static bool list_processes(void *ctx, const char *dir)
{
	struct process_list *list = ctx;

	read_processes(dir, list->out, list->cap, &list->n);
	return true;
}

uint32_t cgroup_processes(const struct cgroup_mounts *m, const struct cgroup *group, pid_t *out,
			  uint32_t cap)
{
	struct process_list list = { .out = out, .cap = cap };
	char dir[2 * PATH_MAX];

	if (cgroup_directory(m, group->hierarchy, group->path, dir, sizeof(dir)))
		visit(dir, sizeof(dir), 0, list_processes, &list);
	return list.n;
}

struct each {
	const struct cgroup_hierarchy *h;
	cgroup_each_fn fn;
	void *ctx;
};

static bool each_group(void *ctx, const char *dir)
{
	const struct each *each = ctx;
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", strcmp(each->h->root, "/") == 0 ? "" : each->h->root,
		 dir[strlen(each->h->mount)] ? dir + strlen(each->h->mount) : "/");
	return each->fn(each->ctx, path);
}

void cgroup_each(const struct cgroup_mounts *m, uint32_t hierarchy, cgroup_each_fn fn, void *ctx)
{
	struct each each = { cgroup_hierarchy_find(m, hierarchy), fn, ctx };
	char dir[2 * PATH_MAX];

	if (!each.h)
		return;
	snprintf(dir, sizeof(dir), "%s", each.h->mount);
	visit(dir, sizeof(dir), 0, each_group, &each);
}
