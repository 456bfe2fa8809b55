/*
 * Which windows a word means.
 *
 *   at:TIME            that in which the moment is; base/moment.h has how moments are written
 *   last:N             the last N of --every
 *   last:30m           those of the last 30 minutes (s, m, h, d)
 *   A..B, A.., ..B     those that have some of the time from A up to B
 *   [WORD-]STAMP       one, by its name in `memscope ls`
 *
 * Windows are taken whole. Those of triggers lie across the others and are chosen by their names alone; or by at:, where no
 * other window has the moment.
 */
#ifndef MEMSCOPE_IMPORT_WINDOW_CHOICE_H
#define MEMSCOPE_IMPORT_WINDOW_CHOICE_H

#include "import/windows.h"

enum window_choice_kind { CHOOSE_AT, CHOOSE_LAST, CHOOSE_RANGE, CHOOSE_NAMED };

struct window_choice {
	enum window_choice_kind kind;
	const char *text;        /* as it was written */
	int64_t from_ns, to_ns;  /* AT: both the moment; RANGE: INT64_MIN, INT64_MAX: no end on that side */
	uint32_t last;
	int64_t now_ns;
};

/* Has `word` the form of one? Then a mistake in it is named by the function below. */
bool is_window_choice(const char *word);
/* `word` is borrowed. -EINVAL with a sentence. */
int window_choice_parse(const char *word, int64_t now_ns, struct window_choice *ret_choice,
			struct err *e);

/*
 * Indexes of those that are meant, by time, into *ret_chosen (free() it). -ESRCH with a sentence that names the nearest;
 * -ENXIO: there is none of that name; -errno of a file that cannot be read.
 */
int window_choose(struct windows *w, const struct window_choice *c, uint32_t **ret_chosen,
		  uint32_t *ret_n, struct err *e);

#endif
