/*
 * How uncertain an estimated value is: sums that are added over samples, runs and profiles as values are.
 *
 * A value that was counted has none. One that rests on independent samples (model/estimate.h) has its variance
 * `v`, which adds. One that rests on bursts (analyse/bursts.h) has its deviations by groups of bursts: rows
 * that were traced in the same bursts vary together, so deviations are added with their signs and squared last;
 * those of different runs are independent, and add up to the right squares on average. What is wrong in the
 * same direction for all of them (the cost of a call) adds in `below` and `above`.
 *
 * In pprof they are numeric labels of the sample, one sample per stack as ever. Viewers show no numeric labels,
 * and pprof keeps them when it merges. For the value type alloc_space, in its unit:
 *
 *   alloc_space_samples   observations the value rests on: samples drawn, calls seen in bursts (a count)
 *   alloc_space_seen      the part of the value that was seen, not extrapolated: it is no less
 *   alloc_space_stderr    the square root of v
 *   alloc_space_weight    what one more sample would add to the estimate: vc/v
 *   alloc_space_low, _high  the value at the bounds of a call's cost
 *   alloc_space_burst     a group's deviation times 16, plus the group's number; once per group
 *
 * "blocked" is its time (of two value types of one name, the later one).
 */
#ifndef MEMSCOPE_MODEL_VALUE_ERROR_H
#define MEMSCOPE_MODEL_VALUE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

enum { ERROR_GROUPS = 16 };

struct value_error {
	double samples;
	double unseen;              /* the part of the value that was not seen; INFINITY: not known */
	double v, vc;               /* as in struct estimate                          */
	double below, above;        /* 95 %, in the direction of all others           */
	double group[ERROR_GROUPS]; /* deviations                                     */
};

void value_error_add(struct value_error *to, const struct value_error *from);
/* What came since: `part` was in it at an earlier time. */
void value_error_less(struct value_error *from, const struct value_error *part);
/* The error of minus the value: of what is subtracted, nothing bounds the difference from below. */
void value_error_negate(struct value_error *e);
/* Of v and of the groups, and of what is wrong in one direction as if it were normal. */
double value_error_variance(const struct value_error *e);
/* Does it rest on bursts? */
bool value_error_has_groups(const struct value_error *e);

/* How the label of a value type is called: NAME_stderr and so on, in the order of this. */
enum value_error_label {
	ERROR_LABEL_SAMPLES,
	ERROR_LABEL_SEEN,
	ERROR_LABEL_STDERR,
	ERROR_LABEL_WEIGHT,
	ERROR_LABEL_LOW,
	ERROR_LABEL_HIGH,
	ERROR_LABEL_BURST,
	N_ERROR_LABELS,
};
extern const char *const value_error_labels[N_ERROR_LABELS]; /* "_samples" … */

/* At most. */
enum { ERROR_LABELS_MAX = ERROR_LABEL_BURST + ERROR_GROUPS };
struct value_error_number {
	enum value_error_label label;
	int64_t number;
};
/* The labels of the error of `value`; how many. What is 0 has none. */
uint32_t value_error_write(const struct value_error *e, int64_t value,
			   struct value_error_number out[ERROR_LABELS_MAX]);
/* Takes one of them in; `e` begins as value_error_begin() leaves it, and is whole after value_error_end(). */
void value_error_begin(struct value_error *e);
void value_error_read(struct value_error *e, int64_t value, struct value_error_number label);
void value_error_end(struct value_error *e);
/* As a reader of the file has it: numbers of labels are whole. false: it has no label, and is zero. */
bool value_error_as_written(struct value_error *e, int64_t value);

#endif
