/*
 * One file read by a cell of its own (cells.h), the plainest of calls: its name and a question go in, an answer comes back, which the caller
 * checks. A reader's file has its CELL_KIND, what it reads in the cell, and what it makes of an answer.
 *
 *   ▶ question  name (its length:4 and its bytes), the question; the file
 *   ◀ answer    what the reader says
 */
#ifndef MEMSCOPE_BASE_FILE_CELL_H
#define MEMSCOPE_BASE_FILE_CELL_H

#include "base/cell_call.h"
#include "base/err.h"
#include "base/strbuf.h"

enum { FILE_CELL_NAME_MAX = 4096 };

/* --- in the cell --- */

struct file_in_cell {
	int fd;
	const char *name;
	struct bytes question;
	const struct cell_given *given; /* for who asks for more files */
};

/* Less than 0: there is no answer, and the cell ends without one. */
typedef int (*file_cell_read_fn)(void *ctx, const struct file_in_cell *f, struct strbuf *answer);

/* The work of a kind. */
void file_cell_work(const struct cell_given *given, file_cell_read_fn read, void *ctx);

/* --- who asks --- */

struct file_cell {
	const struct cell_kind *kind;
	const char *what; /* is to be found, for sentences: "a language's runtime in it" */
	size_t answer_max;
	uint32_t seconds;
	struct cell_patience *patience;
	int (*serve)(void *ctx, int channel, const struct talk *request, uint64_t *until_ns); /* as in cell_call.h */
	void *ctx;
};

/*
 * Asks a new cell about an open file. 0 and an answer; talk_fini() it in any case. -ETIMEDOUT: it took too long; -EBADMSG: the cell ended
 * early, or said what it may not; -ENOMEM; else as cell_open(). With a sentence.
 */
int file_cell_ask(const struct file_cell *c, int fd, const char *name, const struct strbuf *question, struct talk *ret, struct err *e);
/*
 * For answers that are a code, and behind it the sentence that a reader has for it: both, the sentence as any text of others. -EBADMSG without
 * a sentence: that is no code, or one that means something to who asks again (-EAGAIN, -ETIMEDOUT).
 */
int file_cell_code(int code, struct bytes sentence, struct err *e);
/* What is said of an answer that does not hold together: -EBADMSG. */
int file_cell_lied(const struct file_cell *c, const char *name, struct err *e);

#endif
