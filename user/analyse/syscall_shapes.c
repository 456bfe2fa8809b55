#include "analyse/syscall_shapes.h"
#include "base/syscall_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct row {
	const char *name, *args, *result, *classes;
};

/* clang-format off */
static const struct row rows[] = {
	/* files, by path */
	{ "open", "path open| o", "fd", "file,desc" }, { "openat", "at path open| o", "fd", "file,desc" },
	{ "openat2", "at path x l", "fd", "file,desc" }, { "creat", "path o", "fd", "file,desc" },
	{ "stat", "path stat", "", "file" }, { "lstat", "path stat", "", "file" },
	{ "newfstatat", "at path stat at|", "", "file" }, { "statx", "at path statx| statx_mask| x", "", "file" },
	{ "statfs", "path x", "", "file" }, { "fstatfs", "fd x", "", "desc" },
	{ "access", "path access|", "", "file" }, { "faccessat", "at path access|", "", "file" },
	{ "faccessat2", "at path access| faccess|", "", "file" },
	{ "readlink", "path out l", "", "file" }, { "readlinkat", "at path out l", "", "file" },
	{ "mkdir", "path o", "", "file" }, { "mkdirat", "at path o", "", "file" }, { "rmdir", "path", "", "file" },
	{ "unlink", "path", "", "file" }, { "unlinkat", "at path at|", "", "file" },
	{ "rename", "path path", "", "file" }, { "renameat", "at path at path", "", "file" },
	{ "renameat2", "at path at path rename|", "", "file" }, { "link", "path path", "", "file" },
	{ "linkat", "at path at path at|", "", "file" }, { "symlink", "path path", "", "file" },
	{ "symlinkat", "path at path", "", "file" }, { "chdir", "path", "", "file" }, { "fchdir", "fd", "", "desc" },
	{ "chroot", "path", "", "file" }, { "getcwd", "cwd l", "", "file" }, { "truncate", "path l", "", "file" },
	{ "chmod", "path o", "", "file" }, { "fchmodat", "at path o", "", "file" }, { "chown", "path d d", "", "file" },
	{ "lchown", "path d d", "", "file" }, { "fchownat", "at path d d at|", "", "file" },
	{ "utimensat", "at path x at|", "", "file" }, { "mknod", "path o x", "", "file" }, { "mknodat", "at path o x", "", "file" },
	{ "getxattr", "path str x l", "", "file" }, { "lgetxattr", "path str x l", "", "file" }, { "fgetxattr", "fd str x l", "", "desc" },
	{ "setxattr", "path str in:3 l d", "", "file" }, { "lsetxattr", "path str in:3 l d", "", "file" }, { "fsetxattr", "fd str in:3 l d", "", "desc" },
	{ "listxattr", "path x l", "", "file" }, { "llistxattr", "path x l", "", "file" }, { "removexattr", "path str", "", "file" },
	{ "mount", "path path str x x", "", "file" }, { "umount2", "path x", "", "file" }, { "pivot_root", "path path", "", "file" },
	{ "swapon", "path x", "", "file" }, { "inotify_add_watch", "fd path x", "", "file,desc" }, { "name_to_handle_at", "at path x x at|", "", "file,desc" },
	{ "execve", "path argv x", "", "file,process" }, { "execveat", "at path argv x at|", "", "file,process" },
	/* descriptors */
	{ "read", "fd out u", "", "desc" }, { "write", "fd in:2 u", "", "desc" }, { "pread64", "fd out u l", "", "desc" },
	{ "pwrite64", "fd in:2 u l", "", "desc" }, { "readv", "fd iovout:2 d", "", "desc" }, { "writev", "fd iov:2 d", "", "desc" },
	{ "preadv", "fd iovout:2 d l l", "", "desc" }, { "pwritev", "fd iov:2 d l l", "", "desc" }, { "close", "fd", "", "desc" },
	{ "preadv2", "fd iovout:2 d l l x", "", "desc" }, { "pwritev2", "fd iov:2 d l l x", "", "desc" },
	{ "close_range", "u u x", "", "desc" }, { "fstat", "fd stat", "", "desc" }, { "lseek", "fd l seek=", "", "desc" },
	{ "dup", "fd", "fd", "desc" }, { "dup2", "fd d", "fd", "desc" }, { "dup3", "fd d pipe|", "fd", "desc" },
	{ "fcntl", "fd fcntl= x", "", "desc" }, { "flock", "fd flock|", "", "desc" }, { "ioctl", "fd request rarg", "", "desc" },
	{ "fsync", "fd", "", "desc" }, { "fdatasync", "fd", "", "desc" }, { "ftruncate", "fd l", "", "desc" }, { "syncfs", "fd", "", "desc" },
	{ "fallocate", "fd fallocate| l l", "", "desc" }, { "fadvise64", "fd l l fadvise=", "", "desc" }, { "readahead", "fd l u", "", "desc" },
	{ "fchmod", "fd o", "", "desc" }, { "fchown", "fd d d", "", "desc" }, { "getdents64", "fd x u", "", "desc" }, { "getdents", "fd x u", "", "desc" },
	{ "pipe", "fds", "", "desc" }, { "pipe2", "fds pipe|", "", "desc" }, { "sendfile", "fd fd x u", "", "desc,network" },
	{ "splice", "fd x fd x u splice|", "", "desc" }, { "tee", "fd fd u splice|", "", "desc" }, { "copy_file_range", "fd x fd x u x", "", "desc" },
	{ "poll", "poll:1 u d", "", "desc" }, { "ppoll", "poll:1 u ts sigset l", "", "desc" }, { "select", "d x x x tv", "", "desc" }, { "pselect6", "d x x x ts x", "", "desc" },
	{ "epoll_create", "d", "fd", "desc" }, { "epoll_create1", "epoll_create|", "fd", "desc" }, { "epoll_ctl", "fd epoll= fd ev", "", "desc" },
	{ "epoll_wait", "fd x d d", "", "desc" }, { "epoll_pwait", "fd x d d sigset l", "", "desc" }, { "epoll_pwait2", "fd x d ts sigset l", "", "desc" },
	{ "eventfd", "u", "fd", "desc" }, { "eventfd2", "u eventfd|", "fd", "desc" }, { "signalfd4", "fd sigset l signalfd|", "fd", "desc,signal" }, { "timerfd_create", "clock= timerfd|", "fd", "desc" },
	{ "timerfd_settime", "fd timer| x x", "", "desc" }, { "timerfd_gettime", "fd x", "", "desc" }, { "inotify_init1", "inotify|", "fd", "desc" }, { "inotify_rm_watch", "fd d", "", "desc" },
	{ "memfd_create", "str memfd|", "fd", "desc" }, { "pidfd_open", "d x", "fd", "desc" }, { "pidfd_send_signal", "fd sig x x", "", "desc,signal,process" }, { "pidfd_getfd", "fd d x", "fd", "desc" },
	{ "io_uring_setup", "u x", "fd", "desc" }, { "io_uring_enter", "fd u u x sigset l", "", "desc,signal" }, { "io_uring_register", "fd u x u", "", "desc" },
	{ "userfaultfd", "pipe|", "fd", "desc" }, { "perf_event_open", "x d d fd x", "fd", "desc" }, { "bpf", "d x u", "", "desc" },
	/* network */
	{ "socket", "family= socket| proto", "fd", "network" }, { "socketpair", "family= socket| d fds:3", "", "network" },
	{ "bind", "fd sa:2 d", "", "network" }, { "connect", "fd sa:2 d", "", "network" }, { "listen", "fd d", "", "network" },
	{ "accept", "fd saout:2 len", "fd", "network" }, { "accept4", "fd saout:2 len accept|", "fd", "network" },
	{ "getsockname", "fd saout:2 len", "", "network" }, { "getpeername", "fd saout:2 len", "", "network" },
	{ "sendto", "fd in:2 u msg| sa:5 d", "", "network" }, { "recvfrom", "fd out u msg| saout:5 len", "", "network" },
	{ "sendmsg", "fd msg msg|", "", "network" }, { "recvmsg", "fd msgout msg|", "", "network" }, { "sendmmsg", "fd x u msg|", "", "network" }, { "recvmmsg", "fd x u msg| ts", "", "network" },
	{ "shutdown", "fd shut=", "", "network" }, { "setsockopt", "fd level= opt optin:4 d", "", "network" }, { "getsockopt", "fd level= opt optout len", "", "network" },
	/* memory */
	{ "mmap", "x u prot| map| fd off", "x", "memory,desc" }, { "munmap", "x u", "", "memory" }, { "mprotect", "x u prot|", "", "memory" },
	{ "mremap", "x u u mremap| x", "x", "memory" }, { "brk", "x", "x", "memory" }, { "madvise", "x u madvise=", "", "memory" }, { "msync", "x u msync|", "", "memory" },
	{ "mlock", "x u", "", "memory" }, { "munlock", "x u", "", "memory" }, { "mlockall", "x", "", "memory" }, { "munlockall", "", "", "memory" }, { "mincore", "x u x", "", "memory" },
	{ "pkey_mprotect", "x u prot| d", "", "memory" }, { "mbind", "x u d x u x", "", "memory" }, { "shmat", "d x x", "x", "memory,ipc" }, { "shmdt", "x", "", "memory,ipc" }, { "membarrier", "d x d", "", "memory" },
	/* processes */
	{ "clone", "clone| x x x x", "", "process" }, { "clone3", "x l", "", "process" }, { "fork", "", "", "process" }, { "vfork", "", "", "process" },
	{ "exit", "d", "", "process" }, { "exit_group", "d", "", "process" }, { "wait4", "d status wait| x", "", "process" }, { "waitid", "idtype= d x waitid| x", "", "process" },
	{ "getpid", "", "", "" }, { "gettid", "", "", "" }, { "getppid", "", "", "" }, { "getuid", "", "", "creds" }, { "geteuid", "", "", "creds" }, { "getgid", "", "", "creds" }, { "getegid", "", "", "creds" },
	{ "setuid", "d", "", "creds" }, { "setgid", "d", "", "creds" }, { "setresuid", "d d d", "", "creds" }, { "setresgid", "d d d", "", "creds" }, { "setreuid", "d d", "", "creds" }, { "setregid", "d d", "", "creds" },
	{ "getresuid", "x x x", "", "creds" }, { "getresgid", "x x x", "", "creds" }, { "getgroups", "d x", "", "creds" }, { "setgroups", "d x", "", "creds" }, { "setsid", "", "", "" }, { "getsid", "d", "", "" }, { "setpgid", "d d", "", "" }, { "getpgid", "d", "", "" }, { "getpgrp", "", "", "" },
	{ "capget", "x x", "", "creds" }, { "capset", "x x", "", "creds" }, { "prctl", "prctl= x x x x", "", "creds" }, { "arch_prctl", "arch= x", "", "" }, { "set_tid_address", "x", "", "" }, { "set_robust_list", "x l", "", "" },
	{ "rseq", "x u x x", "", "" }, { "futex", "x futex= d x x x", "", "" }, { "unshare", "clone|", "", "process" }, { "setns", "fd clone|", "", "process,desc" },
	{ "getrlimit", "rlimit= rlimout", "", "" }, { "setrlimit", "rlimit= rlim", "", "" }, { "prlimit64", "d rlimit= rlim rlimout", "", "" }, { "getrusage", "who= x", "", "" },
	{ "sched_yield", "", "", "" }, { "sched_getaffinity", "d u x", "", "" }, { "sched_setaffinity", "d u x", "", "" }, { "getpriority", "d d", "", "" }, { "setpriority", "d d d", "", "" },
	{ "sethostname", "in:1 l", "", "" }, { "uname", "x", "", "" }, { "sysinfo", "x", "", "" }, { "getrandom", "x u random|", "", "" }, { "umask", "o", "", "" }, { "sync", "", "", "" }, { "times", "x", "", "" }, { "getcpu", "x x x", "", "" },
	/* signals, times */
	{ "kill", "d sig", "", "signal,process" }, { "tkill", "d sig", "", "signal,process" }, { "tgkill", "d d sig", "", "signal,process" },
	{ "rt_sigaction", "sig action actionout l", "", "signal" }, { "rt_sigprocmask", "how= sigset sigsetout l", "", "signal" }, { "rt_sigreturn", "", "", "signal" }, { "rt_sigsuspend", "sigset l", "", "signal" },
	{ "rt_sigtimedwait", "sigset x ts l", "", "signal" }, { "rt_sigpending", "sigsetout l", "", "signal" }, { "sigaltstack", "x x", "", "signal" }, { "pause", "", "", "signal" }, { "alarm", "u", "", "" },
	{ "nanosleep", "ts x", "", "" }, { "clock_nanosleep", "clock= timer| ts x", "", "" }, { "clock_gettime", "clock= tsout", "", "" }, { "clock_getres", "clock= tsout", "", "" }, { "gettimeofday", "tvout x", "", "" }, { "time", "x", "", "" },
	{ "setitimer", "d x x", "", "" }, { "restart_syscall", "", "", "" },
};

static const struct { const char *word; enum arg_kind kind; } words[] = {
	{ "d", ARG_INT }, { "u", ARG_UNSIGNED }, { "l", ARG_LONG }, { "x", ARG_HEX }, { "off", ARG_OFFSET }, { "o", ARG_MODE }, { "fd", ARG_FD }, { "at", ARG_AT }, { "path", ARG_PATH },
	{ "str", ARG_STRING }, { "in", ARG_IN }, { "out", ARG_OUT }, { "argv", ARG_ARGV }, { "iov", ARG_IOV }, { "iovout", ARG_IOV_OUT }, { "sa", ARG_ADDRESS },
	{ "saout", ARG_ADDRESS_OUT }, { "stat", ARG_STAT }, { "fds", ARG_FDS }, { "ts", ARG_TIME }, { "tsout", ARG_TIME_OUT }, { "tv", ARG_MICRO },
	{ "tvout", ARG_MICRO_OUT }, { "poll", ARG_POLL }, { "ev", ARG_EVENT }, { "sigset", ARG_SIGSET }, { "rlim", ARG_LIMIT }, { "rlimout", ARG_LIMIT_OUT }, { "status", ARG_STATUS },
	{ "cwd", ARG_CWD }, { "sigsetout", ARG_SIGSET_OUT }, { "action", ARG_ACTION }, { "actionout", ARG_ACTION_OUT }, { "msg", ARG_MSG }, { "msgout", ARG_MSG_OUT },
	{ "opt", ARG_OPTION }, { "optin", ARG_OPTION_IN }, { "optout", ARG_OPTION_OUT }, { "len", ARG_LENGTH }, { "request", ARG_REQUEST }, { "rarg", ARG_REQUEST_ARG }, { "sig", ARG_SIGNAL }, { "proto", ARG_PROTOCOL },
};

/* How each is read; `size` 0: nothing is. */
static const struct trace_read kind_reads[N_ARG_KINDS] = {
	[ARG_PATH] = { TRACE_STRING, .most = TRACE_LONG }, [ARG_STRING] = { TRACE_STRING, .most = TRACE_SHORT }, [ARG_IN] = { TRACE_BY_ARG, .size = 1 },
	[ARG_OUT] = { TRACE_BY_RESULT, .at_exit = true, .size = 1 }, [ARG_ARGV] = { TRACE_STRINGS, .most = TRACE_LONG }, [ARG_IOV] = { TRACE_VECTORS },
	[ARG_IOV_OUT] = { TRACE_VECTORS, .at_exit = true }, [ARG_MSG] = { TRACE_MSG_VECTORS }, [ARG_MSG_OUT] = { TRACE_MSG_VECTORS, .at_exit = true }, [ARG_ADDRESS] = { TRACE_BY_ARG, .size = 1, .most = 128 },
	[ARG_ADDRESS_OUT] = { TRACE_BY_WORD, .at_exit = true, .most = 128 }, [ARG_STAT] = { TRACE_FIXED, .at_exit = true, .size = 144, .most = 144 },
	[ARG_FDS] = { TRACE_FIXED, .at_exit = true, .size = 8, .most = 8 }, [ARG_TIME] = { TRACE_FIXED, .size = 16, .most = 16 },
	[ARG_TIME_OUT] = { TRACE_FIXED, .at_exit = true, .size = 16, .most = 16 }, [ARG_MICRO] = { TRACE_FIXED, .size = 16, .most = 16 },
	[ARG_MICRO_OUT] = { TRACE_FIXED, .at_exit = true, .size = 16, .most = 16 }, [ARG_POLL] = { TRACE_BY_ARG, .size = 8, .most = 64 },
	[ARG_EVENT] = { TRACE_FIXED, .size = 12, .most = 12 }, [ARG_SIGSET] = { TRACE_FIXED, .size = 8, .most = 8 }, [ARG_SIGSET_OUT] = { TRACE_FIXED, .at_exit = true, .size = 8, .most = 8 },
	[ARG_ACTION] = { TRACE_FIXED, .size = 32, .most = 32 }, [ARG_ACTION_OUT] = { TRACE_FIXED, .at_exit = true, .size = 32, .most = 32 },
	[ARG_OPTION_IN] = { TRACE_BY_ARG, .size = 1 }, [ARG_OPTION_OUT] = { TRACE_FIXED, .at_exit = true, .size = 4, .most = 4 },
	[ARG_LENGTH] = { TRACE_FIXED, .size = 4, .most = 4 }, [ARG_REQUEST_ARG] = { TRACE_FIXED, .at_exit = true, .size = 16, .most = 16 }, [ARG_LIMIT] = { TRACE_FIXED, .size = 16, .most = 16 },
	[ARG_LIMIT_OUT] = { TRACE_FIXED, .at_exit = true, .size = 16, .most = 16 }, [ARG_STATUS] = { TRACE_FIXED, .at_exit = true, .size = 4, .most = 4 },
	[ARG_CWD] = { TRACE_STRING, .at_exit = true, .most = TRACE_LONG },
};
/* clang-format on */

static const struct row *row_of(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* "saout:2": one word of a row. */
static bool word_parse(const char *word, uint32_t len, struct call_arg *arg)
{
	uint32_t name = 0;

	*arg = (struct call_arg){ .read = -1, .file = -1 };
	if (word[len - 1] == '|' || word[len - 1] == '=') {
		arg->kind = word[len - 1] == '|' ? ARG_FLAGS : ARG_VALUE;
		arg->flags = flag_set_named(word, len - 1);
		return arg->flags;
	}
	while (name < len && word[name] != ':')
		name++;
	if (name < len)
		arg->of = (uint8_t)(word[name + 1] - '0');
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i].word) == name && !strncmp(words[i].word, word, name))
			arg->kind = words[i].kind;
	return arg->kind != ARG_NONE && arg->of < TRACE_ARGS;
}

static bool read_add(struct call_shape *shape, uint32_t i, uint32_t most, uint32_t *n,
		     struct trace_call *call)
{
	struct call_arg *arg = &shape->args[i];
	struct trace_read read = kind_reads[arg->kind];

	if (read.how == TRACE_NONE)
		return true;
	if (*n >= TRACE_READS || (read.most > TRACE_SHORT && *n >= 2))
		return false;
	read.arg = (uint8_t)i;
	read.of = arg->of;
	if (!read.most)
		read.most = (uint16_t)most;
	arg->most = read.most;
	call->reads[*n] = read;
	arg->read = (int8_t)(*n)++;
	if (arg->kind == ARG_LENGTH) {
		if (*n >= TRACE_READS)
			return false;
		read.at_exit = true;
		call->reads[(*n)++] = read;
	}
	if (arg->kind != ARG_MSG && arg->kind != ARG_MSG_OUT)
		return true;
	if (arg->read != 0) /* vectors go into the first slot */
		return false;
	read.how = TRACE_MSG;
	call->reads[(*n)++] = read;
	if (arg->kind == ARG_MSG_OUT)
		call->reads[(*n)++] =
			(struct trace_read){ TRACE_FIXED, .arg = read.arg, .size = 16, .most = 16 };
	return true;
}

static bool row_parse(const struct row *row, uint32_t most, struct call_shape *shape,
		      struct trace_call *call)
{
	uint32_t n_reads = 0, n_files = 0;

	*shape = (struct call_shape){ .known = true };
	shape->result = !strcmp(row->result, "fd")  ? RESULT_FD
			: !strcmp(row->result, "x") ? RESULT_ADDRESS
						    : RESULT_NUMBER;
	call->result_is_fd = shape->result == RESULT_FD;
	for (const char *at = row->args; *at;) {
		uint32_t len = (uint32_t)strcspn(at, " ");
		struct call_arg *arg = &shape->args[shape->n];

		if (shape->n >= TRACE_ARGS || !word_parse(at, len, arg) ||
		    !read_add(shape, shape->n, most, &n_reads, call))
			return false;
		shape->n++;
		if ((arg->kind == ARG_FD || arg->kind == ARG_AT) && n_files < 2) {
			arg->file = (int8_t)n_files;
			call->files[n_files++] = shape->n;
		}
		at += len + (at[len] == ' ');
	}
	return true;
}

void call_shape_of(uint32_t nr, uint32_t most, struct call_shape *ret_shape,
		   struct trace_call *ret_call)
{
	char room[SYSCALL_NAME_MAX];
	const struct row *row = row_of(syscall_name(nr, false, room));
	struct trace_call none = { 0 };

	if (!ret_call)
		ret_call = &none;
	*ret_call = (struct trace_call){ 0 };
	if (row && row_parse(row, most, ret_shape, ret_call))
		return;
	*ret_shape = (struct call_shape){ .n = TRACE_ARGS };
	for (int i = 0; i < TRACE_ARGS; i++)
		ret_shape->args[i] = (struct call_arg){ .kind = ARG_HEX, .read = -1, .file = -1 };
}

const char *call_shapes_check(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct trace_call call = { 0 };
		struct call_shape shape;

		if (!row_parse(&rows[i], 32, &shape, &call) || row_of(rows[i].name) != &rows[i])
			return rows[i].name;
	}
	return NULL;
}

/* --- which calls --- */

static bool class_has(const char *classes, const char *word, size_t len)
{
	for (const char *at = classes; *at;) {
		size_t n = strcspn(at, ",");

		if (n == len && !strncmp(at, word, len))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

static bool choose_class(const char *word, size_t len, bool on, bool *wanted)
{
	bool any = false;

	if (len == 3 && !strncmp(word, "net", 3)) {
		word = "network";
		len = 7;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int nr = syscall_number(rows[i].name);

		if (!class_has(rows[i].classes, word, len))
			continue;
		any = true;
		if (nr >= 0 && nr < TRACE_CALLS)
			wanted[nr] = on;
	}
	return any;
}

int calls_choose(const char *text, bool *wanted, struct err *e)
{
	bool on = true;

	if (!strncmp(text, "trace=", 6))
		text += 6;
	if (*text == '!') {
		on = false;
		text++;
	}
	for (uint32_t i = 0; i < TRACE_CALLS; i++)
		wanted[i] = !on || !strcmp(text, "all");
	if (!strcmp(text, "all"))
		return 0;
	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		char name[SYSCALL_NAME_MAX];
		int nr;

		snprintf(name, sizeof(name), "%.*s", (int)len, at);
		nr = syscall_number(name);
		if (*name == '%' && !choose_class(at + 1, len - 1, on, wanted))
			return err_set(e, -EINVAL,
				       "-e: \"%s\" is no class of system calls: %%file, %%desc, "
				       "%%network, %%process, %%memory, %%signal, %%ipc or %%creds",
				       name);
		if (*name != '%' && (nr < 0 || nr >= TRACE_CALLS))
			return err_set(e, -EINVAL, "-e: there is no system call \"%s\"", name);
		if (*name != '%')
			wanted[nr] = on;
		at += len;
		if (!*at)
			return 0;
	}
}
