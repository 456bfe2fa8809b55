/*
 * Attaches a program to functions of a file, and detaches probes without blocking anyone.
 *
 * Removing one uprobe takes a grace period of some 100 ms, and perf events do so one after another
 * (twenty probes: two seconds, during which the target still traps). So multi-uprobe links are used
 * where the kernel has them: one link for all functions of a program, whose removals are waited for
 * together. libbpf 1.1 does not know them: they are made through the system call. Kernels whose pid
 * filter compared threads instead of processes (fixed in commit 46ba0e49b642, 6.10) count as not
 * having them.
 *
 * A few threads of their own close the links.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_UPROBES_H
#define MEMSCOPE_COLLECT_PROBES_UPROBES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;

/* Whether multi-uprobe links work here; checked once. Programs must be loaded accordingly: */
bool uprobes_multi(void);
/* Whether probes can have cookies: with multi-uprobe links, and from 5.15 on. */
bool uprobes_cookies(void);
/*
 * Whether one program can be attached to both ends of a function (uprobe sessions, kernel 6.13): if
 * it returns other than 0 at the entry, the return is not probed. Checked once.
 */
bool uprobes_session(void);
enum uprobe_end { UPROBE_ENTRY, UPROBE_RETURN, UPROBE_BOTH };
/* Before load: sets how `prog` will be attached. */
void uprobes_prepare(struct bpf_program *prog, enum uprobe_end end);

/*
 * `prog` at `n` file offsets of the file open as `fd`, in process `pid` (-1: in all that map it).
 * `cookies`: the cookie of each probe, where uprobes_cookies(); NULL or 0: none. Writes the
 * descriptors that keep the probes attached to `ret_fds` (n at most). Returns how many, or -errno:
 * then none is attached.
 */
int uprobes_attach(const struct bpf_program *prog, int fd, const uint64_t *offsets,
		   const uint64_t *cookies, uint32_t n, pid_t pid, enum uprobe_end end,
		   int *ret_fds);

/*
 * The same for USDT sites: `semaphores` are the file offsets of those that the kernel increments
 * while somebody listens (0: none).
 */
int uprobes_attach_sites(const struct bpf_program *prog, int fd, const uint64_t *offsets,
			 const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, pid_t pid,
			 int *ret_fds);
/* Whether a probe on a nop of five bytes becomes a call (x86-64, Linux 6.18). */
bool uprobes_nop5(void);
/*
 * Such a call is to a page of its own, which a forked child does not get: it dies at its next hit (seen in 200 of 200 children,
 * 6.18.44). What has the system call that such a page makes is taken to do so. Is there such a nop at `off` of the file?
 */
bool uprobes_ends_children(int fd, uint64_t off);

/* Detaches probes; returns at once. */
void uprobes_detach(const int *fds, uint32_t n);
/* CPU time spent on detaching so far, ns. */
uint64_t uprobes_detach_ns(void);
/* Returns when everything detached is gone. */
void uprobes_wait(void);

#endif
