/*
 * Hand-written assembly without CFI, of the plainest kind: code that never touches the stack, as HotSpot's
 * and GMP's loops over memory. Its return address is where sp points, all through, and its caller's
 * registers are in place.
 */
#ifndef MEMSCOPE_UNWIND_LEAF_CODE_H
#define MEMSCOPE_UNWIND_LEAF_CODE_H

#include "unwind/code.h"

/*
 * Whether that is so for all instructions of [start, end), which no CFI covers: none but `ret` names sp, or
 * moves it, and none writes a register that functions hand back (rbx, rbp, r12 … r15). Code that cannot be
 * decoded, more than LEAF_CODE_MAX bytes, and code without a return are not. x86-64 only, and only where
 * memscope runs on it: false elsewhere.
 */
enum { LEAF_CODE_MAX = 16 << 10 };
bool leaf_code(struct code *code, uint64_t start, uint64_t end);

#endif
