/*
 * Flat ranking of a profile: per function, how much was spent in it (self) and in it and all it
 * called (total; a recursive function counts once per sample). A function is a name in an image:
 * its inlined copies count with it. What is allocated, and the time of waits, is charged to the site
 * (sites.h): malloc and the kernel's scheduler are in no row.
 */
#ifndef MEMSCOPE_ANALYSE_TOP_H
#define MEMSCOPE_ANALYSE_TOP_H

#include "analyse/row_sums.h"

struct top_row {
	const char *name;    /* function as shown */
	const char *module;  /* base name of its image, "" when unknown */
	enum frame_kind kind;
	int64_t self, total;
	/* By top_intervals(): */
	struct interval self_interval, total_interval;
	double samples;      /* that total rests on; 0: counted */
};

enum top_order {
	TOP_BY_SELF,
	TOP_BY_TOTAL,
	TOP_INTERPRETED, /* functions of interpreted languages alone, by self and the native code that they called */
};

/*
 * Fills `out` with at most `cap` rows, largest first (ties by name), for value type `type`;
 * functions that have none of it are left out. Names are borrowed from the profile's dict.
 * Returns the number of rows written, or -ENOMEM.
 */
int top_functions(const struct profile *p, uint32_t type, enum top_order order,
		  struct top_row *out, uint32_t cap);

/*
 * Where the widest way from the root leads, as long as a half of the profile goes it: the last named function on it that is the
 * program's own, or its language's, and does not only start it. Says what a flat profile is for. 1; 0: there is none; -ENOMEM.
 */
int top_trunk(const struct profile *p, uint32_t type, struct top_row *ret_row);

/*
 * Sets the 95 % intervals of `n` rows that top_functions() gave, and *ret_sums of all of the profile; where
 * nothing is an estimate (ret_sums->estimated), their ends are equal. `whole`: where `p` is a part of a profile by its
 * stacks, what that has; samples of it are by chance in this part. 0: it is all. 0 or -ENOMEM.
 */
int top_intervals(const struct profile *p, uint32_t type, struct top_row *rows, uint32_t n,
		  double whole, struct profile_sums *ret_sums);

#endif
