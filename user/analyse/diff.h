/*
 * Two profiles of the same thing, one before and one after: what differs, and what may be chance.
 *
 * Where a profile is a sample, each value estimates an unknown one, with a known variance: n
 * samples of weight w have variance n w² (Poisson); an allocation of s bytes, sampled with
 * probability p = 1 - exp(-s/R), adds (1 - p)/p s². For n waits of total time t it is t²/n: each is
 * measured, but how many a run has is chance. Other profiles are counted exactly.
 *
 * A function has changed when all of this holds for its self value:
 *
 *   it differs        in the values as compared (absolute, per second, or of equal totals), and, for
 *                     samples of time that are not compared by equal totals, in its share of its
 *                     profile too, in the same direction: a busier machine slows everything
 *                     down alike, and no function changed
 *   by more than      both by an exact binomial test of two Poisson counts (a normal one from 200
 *   chance            on); the larger of the two p-values is kept
 *   of many           the false discovery rate is 1 % over all functions that have a value
 *                     (Benjamini and Hochberg): of two runs of one program, 99 in 100 pairs name
 *                     nothing
 *   and beyond the    variances are raised by how much more the functions of this pair spread than
 *   usual spread      chance explains: the lower quartile of z² over its own, 0.102 (as in genomic
 *                     control), up to 10, once 16 of them have 10 samples on either side
 *   visibly           by at least `least_share` of the larger total
 *
 * For exact profiles only the last condition applies. The intervals are 95 %, of the difference.
 */
#ifndef MEMSCOPE_ANALYSE_DIFF_H
#define MEMSCOPE_ANALYSE_DIFF_H

#include "analyse/frame_tree.h"

enum diff_scale {
	DIFF_ABSOLUTE,
	DIFF_TOTALS,  /* before is scaled to the total of after    */
	DIFF_SECONDS, /* … to the duration of after                */
};

enum diff_by { DIFF_BY_FUNCTION, DIFF_BY_STACK };

/*
 * Of memory, a function's own is what it asked for: what malloc or the kernel's answer to a page fault
 * has at the leaf of a stack is charged to the site (sites.h); and of waits, what schedule() has there. Whole stacks (DIFF_BY_STACK) keep all.
 */
struct diff_opts {
	const struct profile *before, *after;
	uint32_t before_type, after_type;
	enum diff_scale scale;
	enum diff_by by;
	double least_share; /* 0.01 */
	bool root_comm;
};

struct diff_row {
	const char *name, *module; /* the function, of a stack that of its leaf; borrowed */
	enum frame_kind kind;
	uint32_t node;             /* of the tree, a stack's; 0 for a function */
	double self[2], total[2];  /* scaled */
	double self_noise, total_noise; /* half the 95 % interval of the difference; 0: exact */
	double p;                  /* p-value; 1 where nothing was tested */
	bool changed;
	bool as_the_rest;          /* time: its value differs beyond chance, its share does not so */
};

struct diff {
	struct frame_tree *tree;   /* of both (frame_tree.h), scaled */
	struct diff_row *rows;     /* largest change of self first, by its amount; ties by name */
	uint32_t n;
	uint32_t n_changed, n_tested;
	double total[2];           /* scaled */
	double raw_total[2];
	double total_noise;
	double scale;              /* of the profile before: 1 when absolute */
	double spread;             /* by which variances were raised, 1 and more */
	bool exact;
};

/*
 * 0, -ENOMEM, or -EDOM: DIFF_SECONDS without two durations, DIFF_TOTALS of a profile of nothing.
 * diff_fini() in any case.
 */
int diff_make(const struct diff_opts *opts, struct diff *diff);
void diff_fini(struct diff *diff);

/* The variance of a sample's value; 0 where the profile's type is counted exactly. */
double sample_variance(const struct profile *p, const struct profile_sample *s, uint32_t type);

/* P(X >= k), X binomial of n and p; k and n may be fractions (the incomplete beta function). */
double binomial_tail(double n, double k, double p);

#endif
