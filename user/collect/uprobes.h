/*
 * Attaches a program to functions of a file, and takes probes away without making anyone wait.
 *
 * Taking one uprobe away costs a grace period of some 100 ms, and perf events take turns at it
 * (twenty probes: two seconds, during which the target still traps). So, where the kernel has them,
 * multi-uprobe links are used: one link for all functions of a program, whose ends can be waited
 * for together. libbpf 1.1 does not know them: they are made through the system call. Kernels whose
 * pid filter compared threads instead of processes (fixed in commit 46ba0e49b642, 6.10) count as
 * not having them.
 *
 * Links are closed by a few threads of their own.
 */
#ifndef MEMSCOPE_COLLECT_UPROBES_H
#define MEMSCOPE_COLLECT_UPROBES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_program;

/* Whether multi-uprobe links work here; asked once. Programs must be loaded accordingly: */
bool uprobes_multi(void);
/* Whether a program can be told of each place: with multi-uprobe links, and from 5.15 on. */
bool uprobes_cookies(void);
/*
 * Whether one program can be put at both ends of a function (uprobe sessions, kernel 6.13): what it
 * returns at the entry, other than 0, does without the return. Asked once.
 */
bool uprobes_session(void);
enum uprobe_end { UPROBE_ENTRY, UPROBE_RETURN, UPROBE_BOTH };
/* Before load: says how `prog` will be attached. */
void uprobes_prepare(struct bpf_program *prog, enum uprobe_end end);

/*
 * `prog` at `n` file offsets of the file open as `fd`, in process `pid` (-1: in all that map it).
 * `cookies`: what the program is told of each place, where uprobes_cookies(); NULL or 0: nothing.
 * Writes the descriptors that keep the probes in place to `ret_fds` (n at most). Returns how many,
 * or -errno: then none is in place.
 */
int uprobes_attach(const struct bpf_program *prog, int fd, const uint64_t *offsets,
		   const uint64_t *cookies, uint32_t n, pid_t pid, enum uprobe_end end,
		   int *ret_fds);

/*
 * The same for USDT sites: `semaphores` are the file offsets of those that the kernel counts up as
 * long as somebody listens (0: none).
 */
int uprobes_attach_sites(const struct bpf_program *prog, int fd, const uint64_t *offsets,
			 const uint64_t *semaphores, const uint64_t *cookies, uint32_t n, pid_t pid,
			 int *ret_fds);
/* Whether a probe on a nop of five bytes becomes a call (x86-64, Linux 6.18). */
bool uprobes_nop5(void);

/* Takes probes away; returns at once. */
void uprobes_detach(const int *fds, uint32_t n);
/* CPU time that taking probes away has cost so far, ns. */
uint64_t uprobes_detach_ns(void);
/* Returns when all that was detached is gone. */
void uprobes_wait(void);

#endif
