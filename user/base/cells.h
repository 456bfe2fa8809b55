/*
 * Cells (cell.h) for readers of foreign bytes, each made anew for one file: what a file breaks is the reading of that file.
 *
 * They are made by a process that was forked when memscope began, the maker. It has nothing in its memory that memscope gathered since,
 * and so has no cell; and forking it takes as long as its few pages do. It makes cells of the kinds that are in this program (CELL_KIND)
 * and nothing else; it ends cells that nobody wants any more, and says how each ended.
 *
 *   memscope ── a request, a channel, a control ──▶ maker ── fork ──▶ cell
 *      ▲                                              │ control: how it ended, what it took
 *      └────────────── channel: question, answer ─────┴──────────────▶ the cell's work()
 */
#ifndef MEMSCOPE_BASE_CELLS_H
#define MEMSCOPE_BASE_CELLS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

/* What the work of a cell is given, both open in it. */
struct cell_given {
	int channel; /* to who wants the answer: a stream socket */
	int statm;   /* /proc/self/statm, where its kind asks for it; else -1 */
};

/* A reader. Its work's return is the end of its cell. */
struct cell_kind {
	const char *name; /* for sentences: "symbols" */
	void (*work)(const struct cell_given *given);
	void (*prepare)(void); /* before its walls stand, and before it has anything of a file: loads libraries. NULL: nothing */
	uint64_t data_bytes, file_bytes; /* as in cell.h */
	uint32_t cpu_s, files;
	bool statm;
};

/* static const struct cell_kind NAME = { … }; CELL_KIND(NAME); makes it one that the maker knows. */
#define CELL_KIND(kind)                                                          \
	static const struct cell_kind *const kind##_row __attribute__((used, section("cell_kinds"))) = &(kind)

struct cell_link {
	int channel, control; /* -1: closed */
};

/* How a cell ended. */
struct cell_end {
	int32_t status; /* as waitpid(2) has it; -1: not known */
	int64_t cpu_ns; /* what it took                        */
};

/*
 * Makes the maker, once: early, as its memory is what each cell has. A process whose maker is gone, or that never made one, gets one with
 * its first cell. 0 or -errno.
 */
int cells_begin(void);
/* Ends it: for a process that waits for all its children. A cell that is wanted after that has another maker. */
void cells_end(void);
/* The socket to it, for children that close all others: they have cells of the same maker. -1: there is none. */
int cells_fd(void);

/* A new cell. Any thread may. -errno: no process, no descriptor. */
int cell_open(const struct cell_kind *kind, struct cell_link *ret);
/* Ends it now, whatever it does. */
void cell_kill(const struct cell_link *l);
/* Ends it. With `ret_end` it is waited for, ten seconds at most: one that cannot even be killed is left to the maker. */
void cell_close(struct cell_link *l, struct cell_end *ret_end);

static inline void cell_closep(struct cell_link *l)
{
	if (l->control >= 0)
		cell_close(l, NULL);
}

#endif
