/*
 * Labels that programs set themselves: which part of the samples, and how much waiting, has each value.
 */
#ifndef MEMSCOPE_ANALYSE_BY_LABEL_H
#define MEMSCOPE_ANALYSE_BY_LABEL_H

#include "model/profile.h"

enum { LABEL_TOP = 3 };

struct label_share {
	const char *value;
	int64_t samples;    /* on a CPU                */
	int64_t blocked_ns; /* of threads              */
};

/* A key. Texts are borrowed from the dict. */
struct label_row {
	const char *key;
	uint32_t values;    /* that it has             */
	int64_t samples, blocked_ns; /* with any of them */
	uint32_t n_top;
	struct label_share top[LABEL_TOP]; /* most samples first, then most blocked, then by value */
};

/*
 * At most `cap` keys: most samples first, then most blocked, then fewest values, then by name. Keys of memscope's own
 * (label_is_reserved()) and numbers are left out. Either profile may be NULL. How many, or -ENOMEM.
 */
int by_label(const struct profile *oncpu, const struct profile *offcpu, struct label_row *out, uint32_t cap);

#endif
