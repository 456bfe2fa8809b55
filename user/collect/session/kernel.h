/*
 * What this kernel offers, found by asking it (never by its version): one row per feature that
 * memscope needs or can use, each with a probe. Feeds `memscope doctor`, and the sentences of a run
 * that cannot start.
 *
 * A probe changes nothing that outlives the call, and works without rights: what cannot be checked
 * without them is KERNEL_UNKNOWN.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_KERNEL_H
#define MEMSCOPE_COLLECT_SESSION_KERNEL_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum kernel_state {
	KERNEL_OK,
	KERNEL_LIMITED,  /* works, with less than it could be        */
	KERNEL_MISSING,  /* what needs it does not work here         */
	KERNEL_UNKNOWN,  /* could not be checked without more rights  */
};

/* What a run gathers; bits of kernel_check.needed_by. */
enum kernel_source {
	KERNEL_ONCPU = 1 << 0,
	KERNEL_OFFCPU = 1 << 1,
	KERNEL_ALLOC = 1 << 2,
	KERNEL_NAMES = 1 << 3,
	KERNEL_TREND = 1 << 4,
	KERNEL_GROWTH = 1 << 5,
};
#define KERNEL_BPF_SOURCES (KERNEL_ONCPU | KERNEL_OFFCPU | KERNEL_ALLOC | KERNEL_GROWTH)
#define KERNEL_N_SOURCES   6

struct kernel_finding {
	enum kernel_state state;
	char why[256];   /* what was found, one clause                      */
	char todo[256];  /* what to do about it; "": nothing */
};

struct kernel_check {
	const char *name;           /* stable: README and scripts name it                     */
	const char *use;            /* what memscope does with it                             */
	uint32_t needed_by;         /* sources that do not work where it is KERNEL_MISSING     */
	void (*probe)(struct kernel_finding *f); /* f arrives as KERNEL_OK with empty texts    */
};

extern const struct kernel_check kernel_checks[]; /* ends with a row without a name */

/* Name of a source by its number (0 … KERNEL_N_SOURCES - 1): "oncpu", "offcpu", "alloc",
 * "names", "trend", "growth". */
const char *kernel_source_name(uint32_t i);
const char *kernel_state_name(enum kernel_state s);  /* "ok", "limited", "missing", "unknown" */

/* Runs the probes of all rows, in order; `out` has room for kernel_n_checks(). */
uint32_t kernel_n_checks(void);
void kernel_probe_all(struct kernel_finding *out);

/*
 * Whether source `i` works, by the findings of all rows: KERNEL_MISSING as soon as a row it needs
 * is missing, else KERNEL_UNKNOWN, else KERNEL_LIMITED, else KERNEL_OK. *ret_row: the first row
 * that decided, or -1.
 */
enum kernel_state kernel_source_state(const struct kernel_finding *findings, uint32_t i,
				      int *ret_row);

#endif
