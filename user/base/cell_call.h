/*
 * One question to a new cell, and its answer (base/cells.h). Meanwhile the cell may ask for what it cannot have by itself, a file mostly:
 * whoever called decides about each. Lengths are bounded here; what is in the bytes, the caller checks.
 */
#ifndef MEMSCOPE_BASE_CELL_CALL_H
#define MEMSCOPE_BASE_CELL_CALL_H

#include "base/cell_talk.h"
#include "base/cells.h"

#include <stdatomic.h>

/* What a message is (struct talk). Kinds have words of their own from CALL_OWN on. */
enum { CALL_QUESTION = 1, CALL_ANSWER, CALL_FILE, CALL_OWN };

enum { CALL_QUESTION_MAX = 512 << 20, CALL_REQUEST_MAX = 8192 };

/*
 * How long files of a kind are waited for: whoever brings one that no cell comes to an end with brings more of them. Each that was waited
 * for in vain, or for more than half of its time, halves the time of the next ones of this process, down to a sixteenth, and is forgotten
 * after ten minutes. One for each kind of question, static; zeroed: all of the time.
 */
struct cell_patience {
	atomic_uint in_vain;
	atomic_ullong last_ns;
};

struct cell_call {
	const struct cell_kind *kind;
	const void *question;
	size_t len;
	const int *fds; /* that go with it */
	uint32_t n_fds;
	size_t answer_max;
	size_t request_max; /* of what it asks for; 0: CALL_REQUEST_MAX */
	uint32_t seconds;
	struct cell_patience *patience; /* NULL: the same for all files */
	/*
	 * What the cell asks for: answered on its channel. `until_ns` is the end of the call, which may be moved by what the answer took.
	 * Less than 0 ends the call. NULL: it may ask for nothing.
	 */
	int (*serve)(void *ctx, int channel, const struct talk *request, uint64_t *until_ns);
	void *ctx;
};

/*
 * 0 and the answer. -ETIMEDOUT: there was none in time; -EPIPE: the cell ended before; -EBADMSG: it said what it may not; -ENOMEM; or as
 * cell_open(). `ret_end` (may be NULL): then, how the cell ended.
 */
int cell_call(const struct cell_call *c, struct talk *ret, struct cell_end *ret_end);

/* A file for a cell: `fd` (taken over), or -errno instead. */
int cell_send_file(int channel, int fd, uint64_t until_ns);

/* --- in the cell --- */

/* The question: at most CALL_QUESTION_MAX bytes. */
int cell_question(const struct cell_given *given, struct talk *ret);
int cell_answer(const struct cell_given *given, const void *data, size_t len);
/* Asks for a file: a descriptor, or -errno. */
int cell_ask_file(const struct cell_given *given, uint32_t what, const void *data, size_t len);

#endif
