/*
 * A profile: stacks × labels → values. The noun that every room passes on.
 *
 * Each sample has one stack, one label set and one int64 per value type; adding the same
 * (stack, labels) again adds to its values. Values saturate at INT64_MAX, never wrap.
 * A profile borrows its dict, which must outlive it.
 *
 * Labels that memscope writes, and that viewers and our own folded output know:
 *   pid  (number)   the process, in the user's sense
 *   tid  (number)   the thread
 *   comm (text)     the process's command name: the root frame of folded output and pictures
 *   thread (text)   the thread's own name, where it differs
 *   container (text), container_id (text)   what it is called, and its whole id; of processes in one
 *   pod (text), namespace (text)   of Kubernetes, of containers that it runs
 *   ns_pid (number) the process as its own pid namespace knows it, where it differs
 */
#ifndef MEMSCOPE_MODEL_PROFILE_H
#define MEMSCOPE_MODEL_PROFILE_H

#include "model/dict.h"
#include "model/value_error.h"
#include "model/value_type.h"

struct profile;
struct sample_times;
struct over_time;

struct profile_sample {
	stack_id stack;
	labels_id labels;
	const int64_t *values;  /* profile_n_types() of them */
	const struct sample_error *errors; /* for profile_error(); NULL: none of its values is an estimate */
};

/* What pprof keeps beside the samples; all optional (0, empty). */
struct profile_meta {
	int64_t time_ns;             /* wall clock at the start, Unix time                 */
	int64_t duration_ns;
	struct value_type period_type;
	int64_t period;
	uint32_t default_type;       /* index of the value type to show first              */
	const char *const *comments; /* NULL-terminated; copied                            */
};

enum { PROFILE_MAX_TYPES = 24 };

/* `types` (n of them, 1 … PROFILE_MAX_TYPES) are copied. NULL when out of memory. */
struct profile *profile_new(struct dict *d, const struct value_type *types, uint32_t n);
void profile_free(struct profile *p);
DEFINE_CLEANUP(struct profile *, profile_freep, profile_free)

struct dict *profile_dict(const struct profile *p);
uint32_t profile_n_types(const struct profile *p);
const struct value_type *profile_type(const struct profile *p, uint32_t i);
/* The index of the value type named `name` ("cpu", or "cpu/nanoseconds"), -1 when there is none. */
int profile_find_type(const struct profile *p, const char *name);

/* 0 or -ENOMEM (what was set before then stays). */
int profile_set_meta(struct profile *p, const struct profile_meta *meta);
const struct profile_meta *profile_get_meta(const struct profile *p);

/* `values`: profile_n_types() of them. 0 or -ENOMEM (also when the dict ran out: dict_oom()). */
int profile_add(struct profile *p, stack_id stack, labels_id labels, const int64_t *values);

/* The same; *ret_sample is the sample's number, untouched on failure. */
int profile_add_to(struct profile *p, stack_id stack, labels_id labels, const int64_t *values,
		   uint32_t *ret_sample);
/* The number of the sample with this stack and these labels; -ENOENT. */
int profile_find_sample(const struct profile *p, stack_id stack, labels_id labels,
			uint32_t *ret_sample);

/*
 * The rows of the file that it was read from, for files that speak of them by their number: several that were equal are one
 * sample here. Of a profile that was not read each sample is a row. profile_note_row(): the next row of the file is this
 * sample. 0 or -ENOMEM.
 */
int profile_note_row(struct profile *p, uint32_t sample);
uint32_t profile_n_rows(const struct profile *p);
uint32_t profile_row_sample(const struct profile *p, uint32_t row);

/*
 * When its values came (sample_times.h): NULL where that is not known. The store becomes the profile's. What is added
 * to the profile is not in it until the caller says when it came; profile_fit_times() makes the sums equal again, and puts what has
 * no time where the sample's others are, or at the end. 0 or -ENOMEM.
 */
void profile_set_times(struct profile *p, struct sample_times *times);
struct sample_times *profile_times(const struct profile *p);
int profile_fit_times(struct profile *p);

/* Figures over time beside the samples (over_time.h); NULL: there are none. They become the profile's. */
void profile_set_over_time(struct profile *p, struct over_time *over_time);
const struct over_time *profile_over_time(const struct profile *p);

/*
 * A value of the sample with this stack and these labels, which was added before, is an estimate: this is added to
 * its error. 0, -ENOMEM, or -ENOENT: there is no such sample.
 */
int profile_add_error(struct profile *p, stack_id stack, labels_id labels, uint32_t type,
		      const struct value_error *error);
/* The error of value `type` of a sample. false: it carries none, and *ret_error is zero. */
bool profile_error(const struct profile_sample *s, uint32_t type, struct value_error *ret_error);
/*
 * profile_add() of `sign` (1 or -1) times a sample of another profile, with its errors: what is subtracted is
 * as uncertain as what is added. from[i] is which of its values is value i here, NULL: value i.
 */
int profile_add_sample(struct profile *p, stack_id stack, labels_id labels,
		       const struct profile_sample *s, const uint32_t *from, int sign);
/* Makes all values of a type 0, and certain; those of its times stay. */
void profile_clear_type(struct profile *p, uint32_t type);
/* Do samples carry errors? */
bool profile_has_errors(const struct profile *p);
/* Memory that they take. */
uint64_t profile_error_bytes(const struct profile *p);

uint32_t profile_n_samples(const struct profile *p);
/* Samples are numbered 0 … n-1 in the order in which they were first added. */
struct profile_sample profile_sample(const struct profile *p, uint32_t i);
/* Saturating, as the values are. O(samples). */
int64_t profile_total(const struct profile *p, uint32_t type);

#endif
