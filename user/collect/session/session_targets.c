#include "collect/session/session_parts.h"
#include "collect/wire.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int session_target(struct session *s, pid_t pid, struct err *e)
{
	struct ms_target target = { .flags = MS_TARGET_ASKED };
	uint32_t key = (uint32_t)pid;

	/* One that a target forked just now is there already, and keeps what is known of it. */
	if (bpf_map_update_elem(session_map_fd(s, SESSION_TARGETS), &key, &target, BPF_NOEXIST) <
		    0 &&
	    errno != EEXIST)
		return err_set(e, -errno, "cannot watch process %d: %s", (int)pid, strerror(errno));
	return 0;
}

static void watch_hierarchy(struct session *s, uint32_t hierarchy)
{
	__atomic_fetch_or(&s->skel->bss->cgroup_hierarchies,
			  1ULL << (hierarchy < 63 ? hierarchy : 63), __ATOMIC_RELAXED);
}

int session_cgroup(struct session *s, uint32_t hierarchy, uint64_t id, struct err *e)
{
	struct ms_cgroup key = { .id = id, .hierarchy = hierarchy };
	uint8_t one = 1;

	if (bpf_map_update_elem(session_map_fd(s, SESSION_CGROUPS), &key, &one, BPF_ANY) < 0)
		return err_set(e, -errno, "cannot watch a control group: %s", strerror(errno));
	watch_hierarchy(s, hierarchy);
	return 0;
}

static int path_key(struct ms_cgroup_path *key, uint32_t hierarchy, const char *path)
{
	size_t len = strlen(path);

	memset(key, 0, sizeof(*key));
	key->hierarchy = hierarchy;
	if (len >= sizeof(key->path))
		return -ENAMETOOLONG;
	memcpy(key->path, path, len);
	return 0;
}

int session_cgroup_path(struct session *s, uint32_t hierarchy, const char *path)
{
	struct ms_cgroup_path key;
	uint8_t one = 1;
	int r = path_key(&key, hierarchy, path);

	if (r < 0)
		return r;
	watch_hierarchy(s, hierarchy);
	return bpf_map_update_elem(session_map_fd(s, SESSION_CGROUP_PATHS), &key, &one, BPF_ANY) < 0
		       ? -errno
		       : 0;
}

void session_cgroup_path_gone(struct session *s, uint32_t hierarchy, const char *path)
{
	struct ms_cgroup_path key;

	if (path_key(&key, hierarchy, path) == 0)
		bpf_map_delete_elem(session_map_fd(s, SESSION_CGROUP_PATHS), &key);
}

void session_cgroup_gone(struct session *s, uint32_t hierarchy, uint64_t id)
{
	struct ms_cgroup key = { .id = id, .hierarchy = hierarchy };

	bpf_map_delete_elem(session_map_fd(s, SESSION_CGROUPS), &key);
}

bool session_is_target(const struct session *s, pid_t pid, pid_t *ret_ns_pid)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) < 0)
		return false;
	*ret_ns_pid = (pid_t)target.ns_pid;
	return true;
}

void session_each_target(const struct session *s, void (*each)(void *ctx, pid_t pid), void *ctx)
{
	int fd = session_map_fd(s, SESSION_TARGETS);
	uint32_t key, *before = NULL;
	uint32_t n = 0;

	/* A key that goes meanwhile makes it begin again: bounded. */
	while (n++ < 4 * session_map_max(s, SESSION_TARGETS) &&
	       bpf_map_get_next_key(fd, before, &key) == 0) {
		each(ctx, (pid_t)key);
		before = &key;
	}
}

bool session_ran_out_of_memory(const struct session *s, pid_t pid)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	return bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) == 0 &&
	       target.flags & MS_TARGET_OOM;
}

void session_untarget(struct session *s, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(session_map_fd(s, SESSION_TARGETS), &key);
}

bool session_name_of(const struct session *s, pid_t pid, uint64_t *ret_start_ns,
		     uint32_t *ret_exec_id)
{
	struct ms_target target;
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(session_map_fd(s, SESSION_TARGETS), &key, &target) < 0 ||
	    !(target.flags & (MS_TARGET_FORKED | MS_TARGET_JOINED)) || !target.start_ns)
		return false;
	*ret_start_ns = target.start_ns;
	*ret_exec_id = target.exec_id;
	return true;
}

int session_set_gen(struct session *s, pid_t pid, uint32_t gen)
{
	int fd = session_map_fd(s, SESSION_TARGETS);
	struct ms_target target = {};
	uint32_t key = (uint32_t)pid;

	if (bpf_map_lookup_elem(fd, &key, &target) < 0 && !s->opts.all)
		return -ENOENT;
	target.as_gen = gen;
	if (s->opts.all)
		target.start_ns = 0; /* the pid may have been another's; learned anew */
	return bpf_map_update_elem(fd, &key, &target, BPF_ANY) < 0 ? -errno : 0;
}

int session_open_tasks(const struct bpf_program *prog, struct err *e)
{
	struct bpf_link *link = bpf_program__attach_iter(prog, NULL);
	int fd;

	if (!link)
		return err_set(e, -errno, "cannot list tasks through a BPF iterator: %s",
			       strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	bpf_link__destroy(link);
	return fd < 0 ? err_set(e, fd, "cannot list tasks through a BPF iterator") : fd;
}

int session_read_records(int fd, size_t size, session_record_fn each, void *ctx)
{
	char buf[16384] __attribute__((aligned(8)));
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, buf + have, sizeof(buf) - have)) > 0) {
		size_t all = have + (size_t)n, at = 0;

		for (; all - at >= size; at += size)
			each(ctx, buf + at);
		have = all - at;
		memmove(buf, buf + at, have);
	}
	return n < 0 ? -errno : 0;
}

struct each_task {
	session_task_fn each;
	void *ctx;
};

static void on_task(void *ctx, const void *record)
{
	const struct ms_task *task = record;
	const struct each_task *t = ctx;

	t->each(t->ctx, &(struct session_task){ wire_id(&task->proc), task->tid, task->seen_ns });
}

void session_read_tasks(int fd, session_task_fn each, void *ctx)
{
	session_read_records(fd, sizeof(struct ms_task), on_task, &(struct each_task){ each, ctx });
}

int session_queued(struct session *s, session_record_fn each, void *ctx)
{
	_cleanup_(closep) int fd = -1;

	if (!bpf_program__autoload(s->skel->progs.list_queued))
		return 0;
	fd = session_open_tasks(s->skel->progs.list_queued, NULL);
	return fd < 0 ? fd : session_read_records(fd, sizeof(struct ms_queued), each, ctx);
}

int session_members(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	_cleanup_(closep) int fd = session_open_tasks(s->skel->progs.list_members, e);

	if (fd < 0)
		return fd;
	session_read_tasks(fd, each, ctx);
	return 0;
}

int session_name_tasks(struct session *s, session_task_fn each, void *ctx, struct err *e)
{
	_cleanup_(closep) int fd = session_open_tasks(s->skel->progs.name_tasks, e);

	if (fd < 0)
		return fd;
	session_read_tasks(fd, each, ctx);
	return 0;
}
