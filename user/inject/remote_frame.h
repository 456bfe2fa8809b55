/*
 * Inside inject/: the frame of a signal's handler (arch/x86: struct rt_sigframe), written below a thread's stack. Who
 * returns into rt_sigreturn with the stack pointer at its beginning gets the state that it has.
 */
#ifndef MEMSCOPE_INJECT_REMOTE_FRAME_H
#define MEMSCOPE_INJECT_REMOTE_FRAME_H

#include "inject/remote.h"

#define REMOTE_RED_ZONE 128

/*
 * Writes one that restores `regs`, with the thread's own vector registers (t->xstate) and signal mask, below `stack`; where it
 * begins is the stack pointer at a function's entry, whose return goes to `restore`. -EFAULT: there is no room.
 */
int remote_frame_put(struct remote *t, const struct user_regs_struct *regs, uint64_t stack,
		     uint64_t restore, uint64_t *ret_sp);

#endif
