/*
 * Samples that nothing was added to for minutes, put together: in a service, which may run for months.
 *
 * A sample is a stack of a process, and there is no end of processes, nor of containers. Each window is written when it is over, so
 * the run's own profiles matter for what is added to them: of a sample that stayed as it was for FOLD_NS its values go to one of
 * its container, with the frame "[not seen for minutes]" for a stack. So what a container used in all stays true, and so do windows and
 * all others that look from a checkpoint on (profile_fold.h); the profiles "since the run began" of an endpoint show that frame.
 * Label sets that no sample has any more are forgotten (dict_labels_sweep()).
 *
 * Not what is live (heap, peak, mappings, goroutines), nor allocations by site, which scrapers compare with the time before.
 */
#ifndef MEMSCOPE_RUN_OLD_SAMPLES_H
#define MEMSCOPE_RUN_OLD_SAMPLES_H

#include <stdint.h>

struct run;
struct old_samples;

/* Of a service. NULL: out of memory. */
struct old_samples *old_samples_new(struct run *r);
void old_samples_free(struct old_samples *o);

/*
 * To be called where times were just cleared (struct profile_since, forget_times) and nobody holds ids of label sets but the profiles of
 * the run's dict (sites of allocations that are followed do). It does something each FOLD_NS. Without memory samples stay, and the next call tries again.
 */
void old_samples_tick(struct old_samples *o, uint64_t now_ns);

#endif
