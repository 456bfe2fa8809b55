/*
 * Watches calls of functions that nothing is known of, for some milliseconds: plain probes at their entries and
 * behind calls of them, never at a return, which kills what throws. What is there comes as DRAIN_CALL.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_CALL_WATCH_H
#define MEMSCOPE_COLLECT_PROBES_CALL_WATCH_H

#include "collect/session/bpf_session.h"

struct call_watch {
	struct session *session;
	int fd;     /* the file; borrowed */
	pid_t pid;
	int *fds;   /* that keep the probes */
	uint32_t n_fds;
	int64_t most;
	uint32_t refused; /* places that could not be probed, so far */
};

/* Cost of a hit where it must be single-stepped, with the program: the most that one is (alloc_probes.c). */
#define CALL_WATCH_HIT_NS 9800.0

/* Can this session do it? */
bool call_watch_can(struct session *s);
/*
 * Probes at `n` file offsets, `behind` a call or at an entry, until call_watch_end(); at most `calls` are reported. Places that cannot be probed
 * are left out and counted. -errno: none could be.
 */
int call_watch_begin(struct call_watch *w, const uint64_t *offsets, const bool *behind, uint32_t n,
		     int64_t calls);
/* Returns how many calls were reported. */
uint64_t call_watch_end(struct call_watch *w);

#endif
