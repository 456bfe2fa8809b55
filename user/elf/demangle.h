/*
 * C++ (Itanium ABI), Rust (legacy and v0) and D names as people write them, through libiberty; and
 * those of GHC, z-decoded; Go's without their calling convention. What was cloned or split off a
 * function says so behind its name.
 *
 * Names come from hostile files: long ones are left as they are, and a short one that expands
 * without end is cut off, so the time and memory of a call are bounded.
 */
#ifndef MEMSCOPE_ELF_DEMANGLE_H
#define MEMSCOPE_ELF_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DEMANGLE_IN_MAX = 4096,    /* bytes of a mangled name     */
	DEMANGLE_OUT_MAX = 8192,   /* bytes of a demangled name, with its NUL */
};

/*
 * Writes the demangled form of `name` (`len` bytes), NUL-terminated, with parameters, without
 * return type and without Rust's hash. False: not mangled, or beyond the bounds; `out` is then
 * undefined.
 */
bool demangle(const char *name, size_t len, char out[DEMANGLE_OUT_MAX]);

/* The part for GHC's names; only those with something to decode. */
bool demangle_ghc(const char *name, size_t len, char out[DEMANGLE_OUT_MAX]);

#endif
