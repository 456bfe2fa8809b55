/*
 * Listens to samplers: finds the sites of the otel_memory contract in what targets map, or else the
 * functions in which a sampler of another kind records samples (samplers.h), and attaches the
 * programs of sampled.bpf.c there.
 *
 * A site is probed once for all processes that map its file, now and later: a child, or a program
 * that a target starts, is heard from its first sample. Untraced processes that hit the same
 * probes, once per sample, are filtered out in BPF; a file that no target maps has no probes.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_SAMPLE_PROBES_H
#define MEMSCOPE_COLLECT_PROBES_SAMPLE_PROBES_H

#include "collect/session/bpf_session.h"
#include "proc/proc_table.h"

struct sample_probes;

int sample_probes_new(struct session *s, struct dict *d, struct proc_table *procs,
		      struct sample_probes **ret_probes, struct err *e);
/* Begins to detach and returns; uprobes_wait() returns when it is done. */
void sample_probes_free(struct sample_probes *sp);
DEFINE_CLEANUP(struct sample_probes *, sample_probes_freep, sample_probes_free)

/* Searches whatever `pid` maps that has not been searched. Returns how many allocation sites it
 * has, old and new; -errno with a sentence. */
int sample_probes_add(struct sample_probes *sp, pid_t pid, struct err *e);

struct sample_probes_stats {
	uint32_t sites;          /* probed                                           */
	bool own;                /* memscope's library is among them                 */
	char other[256];         /* path of the first other image with sites; ""     */
	uint32_t failed;         /* sites that could not be probed                   */
	char failed_why[160];
	uint32_t unread;         /* files whose reading failed, not counting those that are none of ELF */
	char unread_why[256];
	char unheard[512];       /* a sentence: a sampler that cannot be probed; "" */
	uint64_t sources;        /* bit n: source n has a site                           */
	bool assumed;            /* a sampler's rate is unknown: its default is assumed*/
	bool pending;            /* a runtime has not said yet where it counts: sample_probes_add() again */
	bool counters;           /* samples are of what came since the thread's last one      */
};
void sample_probes_stats(const struct sample_probes *sp, struct sample_probes_stats *ret_stats);

#endif
