#include "collect/stream/syscalls.h"
#include "collect/wire.h"
#include "proc/thread_gone.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <signal.h>

_Static_assert(SYSCALL_PARTS == MS_SYSCALL_PARTS && SYSCALL_FIRST_NS == 1 << MS_SYSCALL_FIRST,
	       "parts");

struct taking {
	bool all;
	const struct syscall_fns *fns;
	void *ctx;
};

typedef bool (*row_fn)(const struct taking *t, const void *key, const void *value);

/* Hands over each row once; what `fn` says true of is removed, once its successor is known. */
static int each_row(int fd, size_t key_size, void *key, void *next, void *value, row_fn fn,
		    const struct taking *t)
{
	int r = bpf_map_get_next_key(fd, NULL, next);

	while (r == 0) {
		memcpy(key, next, key_size);
		r = bpf_map_get_next_key(fd, key, next);
		if (bpf_map_lookup_elem(fd, key, value) == 0 && fn(t, key, value))
			bpf_map_delete_elem(fd, key);
	}
	return r == -ENOENT ? 0 : r;
}

static bool has_ended(const struct ms_proc *p)
{
	return kill((pid_t)p->tgid, 0) < 0 && errno == ESRCH;
}

static bool on_total(const struct taking *t, const void *key, const void *value)
{
	const struct ms_syscall_total *v = value;
	const struct ms_syscall_key *k = key;
	struct syscall_total total = {
		.proc = wire_id(&k->proc),
		.nr = k->nr & ~MS_SYSCALL_COMPAT,
		.compat = k->nr & MS_SYSCALL_COMPAT,
		.count = v->count,
		.errors = v->errors,
		.ns = v->ns,
		.no_return = v->no_return,
		.max_ns = v->max_ns,
		.variance = v->variance,
	};

	if (!t->all && !has_ended(&k->proc))
		return false;
	memcpy(total.parts, v->parts, sizeof(total.parts));
	t->fns->total(t->ctx, &total);
	return true;
}

static bool on_error(const struct taking *t, const void *key, const void *value)
{
	const struct ms_syscall_key *k = key;
	struct syscall_error error = {
		.proc = wire_id(&k->proc),
		.nr = k->nr & ~MS_SYSCALL_COMPAT,
		.compat = k->nr & MS_SYSCALL_COMPAT,
		.error = k->error,
		.count = *(const uint64_t *)value,
	};

	if (!t->all && !has_ended(&k->proc))
		return false;
	t->fns->error(t->ctx, &error);
	return true;
}

static bool on_now(const struct taking *t, const void *key, const void *value)
{
	const struct ms_syscall_now *v = value;
	struct syscall_open open = {
		.proc = wire_id(&v->proc),
		.tid = v->tid,
		.nr = v->nr & ~MS_SYSCALL_COMPAT,
		.compat = v->nr & MS_SYSCALL_COMPAT,
		.weight = v->weight,
		.begin_ns = v->begin_ns,
	};

	(void)key;
	if (thread_is_gone((pid_t)v->proc.tgid, (pid_t)v->tid)) {
		if (v->begin_ns)
			t->fns->ended(t->ctx, &open);
		return true;
	}
	if (t->all && v->begin_ns && t->fns->open)
		t->fns->open(t->ctx, &open);
	return t->all;
}

int syscalls_take(struct session *s, bool all, const struct syscall_fns *fns, void *ctx)
{
	struct taking t = { .all = all, .fns = fns, .ctx = ctx };
	struct ms_syscall_key key, next;
	struct ms_syscall_total total;
	struct ms_syscall_now now;
	uint64_t task, next_task, count;
	int r;

	r = each_row(session_map_fd(s, SESSION_SYSCALL_TOTALS), sizeof(key), &key, &next, &total,
		     on_total, &t);
	if (r == 0)
		r = each_row(session_map_fd(s, SESSION_SYSCALL_ERRORS), sizeof(key), &key, &next,
			     &count, on_error, &t);
	if (r == 0)
		r = each_row(session_map_fd(s, SESSION_SYSCALLS_NOW), sizeof(task), &task,
			     &next_task, &now, on_now, &t);
	return r;
}
