/*
 * Recorded stacks as cases of tests/replay/: registers, the words of the stack that a walk reads, the
 * rules that it follows, and the frames on which both unwinders agree.
 */
#ifndef MEMSCOPE_TESTS_UNWIND_CASE_H
#define MEMSCOPE_TESTS_UNWIND_CASE_H

#include "world.h"

/* What a case may be wanted for. */
enum case_shape {
	CASE_RSP,       /* CFA = rsp + off, in every frame                       */
	CASE_RBP,       /* CFA = rbp + off somewhere                             */
	CASE_OTHER,     /* CFA by another register                               */
	CASE_DEREF,     /* CFA = *(reg + off) + off2                             */
	CASE_REALIGNED, /* registers saved relative to another one than the CFA  */
	CASE_PLT,       /* the leaf is in a PLT stub, before its push …          */
	CASE_PLT_PUSHED,  /* … and after it                                      */
	CASE_SIGNAL,    /* a signal's frame                                      */
	CASE_RA_REG,    /* the return address is in a register                   */
	CASE_GAP,       /* code without CFI                                      */
	CASE_BELOW,     /* a saved register is wanted from below sp              */
	CASE_VDSO,      /* the leaf is in the vDSO                               */
	N_CASE_SHAPES,
};
/* N_CASE_SHAPES: no such name. */
enum case_shape case_shape_find(const char *name);

/*
 * Walks the sample once more and writes the case to `path` if it is of that shape. 1: written; 0: it
 * is of another; -errno.
 */
int case_write(const char *path, enum case_shape shape, struct world *w, const struct process *p,
	       const struct sample *s, const struct ms_space *space, struct err *e);

#endif
