/*
 * What the rows of a table have of a profile, and how sure that is: for functions or paths of a tree.
 *
 * The error of a sample's value is what it carries (model/value_error.h). A sample that carries none still is an
 * estimate where the profile is one of samples: n on-CPU samples of weight w have variance n w² (Poisson); an
 * allocation of s bytes that is sampled with probability p = 1 - exp(-s/R) adds (1 - p)/p s², with the mean size
 * of the stack for s; a growth sample stands for a period. Other values are counted.
 */
#ifndef MEMSCOPE_ANALYSE_ROW_SUMS_H
#define MEMSCOPE_ANALYSE_ROW_SUMS_H

#include "analyse/frame_tree.h"
#include "model/estimate.h"

enum error_scope {
	ERROR_OF_RUN,  /* against what happened in the run                                             */
	ERROR_OF_LAW,  /* against the mean of runs like it: waits are measured, but n of them are chance too */
};

/* Of a sample's value. false: it was counted, and *ret_error is zero. */
bool sample_error(const struct profile *p, const struct profile_sample *s, uint32_t type,
		  enum error_scope scope, struct value_error *ret_error);

struct row_sum {
	double value;
	struct value_error error;
};

/* `error` NULL: the value was counted. */
void row_sum_add(struct row_sum *to, double value, const struct value_error *error);

struct row_sums {
	struct row_sum self, total;
};

/* Rows of a tree: row_of[node], NO_NODE where a node has none. */
struct row_table {
	const struct frame_tree *tree; /* its nodes have been charged                       */
	const uint32_t *row_of;
	uint32_t n;
};

/* What is known of all of a profile. */
struct profile_sums {
	struct row_sum all;
	bool estimated;      /* some value has an error                                       */
	bool on_cpu;         /* samples of time that is known: a row has a share of it, `all` */
	uint32_t groups;     /* of bursts, that deviate: 0 none                               */
};

/*
 * Adds value `type` of all samples of `p` to their rows (`rows`: table->n, zero). `tree`: of `p` alone, with
 * keep_samples; map[node]: its node in the table's tree; NULL: it is that tree. A recursive function counts
 * once per sample. 0 or -ENOMEM.
 */
int row_sums_add(const struct profile *p, uint32_t type, enum error_scope scope,
		 const struct frame_tree *tree, const uint32_t *map, const struct row_table *table,
		 struct row_sums *rows, struct profile_sums *ret_sums);

/*
 * 95 %. `of` is the profile's. Of on-CPU samples, Wilson's interval of a share; of other samples that of
 * model/estimate.h; of bursts, Student's, by the number of groups. Where a value rests on both, the
 * half widths are added as squares. Equal ends: counted.
 *
 * Samples of a row that stand for less each than the profile's do on average (vc/v) are of large blocks, or of ones
 * that were sampled for certain. Of small blocks beside them none may have been met, so the upper end is that of
 * estimate_upper_end() with the profile's vc/v. Not of waits: each was measured, whichever stack it was put to.
 */
struct interval row_interval(const struct row_sum *sum, const struct profile_sums *of);

#endif
