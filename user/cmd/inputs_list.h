/* Which files the operands of a command mean; see inputs.h. */
#ifndef MEMSCOPE_CMD_INPUTS_LIST_H
#define MEMSCOPE_CMD_INPUTS_LIST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_list {
	char **paths;
	uint32_t n, cap;
	uint32_t same_process; /* how many are dumps of one process: what it held at several times */
};

void input_list_fini(struct input_list *list);

/* -EINVAL: wrong usage; -ENOENT: there is no such file in a directory; -ENOMEM; all with a sentence. */
int input_list_make(char *const *operands, int n, const char *source, struct input_list *list,
		    struct err *e);

bool input_is_directory(const char *path);
/* Is `word`, after a directory, what is chosen of it? */
bool input_is_choice(const char *word);

/* Of a run's directory, which may have profiles of several sources, the first: oncpu, offcpu … NULL: none. */
const char *input_main_source(const char *dir);
/*
 * The summary of a run: DIR/summary`ending`, else the latest DIR/summary-STAMP`ending` (of runs that share
 * a directory). -ENOENT: there is none.
 */
int input_summary(const char *dir, const char *ending, char *out, size_t cap);

#endif
