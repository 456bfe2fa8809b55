/*
 * How the stacks of a piece of code are walked: one row for each kind, and how to choose among them.
 *
 * A file that can be read gets a table; unwind/rows.h fills in what its own CFI leaves open.
 * Code without a file (a JIT's, a stub's) has none. Where its runtime is known to keep frame
 * pointers in it, following them is proof; else it is a guess, and stacks through it say so.
 *
 * A runtime is known by what its process maps and by its command line, which the process chose
 * itself: a false one spoils its own stacks and nobody else's.
 */
#ifndef MEMSCOPE_UNWIND_WALKERS_H
#define MEMSCOPE_UNWIND_WALKERS_H

#include "abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum runtime {
	RUNTIME_NONE,       /* nothing is known of its generated code              */
	RUNTIME_V8,
	RUNTIME_JVM,
	RUNTIME_JVM_FP,     /* -XX:+PreserveFramePointer                           */
	RUNTIME_DOTNET,
	RUNTIME_LUAJIT,
	RUNTIME_PHP,
	RUNTIME_RUBY,
	RUNTIME_RUBY_FP,    /* --yjit-perf                                         */
	RUNTIME_BEAM,
	RUNTIME_BEAM_FP,    /* +JPperf true, fp                                    */
	RUNTIME_JULIA,
	N_RUNTIMES,
};

struct runtime_row {
	enum runtime runtime;
	const char *name;     /* for people                                            */
	const char *file;     /* what its process maps: a file name that begins so     */
	const char *args;     /* a word of the command line that it needs, or NULL     */
	const char *args2;    /* the word after it, or NULL: any                       */
	bool keeps_fp;        /* in generated code                                     */
	const char *why;      /* the source of that                                    */
};
/* In the order in which they are tried; ends with a row without a name. */
extern const struct runtime_row runtime_rows[];

/*
 * Which runtime a process is. `map_path(ctx, i)` is the path of its i-th mapped file, NULL at the
 * end; `cmdline`: its words, each ended by a NUL, `len` bytes.
 */
const struct runtime_row *runtime_find(const char *(*map_path)(void *ctx, uint32_t i), void *ctx,
				       const char *cmdline, size_t len);

/* What a mapping is, as far as it matters here. */
enum code_kind {
	CODE_ELF,         /* a file that has a table                                  */
	CODE_NO_ROWS,     /* a file that has none: damaged, of another machine        */
	CODE_UNREADABLE,  /* a file that cannot be opened any more                    */
	CODE_NOT_ELF,     /* a file that is no program: a JIT's memory file           */
	CODE_VDSO,
	CODE_ANON,        /* memory without a file                                    */
	CODE_KERNELS,     /* walker_is_kernels()                                      */
	N_CODE_KINDS,
};

struct walker {
	enum code_kind code;
	bool needs_fp;             /* only where the runtime keeps frame pointers     */
	enum ms_span_kind span;
	const char *why;           /* for people: why its stacks are as good as that  */
};

/* How code of that kind is walked in a process of that runtime (NULL: none known). */
const struct walker *walker_choose(enum code_kind code, const struct runtime_row *runtime);

/* Pages that the kernel puts into processes, by their name in /proc/PID/maps: [vsyscall], [uprobes].
 * The vDSO is not one of them. */
bool walker_is_kernels(const char *path);

#endif
