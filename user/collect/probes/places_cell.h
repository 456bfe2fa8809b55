/*
 * Files in which probes have their places are others' bytes: they are read in cells (base/cells.h), each made anew for one file. Here is
 * what all of these readers share: how a file is asked about, and which debug files its cell may have meanwhile. What a reader is asked,
 * what it answers and how that is checked is in the file that has its CELL_KIND.
 *
 *   ▶ question  path, what the reader is asked; the file (base/file_cell.h)
 *   ◀ OPEN      host:1 path                    ▶ a file
 *   ◀ answer    what the reader says
 *
 * A text is its length (4) and its bytes.
 */
#ifndef MEMSCOPE_COLLECT_PROBES_PLACES_CELL_H
#define MEMSCOPE_COLLECT_PROBES_PLACES_CELL_H

#include "base/file_cell.h"
#include "base/put.h"
#include "collect/probes/alloc_image.h"

enum { PLACES_CPU_S = 10, PLACES_FILES_MAX = 16 };

/* The limits of a kind. */
#define PLACES_LIMITS .data_bytes = 1 << 30, .cpu_s = PLACES_CPU_S, .files = PLACES_FILES_MAX + 8

/* --- in the cell --- */

/*
 * Reads the file `im->fd` for what `question` asks; `im->open_debug` asks for debug files. Less than 0: there is no answer, and the cell
 * ends without one.
 */
typedef int (*places_read_fn)(const struct alloc_image *im, struct bytes question,
			      struct strbuf *answer);

/* The work of a kind. */
void places_cell_work(const struct cell_given *given, places_read_fn read);

/* --- who asks --- */

/*
 * Asks a new cell of `kind` about a file. 0 and an answer of `answer_max` bytes at most, which the caller checks; talk_fini() it in any
 * case. Who waits gathers nothing meanwhile: for 20 s at most, and less after files that were waited for in vain (struct cell_patience).
 * -ETIMEDOUT: it took too long; -EBADMSG: the cell ended early, or said what it may not; else as cell_open(). With a sentence.
 */
int places_cell_ask(const struct cell_kind *kind, const struct alloc_image *im,
		    const struct strbuf *question, size_t answer_max, struct talk *ret,
		    struct err *e);
/* What is said of an answer that does not hold together: -EBADMSG. */
int places_cell_lied(const struct alloc_image *im, struct err *e);
/* Bytes of the file, 0: it cannot be asked. No place is behind them. */
uint64_t places_file_bytes(const struct alloc_image *im);

/* A text as put_text() puts it, into `cap` bytes, ended. -EBADMSG: it is longer, or has a NUL in it. */
int places_take_text(struct bytes *b, char *buf, size_t cap);
/* A byte that is 0 or 1. */
int places_take_bool(struct bytes *b, bool *ret);

#endif
