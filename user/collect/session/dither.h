/*
 * On-CPU sampling that no program can be in step with. At a fixed period, a program whose cycle is a
 * multiple or a part of it shows the same few phases of that cycle in every sample.
 *
 * So a thread gives every CPU's event another period, drawn at random, at moments that are drawn, too: some
 * ten samples apart, at most 50 times a second, for each change interrupts that CPU: nearly a millisecond of the thread's where
 * it has to wake a virtual one. A service has long profiles and is to cost little: it holds periods longer. The event starts
 * anew then; what that does to the weights is in bpf/sample_weight.h.
 *
 * Periods are uniform over their mean ± a half: over the width of a whole period a cycle near it comes in
 * every phase with the same chance, and so the samples of one stretch scatter as if each were drawn by
 * itself. They come in pairs, a long one with a short one: the number of samples scatters less than
 * that of independent ones.
 *
 * For cpu-clock alone. PERF_EVENT_IOC_PERIOD of a hardware event that follows a frequency changes what the
 * kernel steers towards, not the period.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_DITHER_H
#define MEMSCOPE_COLLECT_SESSION_DITHER_H

#include <stdbool.h>
#include <stdint.h>

/* The periods of one CPU, about `hz` samples a second in all. */
struct dither {
	uint64_t random;
	double mean_ns, hold_ns, least_ns;
	double other; /* of the pair: its second one is due */
	bool second;
};

/* `least_ns`: periods hold so long on average, at least. */
void dither_init(struct dither *d, double hz, uint64_t least_ns, uint64_t seed);
/* Another rate from the next period on. */
void dither_rate(struct dither *d, double hz);
/* The next period, and how long it holds. */
uint64_t dither_period_ns(struct dither *d);
uint64_t dither_hold_ns(struct dither *d);

/* The thread that does it, for `n` perf events that are its caller's until dither_stop(). 0 or -errno. */
struct dither_thread;
int dither_start(const int *fds, uint32_t n, uint32_t hz, uint64_t least_ns,
		 struct dither_thread **ret_thread);
/* So many samples a second from the next change on. NULL: there is none. */
void dither_hz(struct dither_thread *t, double hz);
void dither_stop(struct dither_thread *t);

#endif
