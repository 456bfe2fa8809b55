/*
 * The two sides of memscope diff: which operands are whose runs, the profiles of a side, and what its runs' summaries say.
 */
#ifndef MEMSCOPE_CMD_DIFF_SIDES_H
#define MEMSCOPE_CMD_DIFF_SIDES_H

#include "analyse/diff.h"
#include "cmd/inputs.h"
#include "render/tables/diff_report.h"

/* The runs of a side: each is one operand, or a directory and what is chosen of it. */
struct diff_side {
	char **operands;
	int n; /* operands */
	uint32_t runs;
};

/* BEFORE AFTER, or BEFORE… -- AFTER…: `sides` as they were given, of which the second may be empty. -EINVAL with a sentence. */
int diff_sides_find(struct diff_side sides[2], struct err *e);
/* What a side is called: its run, or the first and how many more. */
void diff_side_name(const struct diff_side *side, char *out, size_t cap);

/* The profiles of a side, and their sum. */
struct side_profiles {
	struct profile **runs, *sum;
	uint32_t n;
};
void side_profiles_fini(struct side_profiles *s);

/* `source`: of directories; NULL: they have one. side_profiles_fini() in any case. */
int side_profiles_read(struct inputs *in, const struct diff_side *side, const char *source, struct side_profiles *s, struct err *e);
/* The mean duration of a side, in seconds; 0: not all say how long they took. */
double side_profiles_seconds(const struct side_profiles *side);

/*
 * Are sums of this value type compared per second unless something else is asked for? Where the sides took unequal lengths of
 * time, which sums differ by alone; but not of what is in use, which adds up over no time, and not of the same work.
 */
bool diff_sides_need_rate(const struct diff_side sides[2], const struct side_profiles profiles[2],
			  const char *type);

/* Was the target of any run at its end when its work was done, as its summary or its profile says? Then sums are of the same work. */
bool diff_sides_end_by_themselves(const struct diff_side sides[2],
				  const struct side_profiles profiles[2]);

/*
 * Of a run's directory and a profile file (or several of each) the source of the run that is compared with the file: what it is named for,
 * else the first that counts the same. NULL: no operand is a file, or none is a directory. -EINVAL with a sentence: the run has no such source.
 */
int diff_sides_source(struct inputs *in, const struct diff_side sides[2], const char **ret_source, struct err *e);

/*
 * What the summaries of the runs say, the mean of each side and its 95 % interval. -ENOENT: some run has no summary.
 */
int diff_scalars_read(const struct diff_side sides[2], struct diff_scalar scalars[], struct err *e);

#endif
