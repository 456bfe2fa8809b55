/*
 * One error: a code and one sentence for the person at the terminal.
 *
 * The caller owns the struct (usually on its stack) and passes it down; the function that
 * knows the most fills it in with err_set(), everyone above passes it on unchanged, and
 * cmd/ prints it once. A NULL struct err * is allowed everywhere: the sentence is dropped.
 */
#ifndef MEMSCOPE_BASE_ERR_H
#define MEMSCOPE_BASE_ERR_H

#include <stdbool.h>
#include <stdio.h>

struct err {
	int code;       /* -errno, 0 when nothing went wrong       */
	char msg[512];  /* one sentence, no newline, truncated to fit */
};

/*
 * Sets the sentence and returns `code` (a negative errno), so that
 * `return err_set(e, -ENOENT, "…", …)` is the usual form.
 */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * Prints "memscope: SENTENCE" on stderr, control bytes made harmless. In a service's journal err_print() is an error;
 * a warning and a notice are one step and two below it.
 */
void err_print(const char *sentence);
void err_warn(const char *sentence);
void err_notice(const char *sentence);

/*
 * Sees to it that all that was printed on standard output is there. 0, or -errno after a sentence that says why not; none where nobody
 * reads it any more (-EPIPE).
 */
int err_flush_stdout(void);
/* A sentence alone: file names and other people's bytes in it control no terminal, in ASCII, C1 or without being UTF-8. */
void err_put(FILE *to, const char *sentence);

/* Is stderr the journal ($JOURNAL_STREAM)? Then "<4>" at the begin of a line is its priority (sd-daemon(3)). */
bool err_is_journal(void);

#endif
