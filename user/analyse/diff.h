/*
 * Profiles of the same thing, before and after, one of each or several: what differs, and what may be chance.
 *
 * Where a profile is an estimate, each value has a known variance (row_sums.h). Of waits, which are measured,
 * how many a run has, and how long, is still chance: n waits of total time t have variance 2 t²/n, as if their
 * lengths were exponential. Other values are counted.
 *
 * A function has changed when all of this holds for its self value:
 *
 *   it differs        in the values as compared (absolute, per second, or of equal totals), and, for
 *                     single samples of time that are not compared by equal totals, in its share of its
 *                     profile too, in the same direction: a busier machine slows everything
 *                     down alike, and no function changed
 *   by more than      one run a side, samples: an exact binomial test of two Poisson counts (a normal one
 *   chance            from 200 on); the larger of the two p-values is kept
 *                     one run a side, bursts: Student's t, with the variance between bursts
 *                     several runs a side: Welch's t-test of the values of runs, whose variance is never taken
 *                     to be less than that of the estimates they are. Estimates of eight functions and more
 *                     are moderated: the variance of each is drawn to what is usual (diff.c). Of a
 *                     side of one run it is the other's, in proportion
 *                     a side with few samples of a function, or none, has the variance that its sampler
 *                     would give the mean of both sides: nothing of what is rare is no change
 *   of many           the false discovery rate is 1 % over all functions that have a value
 *                     (Benjamini and Hochberg): of two runs of one program, 99 in 100 pairs name
 *                     nothing
 *   and beyond the    one run a side: variances are raised by how much more the functions of this pair spread
 *   usual spread      than chance explains: the lower quartile of z² over its own, 0.102 (as in genomic
 *                     control), up to 10, once 16 of them have 10 samples on either side
 *   visibly           by at least `least_share` of the larger total
 *
 * For one counted profile a side only the last condition applies. The intervals are 95 %, of the difference.
 */
#ifndef MEMSCOPE_ANALYSE_DIFF_H
#define MEMSCOPE_ANALYSE_DIFF_H

#include "analyse/frame_tree.h"

enum diff_scale {
	DIFF_ABSOLUTE,
	DIFF_TOTALS,  /* all are scaled to the total of after (the mean of its runs)    */
	DIFF_SECONDS, /* … to the duration of after                                      */
};

enum diff_by { DIFF_BY_FUNCTION, DIFF_BY_STACK };

/* Where the variance comes from. */
enum diff_noise {
	DIFF_COUNTED,  /* there is none: one run a side, and all values were counted  */
	DIFF_SAMPLES,  /* of samples                                                  */
	DIFF_BURSTS,   /* between bursts                                              */
	DIFF_RUNS,     /* between runs                                                */
};

/*
 * Of memory, a function's own is what it asked for: what malloc or the kernel's answer to a page fault
 * has at the leaf of a stack is charged to the site (sites.h); and of waits, what schedule() has there. Whole stacks (DIFF_BY_STACK) keep all.
 */
struct diff_opts {
	const struct profile *before, *after; /* of several runs: their sum */
	uint32_t before_type, after_type;
	const struct profile *const *runs[2]; /* of each side, of the same dict; NULL: one, which is the sum */
	uint32_t n_runs[2];
	enum diff_scale scale;
	enum diff_by by;
	double least_share; /* 0.01 */
	bool root_comm;
};

struct diff_row {
	const char *name, *module; /* the function, of a stack that of its leaf; borrowed */
	enum frame_kind kind;
	uint32_t node;             /* of the tree, a stack's; 0 for a function */
	double self[2], total[2];  /* scaled; means of runs */
	double self_noise, total_noise; /* half the 95 % interval of the difference; 0: counted */
	double p;                  /* p-value; 1 where nothing was tested */
	bool changed;
	bool as_the_rest;          /* time: its value differs beyond chance, its share does not so */
};

struct diff {
	struct frame_tree *tree;   /* of both (frame_tree.h), scaled to be of as many runs */
	struct diff_row *rows;     /* largest change of self first, by its amount; ties by name */
	uint32_t n;
	uint32_t n_changed, n_tested;
	uint32_t n_runs[2];        /* 1 and more */
	double total[2];           /* scaled; means of runs */
	double raw_total[2];       /* means of runs */
	double total_noise;
	double scale;              /* of a run before, on average: 1 when absolute */
	double tree_scale;         /* of the sum of those before, in the tree */
	double spread;             /* by which variances were raised, 1 and more */
	enum diff_noise noise;
	bool estimated;            /* some value is an estimate */
	bool moderated;            /* the variance between runs is drawn to what is usual */
};

/*
 * 0, -ENOMEM, or -EDOM: DIFF_SECONDS without durations, DIFF_TOTALS of a profile of nothing.
 * diff_fini() in any case.
 */
int diff_make(const struct diff_opts *opts, struct diff *diff);
void diff_fini(struct diff *diff);

/* What the values of a side's i-th run are multiplied by in such a difference (side 0: before). 0: it cannot be scaled so. */
double diff_run_scale(const struct diff_opts *opts, int side, uint32_t i);

#endif
