/*
 * Files that may have a language's runtime in them are others' bytes: what they say of it is read in a cell (base/cells.h), made anew for
 * one file.
 *
 *   ▶ question  none (base/file_cell.h)
 *   ◀ answer    code:4 is_go:1, and with code 0 the image as this program has it in memory; else a sentence, which may be empty
 *
 * Vaddrs and offsets in an image are the file's own word, in a cell or not: they say where the memory of a process is read, which whoever
 * reads it checks. What the program itself relies on is checked here: counts, lengths, enums, bools, and no pointer comes from a cell.
 */
#ifndef MEMSCOPE_LANG_IMAGE_CELL_H
#define MEMSCOPE_LANG_IMAGE_CELL_H

#include "base/bytes.h"
#include "lang/lang.h"

/*
 * lang_image_read() by a cell, of an open file; `name` is for sentences. `ret_is_go` (may be NULL): was it built by Go? Known with -ENOENT,
 * too. Who waits gathers nothing meanwhile: for 8 s at most, and less after files that were waited for in vain (struct cell_patience).
 * -ETIMEDOUT: it took too long; -EBADMSG: the cell ended early, or said what it may not; else as cell_open().
 */
int lang_image_ask(int fd, const char *name, struct lang_image **ret_image, bool *ret_is_go, struct err *e);

/* An answer: as lang_image_ask(). -EBADMSG without a sentence: it is none. */
int lang_image_take(struct bytes answer, const char *name, struct lang_image **ret_image, bool *ret_is_go, struct err *e);

#endif
