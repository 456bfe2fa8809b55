/* Which files the operands of a command mean; see inputs.h. */
#ifndef MEMSCOPE_CMD_INPUTS_LIST_H
#define MEMSCOPE_CMD_INPUTS_LIST_H

#include "base/err.h"
#include "render/tables/profile_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input_list {
	char **paths;
	uint32_t n, cap;
	uint32_t same_process; /* how many are dumps of one process: what it held at several times */
	bool windows;          /* all are windows of one source in one directory, by time */
	bool of_container;     /* `container` chose among the files of a directory */
	char what[160];        /* chosen by time: "oncpu, 3 windows from … to …", … */
	int64_t from_ns, to_ns; /* … and their begin and end, since the Epoch      */
	char windows_text[200]; /* "3, … to …; 1 gap, 8 s in all …"                */
	struct profile_windows chosen; /* the same in numbers; n: 0, they were not */
};

void input_list_fini(struct input_list *list);

/* -EINVAL: wrong usage; -ENOENT: there is no such file in a directory; -ESRCH: no window has that time; -ENOMEM; all with a
 * sentence. `source`, `container`: NULL, not said. */
int input_list_make(char *const *operands, int n, const char *source, const char *container,
		    struct input_list *list, struct err *e);

bool input_is_directory(const char *path);
/* Is `word`, after a directory, what is chosen of it? */
bool input_is_choice(const char *word);
/* Are these a directory and a time in it, or another choice of windows (import/window_choice.h)? */
bool input_is_windows(char *const *operands, int n);

/* Of a run's directory, which may have profiles of several sources, the first: oncpu, offcpu … NULL: none. `container`: NULL,
 * or of that one. */
const char *input_main_source(const char *dir, const char *container);
/*
 * The summary of a run, in `dir` or the one target of an archive: DIR/summary`ending`, else the latest DIR/summary-STAMP`ending` (of runs that share
 * a directory). -ENOENT: there is none.
 */
int input_summary(const char *dir, const char *ending, char *out, size_t cap);
/*
 * "-STAMP" of the run in `dir` that was at work at `when_ns` and has left a trend-STAMP.csv; -ENOENT: there is none.
 */
int input_run_suffix(const char *dir, int64_t when_ns, char *out, size_t cap);

#endif
