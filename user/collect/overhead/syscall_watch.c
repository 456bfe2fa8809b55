#include "collect/overhead/syscall_watch.h"

#include "collect/session/session_wire.h"

#include <bpf/bpf.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS  20000000ULL
#define EVERY_NS 1000000000ULL

/* Runs of the program at the entry of system calls. */
static bool read_runs(const struct session *s, uint64_t *ret_runs)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	const char *name;
	int fd;

	for (uint32_t i = 0; i < SESSION_PROGRAMS_MAX; i++) {
		fd = session_program(s, i, &name);
		if (fd < 0 || strcmp(name, "on_sys_enter"))
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
			return false;
		*ret_runs = info.run_cnt;
		return true;
	}
	return false;
}

static void look_begin(struct syscall_watch *w, const struct session *s, uint64_t now_ns)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	w->next_ns = now_ns + EVERY_NS;
	if (fd < 0)
		return;
	if (!read_runs(s, &w->runs)) {
		close(fd);
		return;
	}
	w->stats_fd = fd;
	w->begun_ns = now_ns;
}

bool syscall_watch_tick(struct syscall_watch *w, const struct session *s, uint64_t now_ns,
			double *ret_per_s)
{
	uint64_t runs;
	bool ok;

	if (!w->stats_fd) {
		if (now_ns >= w->next_ns)
			look_begin(w, s, now_ns);
		return false;
	}
	if (now_ns - w->begun_ns < LOOK_NS)
		return false;
	ok = read_runs(s, &runs);
	if (ok)
		*ret_per_s = (double)(runs - w->runs) * 1e9 / (double)(now_ns - w->begun_ns);
	syscall_watch_fini(w);
	return ok;
}

void syscall_watch_fini(struct syscall_watch *w)
{
	if (w->stats_fd)
		close(w->stats_fd);
	w->stats_fd = 0;
}

double syscalls_percent(double per_s)
{
	return per_s * SYSCALL_NS / 1e7;
}
