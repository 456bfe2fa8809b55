/*
 * Between sym_cell.c, which asks, and sym_cell_inside.c, the cell; and the same for code (code_cell.c).
 *
 *   ▶ question  kind:4 flags:4 cpu_ns:8 ms_left:8 codes:4×2 path build_id n:4 vaddr:8×n, more; the image, or perf map and jitdump
 *   ◀ OPEN      host:1 path                     ▶ a file
 *   ◀ SERVER    build_id                        ▶ a file
 *   ◀ LINES     file:4 alt:4, vaddr:8×n of CODE  ▶ RAW    code:4 cut:4 status:4 cpu_ns:8, what the reader said
 *   ◀ answer    strings n:4 text×n, places n:4 { ix:4 found:1 unread:1 lines:2 { function system file line start:4 }×lines }×n,
 *               ran_out:1 why problem
 *
 * Files are known by the order in which they were sent, the image is 0. A text is its length (4) and its bytes; strings are numbered
 * from 1, 0 is none.
 */
#ifndef MEMSCOPE_SYMBOLIZE_SYM_CELL_PARTS_H
#define MEMSCOPE_SYMBOLIZE_SYM_CELL_PARTS_H

#include "base/cell_call.h"
#include "base/put.h"
#include "symbolize/code_read.h"
#include "symbolize/image_names.h"

#include <errno.h>
#include <string.h>

extern const struct cell_kind sym_cell, code_cell;

enum { OPEN = CALL_OWN, SERVER, LINES, RAW };

enum {
	NO_DEMANGLE = 1,
	NO_LINES = 2,
	NO_DEBUG_FILES = 4,
	HAS_BUDGET = 8,
	WHICH_FILES = 16, /* the answer is which files have its names: ok:1 debug:4 alt:4 */
	CODE = 32,        /* the answer is code_cell.c's, as its `more` is */
};

enum {
	MEMORY_MAX = 1 << 30,
	CPU_S = 60,
	WALL_S = 90,          /* without what it waits for         */
	FILES_MAX = 16,       /* that it is sent, kept open meanwhile */
	OPENS_MAX = 64,       /* tries                              */
	LINES_MAX = 4,
	ANSWER_BYTES_MAX = 512 << 20,
	TEXT_MAX = 64 << 10,
	REASON_MAX = 120,
	CODE_REQUEST_MAX = 8 + 8 * CODE_FUNCTIONS_MAX * CODE_INSTRUCTIONS_MAX, /* lines of each instruction */
};

#define NO_FILE UINT32_MAX

/* --- who asks --- */

/* The files that a cell was sent, by number; they stay open here, too: lines are asked for by number. */
struct sym_outside {
	const struct image_question *q;
	uint32_t flags;
	int files[FILES_MAX];
	uint32_t n_files, n_opens, n_lines;
};

/*
 * Asks a cell of `kind` about the image of a question; `more` (NULL: nothing) goes behind it, and `o` has its files afterwards. -ENXIO:
 * there is no file, and so nobody was asked; else as cell_call(). sym_outside_fini() and talk_fini() in any case.
 */
int sym_cell_ask(const struct cell_kind *kind, const struct image_question *q, uint32_t flags, const struct strbuf *more,
		 size_t answer_max, struct sym_outside *o, struct talk *ret, struct cell_end *ret_end);
void sym_outside_fini(struct sym_outside *o);

/* Words for people, of a cell's: plain ones, as the dict then has them; NULL: none, or others. */
const char *sym_take_reason(struct bytes *b, struct dict *d);

/* --- the cell --- */

/* A cell is asked about one image, and this is it. */
struct sym_inside {
	const struct cell_given *given;
	uint32_t flags;
	int first[2];            /* of the question: descriptors, or -errno */
	int sent[FILES_MAX + 1]; /* by number: as they are open here        */
	uint32_t n_sent;
	struct dict *d;
	uint64_t *vaddrs;
	struct bytes more;
	struct strbuf places;
	uint32_t n_places;
};

/* What is asked with CODE (code_cell.c). */
void code_cell_say(struct sym_inside *in, const struct image_question *q);

static inline int take_text(struct bytes *b, struct bytes *ret)
{
	uint32_t len;

	if (bytes_u32(b, &len) < 0 || len > TEXT_MAX)
		return -EBADMSG;
	return bytes_take(b, len, ret);
}

#endif
