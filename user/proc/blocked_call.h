/*
 * The system call in which a thread is blocked, and the file or peer that it is for: by /proc/PID/task/TID/syscall and by
 * the process's descriptors. All of it may have changed by the time it is read: this is for samples, of which most
 * are right.
 */
#ifndef MEMSCOPE_PROC_BLOCKED_CALL_H
#define MEMSCOPE_PROC_BLOCKED_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ENDPOINT_NAME_MAX = 160 };

struct blocked_call {
	long nr;          /* of this machine's own system calls */
	uint64_t args[6];
};

enum endpoint_kind {
	ENDPOINT_NONE,   /* none that has a name: a pipe, an event's descriptor, a socket of the machine's own */
	ENDPOINT_FILE,   /* its path                                                                    */
	ENDPOINT_PEER,   /* "127.0.0.1:5432": TCP, and the process has made the connection              */
	ENDPOINT_CLIENT, /* the same, and it has accepted it: who asks it for something                 */
};

/* The file's text. false: it runs, or is in no system call. */
bool blocked_call_parse(const char *text, struct blocked_call *ret_call);

/* Of a thread. false: the same, or it cannot be read. */
bool blocked_call_read(pid_t pid, pid_t tid, struct blocked_call *ret_call);

/* poll() or ppoll(). */
bool blocked_call_is_poll(const struct blocked_call *call);

/* Does this system call wait for the descriptor that is its first argument? */
bool blocked_call_has_fd(long nr);

/* The one descriptor that the call is for; that which is polled alone. -1: another call, or several. */
int blocked_call_fd(pid_t pid, const struct blocked_call *call);

/* What a descriptor is; `buf` is "" for ENDPOINT_NONE. `tcp` is the text of net/tcp and net/tcp6, one after the
 * other. */
enum endpoint_kind endpoint_of(pid_t pid, int fd, const char *tcp, char *buf, size_t size);

/* The connection of a socket's inode, from that text. */
enum endpoint_kind endpoint_in_tcp(const char *tcp, uint64_t inode, char *buf, size_t size);

/* That text, as the process sees it, to be freed; NULL: it cannot be read. What is beyond a MiB is left out. */
char *endpoint_tcp_read(pid_t pid);

#endif
