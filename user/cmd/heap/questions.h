/*
 * The questions to a heap: one row each of questions.c. The command line, its help and the live screen read the same rows.
 */
#ifndef MEMSCOPE_CMD_HEAP_QUESTIONS_H
#define MEMSCOPE_CMD_HEAP_QUESTIONS_H

#include "cmd/heap/view.h"

#include <stdio.h>

struct heap_question {
	const char *name;
	const char *what; /* what stands behind it in an example; NULL: nothing */
	int (*answer)(const struct heap_view *v, const char *what, struct err *e);
	/* Before a process is stopped; NULL: nothing. */
	int (*check)(const struct heap_args *a, struct err *e);
	/* … once that is known, too; NULL: nothing. */
	int (*before_stop)(const struct heap_view *v, struct err *e);
	bool compares;       /* older snapshots, which are files, are named first */
	const char *options; /* those that only some questions take, "by top": others are refused */
	const char *doc;     /* a sentence or two, for its help */
	const char *example; /* what stands behind "memscope heap" */
};

extern const struct heap_question heap_questions[]; /* ends with a row without a name; in the order of the sentence that names them */

/* NULL: there is none of this name. */
const struct heap_question *heap_question_find(const char *name);
/* "census, retainers, … or leaks" */
void heap_questions_list(char *list, size_t cap);

/* Is it an option of this question? */
bool heap_question_takes(const struct heap_question *q, const char *option);
/* -EINVAL: an option was given (its field is not as in `defaults`) that the question would ignore. */
int heap_question_check(const struct heap_question *q, const struct opt *opts, const struct heap_args *args,
			const struct heap_args *defaults, struct err *e);
/* What `memscope heap QUESTION --help` prints: of `opts` those that it takes. */
void heap_question_help(const struct heap_question *q, const struct opt *opts, FILE *f);

#endif
