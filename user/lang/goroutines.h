/*
 * Goroutines of a Go program, read in its memory while it runs: runtime.allgs, and of each one its state, why it waits
 * and its stack. The kernel sees none of this: a goroutine that waits has no thread.
 *
 *   program  a file: which version, what its code refers to, where frames end (Go's own table, which stripped files have)
 *   process  the same in one process: where runtime.allgs is, and the runtime's words for reasons to wait. Both are
 *            found by what they contain, so that no symbol is needed and a layout that does not fit is refused:
 *            allgs[0] is goroutine 1, which began in runtime.main
 *   look     goroutines at one moment; of many a part, each with the same probability
 *
 * Sources: runtime/runtime2.go (g, gobuf, waitReasonStrings), runtime/proc.go (allgs, casgstatus), runtime/netpoll.go
 * (pollDesc), runtime/traceback.go. Go 1.18 to 1.26, x86-64.
 */
#ifndef MEMSCOPE_LANG_GOROUTINES_H
#define MEMSCOPE_LANG_GOROUTINES_H

#include "base/cleanup.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "elf/gopclntab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of a process, several pieces at a time; `there` says which could be read. */
struct go_piece {
	uint64_t addr;
	void *to;
	uint32_t len;
	bool there;
};

struct go_memory {
	void (*read)(void *ctx, struct go_piece *pieces, uint32_t n);
	void *ctx;
};

/* What the end of a frame is known by. */
enum go_frame_kind {
	GO_FRAME_PLAIN,
	GO_FRAME_TOP,      /* nothing has called it */
	GO_FRAME_INJECTED, /* its return address is where its caller was interrupted */
	GO_FRAME_NONE,     /* no code of Go's */
};

struct go_place {
	uint64_t vaddr;  /* 0: free */
	int32_t delta;   /* sp to the return address */
	uint8_t kind;
	bool runtime;    /* a function of the runtime … */
	bool main;       /* … the one that runs the program's main() */
	bool entry;      /* the address is where it begins */
};

/* The program's table of functions (go_cell.h), asked for what is not known yet. false: it cannot be had. */
struct go_tables {
	bool (*find)(void *ctx, uint64_t vaddr, struct go_place *ret_place);
	void *ctx;
};

struct go_program;

/*
 * -ENOENT: no Go program (no sentence is set); -EOPNOTSUPP: of a version or machine whose goroutines are not read, with a
 * sentence; -EBADMSG: it lacks what every Go program has.
 */
int go_program_read(struct elf_file *elf, const struct gopclntab *tab, struct go_program **ret_program, struct err *e);
void go_program_free(struct go_program *p);
DEFINE_CLEANUP(struct go_program *, go_program_freep, go_program_free)

uint32_t go_program_version(const struct go_program *p); /* 0x011308: 1.19.8 */
bool go_program_untested(const struct go_program *p);

enum { GO_REASONS_MAX = 64, GO_REASON_BYTES = 40, GO_FRAMES_MAX = 1024 };

struct go_process {
	struct go_program *program; /* borrowed */
	uint64_t bias, allgs;
	char reasons[GO_REASONS_MAX][GO_REASON_BYTES]; /* by number; "" where the runtime has no word */
	uint32_t n_reasons;
};

/* -EAGAIN: its runtime has not begun yet; -EOPNOTSUPP: its memory is not as this version has it, with a sentence. */
int go_process_find(struct go_program *p, uint64_t bias, const struct go_memory *mem, struct go_process *ret_process,
		    struct err *e);

/* How many places for goroutines its table has. false: it is not there any more. */
bool go_process_size(const struct go_process *p, const struct go_memory *mem, uint64_t *ret_n);

/* As _Gidle … in runtime2.go; what is not here is one of the few others. */
enum goroutine_state {
	GOROUTINE_RUNNABLE = 1,
	GOROUTINE_RUNNING = 2,
	GOROUTINE_SYSCALL = 3,
	GOROUTINE_WAITING = 4,
	GOROUTINE_DEAD = 6,
	GOROUTINE_PREEMPTED = 9,
};

struct goroutine {
	uint64_t id;
	uint8_t state, reason; /* the number of its reason, below n_reasons      */
	uint8_t seq;           /* grows by 1, modulo 256, each time it stops running … */
	bool has_seq;          /* … where the version counts that                */
	bool system;           /* of the runtime itself: runtime.main is none     */
	bool whole;            /* its stack is known to where it began             */
	int64_t since_ns;      /* CLOCK_MONOTONIC: it waits at least since then, by the collector; 0: no word of it */
	/* For the network: what may be its descriptor, the likelier first; -1: not known. */
	int32_t fds[2];
	uint32_t n;            /* 0: it has none that can be read: it runs, or ran on meanwhile */
	uint64_t pcs[GO_FRAMES_MAX]; /* leaf first, return addresses moved back into the call */
};

struct goroutines_stats {
	uint32_t looked, dead;      /* all of that part; free for new ones             */
	uint32_t moved, unreadable; /* ran on while they were read; cannot be read, or not even their first address be found in the program's table */
};

struct go_look;

/* Room for looks at any program. NULL: out of memory. */
struct go_look *go_look_new(void);
void go_look_free(struct go_look *l);
DEFINE_CLEANUP(struct go_look *, go_look_freep, go_look_free)

typedef void (*goroutine_fn)(void *ctx, const struct goroutine *g);

/*
 * Each goroutine of a part of them, one in 2^log2_part, which `seed` chooses: with the same one it is the same part, and
 * that of a larger log2_part is in it. -EIO: the table cannot be read.
 */
int go_look(struct go_look *l, const struct go_process *p, const struct go_memory *mem, const struct go_tables *tables,
	    uint32_t log2_part, uint64_t seed, goroutine_fn fn, void *ctx, struct goroutines_stats *ret_stats);

#endif
