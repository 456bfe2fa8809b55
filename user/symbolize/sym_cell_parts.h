/*
 * Between sym_cell.c, which asks, and sym_cell_inside.c, the cell.
 *
 *   ▶ question  kind:4 flags:4 cpu_ns:8 ms_left:8 codes:4×2 path build_id n:4 vaddr:8×n; the image, or perf map and jitdump
 *   ◀ OPEN      host:1 path                     ▶ a file
 *   ◀ SERVER    build_id                        ▶ a file
 *   ◀ LINES     file:4 alt:4                    ▶ RAW    code:4 cut:4 status:4 cpu_ns:8, what the reader said
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
#include "symbolize/image_names.h"

#include <errno.h>
#include <string.h>

extern const struct cell_kind sym_cell;

enum { OPEN = CALL_OWN, SERVER, LINES, RAW };

enum {
	NO_DEMANGLE = 1,
	NO_LINES = 2,
	NO_DEBUG_FILES = 4,
	HAS_BUDGET = 8,
	WHICH_FILES = 16, /* the answer is which files have its names: ok:1 debug:4 alt:4 */
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
};

#define NO_FILE UINT32_MAX

static inline int take_text(struct bytes *b, struct bytes *ret)
{
	uint32_t len;

	if (bytes_u32(b, &len) < 0 || len > TEXT_MAX)
		return -EBADMSG;
	return bytes_take(b, len, ret);
}

#endif
