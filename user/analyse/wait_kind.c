#include "analyse/wait_kind.h"

#include "analyse/name_match.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const struct {
	const char *name, *text;
} wait_kinds[N_WAIT_KINDS] = {
	[WAIT_OTHER] = { "other", "something else" },
	[WAIT_TIMER] = { "timer", "a timer" },
	[WAIT_EVENTS] = { "events", "events (poll)" },
	[WAIT_SOCKET] = { "socket", "a socket" },
	[WAIT_PIPE] = { "pipe", "a pipe" },
	[WAIT_LOCK] = { "lock", "a lock (futex)" },
	[WAIT_GIL] = { "gil", "the GIL" },
	[WAIT_MONITOR] = { "monitor", "a monitor" },
	[WAIT_GVL] = { "gvl", "Ruby's GVL" },
	[WAIT_FILE_LOCK] = { "file-lock", "a file lock" },
	[WAIT_KERNEL_LOCK] = { "kernel-lock", "a lock in the kernel" },
	[WAIT_DISK] = { "disk", "disk" },
	[WAIT_MEMORY] = { "memory", "memory" },
	[WAIT_CHILD] = { "child", "another process to end" },
	[WAIT_SIGNAL] = { "signal", "a signal" },
	[WAIT_STOPPED] = { "stopped", "whoever stopped it (SIGCONT, or a debugger)" },
	[WAIT_TERMINAL] = { "terminal", "the terminal" },
};

/*
 * A stack is asked leaf first and the first function found decides, so the specific ones near
 * schedule() win over the general ones near the system call. Kernels 5.10 to 6.18; a name that
 * ends in * stands for all that begin so.
 */
static const struct {
	const char *function;
	enum wait_kind kind;
} wait_functions[] = {
	{ "do_nanosleep", WAIT_TIMER },
	{ "hrtimer_nanosleep", WAIT_TIMER },
	{ "msleep*", WAIT_TIMER },
	{ "ep_poll", WAIT_EVENTS },
	{ "do_epoll_wait", WAIT_EVENTS },
	{ "poll_schedule_timeout*", WAIT_EVENTS },
	{ "do_poll*", WAIT_EVENTS },
	{ "do_sys_poll", WAIT_EVENTS },
	{ "do_select", WAIT_EVENTS },
	{ "io_cqring_wait*", WAIT_EVENTS },
	{ "read_events", WAIT_EVENTS },
	{ "eventfd_read", WAIT_EVENTS },
	{ "timerfd_read*", WAIT_TIMER },
	{ "signalfd_*", WAIT_SIGNAL },
	{ "inotify_read", WAIT_EVENTS },
	{ "sk_wait_data", WAIT_SOCKET },
	{ "sk_stream_wait_*", WAIT_SOCKET },
	{ "inet_csk_accept", WAIT_SOCKET },
	{ "inet_csk_wait_for_connect", WAIT_SOCKET },
	{ "inet_wait_for_connect", WAIT_SOCKET },
	{ "__inet_stream_connect", WAIT_SOCKET },
	{ "__skb_wait_for_more_packets", WAIT_SOCKET },
	{ "__skb_recv_*", WAIT_SOCKET },
	{ "sock_alloc_send_pskb", WAIT_SOCKET },
	{ "unix_stream_data_wait", WAIT_SOCKET },
	{ "unix_stream_read_generic", WAIT_SOCKET },
	{ "unix_wait_for_peer", WAIT_SOCKET },
	{ "unix_accept", WAIT_SOCKET },
	{ "tcp_*", WAIT_SOCKET },
	{ "pipe_*", WAIT_PIPE },
	{ "anon_pipe_*", WAIT_PIPE },
	{ "wait_for_partner", WAIT_PIPE },
	{ "futex_*", WAIT_LOCK },
	{ "__futex_*", WAIT_LOCK },
	{ "do_futex", WAIT_LOCK },
	{ "locks_lock_inode_wait", WAIT_FILE_LOCK },
	{ "flock_lock_inode_wait", WAIT_FILE_LOCK },
	{ "fcntl_setlk*", WAIT_FILE_LOCK },
	{ "rwsem_down_*", WAIT_KERNEL_LOCK },
	{ "down_read*", WAIT_KERNEL_LOCK },
	{ "down_write*", WAIT_KERNEL_LOCK },
	{ "__mutex_lock*", WAIT_KERNEL_LOCK },
	{ "mutex_lock*", WAIT_KERNEL_LOCK },
	{ "__rt_mutex_*", WAIT_KERNEL_LOCK },
	{ "percpu_rwsem_wait", WAIT_KERNEL_LOCK },
	{ "__percpu_down_read", WAIT_KERNEL_LOCK },
	{ "synchronize_*", WAIT_KERNEL_LOCK },
	{ "do_swap_page", WAIT_MEMORY },
	{ "swap_read*", WAIT_MEMORY },
	{ "try_to_free_*", WAIT_MEMORY },
	{ "shrink_*", WAIT_MEMORY },
	{ "throttle_direct_reclaim", WAIT_MEMORY },
	{ "mem_cgroup_*", WAIT_MEMORY },
	{ "__mem_cgroup_*", WAIT_MEMORY },
	{ "handle_userfault", WAIT_MEMORY },
	{ "migration_entry_wait*", WAIT_MEMORY },
	{ "io_schedule*", WAIT_DISK },
	{ "folio_wait_*", WAIT_DISK },
	{ "wait_on_page_*", WAIT_DISK },
	{ "__wait_on_buffer", WAIT_DISK },
	{ "submit_bio_wait", WAIT_DISK },
	{ "blk_*", WAIT_DISK },
	{ "rq_qos_wait", WAIT_DISK },
	{ "wbt_wait", WAIT_DISK },
	{ "balance_dirty_pages*", WAIT_DISK },
	{ "jbd2_*", WAIT_DISK },
	{ "ext4_*", WAIT_DISK },
	{ "xfs_*", WAIT_DISK },
	{ "btrfs_*", WAIT_DISK },
	{ "nfs_*", WAIT_DISK },
	{ "rpc_wait_*", WAIT_DISK },
	{ "fuse_*", WAIT_DISK },
	{ "request_wait_answer", WAIT_DISK },
	{ "iomap_*", WAIT_DISK },
	{ "filemap_*", WAIT_DISK },
	{ "vfs_fsync*", WAIT_DISK },
	{ "do_wait", WAIT_CHILD },
	{ "__do_wait", WAIT_CHILD },
	{ "kernel_wait*", WAIT_CHILD },
	{ "wait_for_vfork_done", WAIT_CHILD },
	{ "kernel_clone", WAIT_CHILD }, /* vfork: where that one is inlined */
	{ "do_sigtimedwait*", WAIT_SIGNAL },
	{ "sigsuspend", WAIT_SIGNAL },
	{ "__x64_sys_rt_sigsuspend", WAIT_SIGNAL },
	{ "__arm64_sys_rt_sigsuspend", WAIT_SIGNAL },
	{ "__do_sys_pause", WAIT_SIGNAL },
	{ "__x64_sys_pause", WAIT_SIGNAL },
	{ "__arm64_sys_pause", WAIT_SIGNAL },
	{ "do_signal_stop", WAIT_STOPPED },
	{ "do_jobctl_trap", WAIT_STOPPED },
	{ "ptrace_stop*", WAIT_STOPPED },
	{ "n_tty_*", WAIT_TERMINAL },
	{ "tty_*", WAIT_TERMINAL },
};

bool wait_kind_is_hold_up(enum wait_kind k)
{
	return k == WAIT_DISK || k == WAIT_MEMORY || k == WAIT_FILE_LOCK || k == WAIT_KERNEL_LOCK ||
	       k == WAIT_STOPPED;
}

const char *wait_kind_text(enum wait_kind k)
{
	return wait_kinds[k].text;
}

const char *wait_kind_name(enum wait_kind k)
{
	return wait_kinds[k].name;
}

enum wait_kind wait_kind_of(const char *kernel_function)
{
	for (size_t i = 0; i < sizeof(wait_functions) / sizeof(wait_functions[0]); i++)
		if (name_matches(wait_functions[i].function, kernel_function))
			return wait_functions[i].kind;
	return WAIT_OTHER;
}
