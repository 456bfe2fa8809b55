/*
 * One thread of a running process made to call a function, and put back as it was.
 *
 * The way back is prepared before the way there: a signal frame with the thread's whole state is
 * written to unused memory, and the function returns into the rt_sigreturn that restores it. So
 * from the one system call that sets the thread's registers on, it returns by itself even if
 * memscope is killed at any moment. While memscope lives, it sees the thread arrive there and
 * restores its registers in the kernel's own terms: an interrupted system call is then restarted,
 * or ended by a signal that has arrived meanwhile, as it would have been.
 *
 * Signals to the thread wait while it is away; those for the process go to other threads. Nothing
 * is written into code or into memory that the process uses, except below the red zone of that
 * thread's stack, as for a signal.
 *
 * x86-64 only. Which thread may be asked is safe.h's business.
 */
#ifndef MEMSCOPE_INJECT_REMOTE_H
#define MEMSCOPE_INJECT_REMOTE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define REMOTE_XSTATE_MAX 16384

/* A thread that is stopped between two of its own instructions, mostly at a system call. */
struct remote {
	pid_t pid, tid;
	int mem_fd;                   /* /proc/PID/mem, borrowed                       */
	struct user_regs_struct regs; /* as it is to go on, in the kernel's terms …     */
	struct user_regs_struct back; /* … and as code would have it: what is restored
	                                 when memscope is gone                         */
	uint64_t number;              /* of the system call that it is in              */
	uint64_t mask;                /* of signals                                    */
	uint64_t xstate_bytes;
	uint8_t xstate[REMOTE_XSTATE_MAX] __attribute__((aligned(64)));
	bool traced, entering;
	bool running;  /* in no system call: between any two instructions */
	bool held;     /* was stopped before, and stays so                */
	bool filtered; /* by seccomp: no system call is left out in it    */
	int signal;    /* to be delivered when it goes on               */
	int64_t result; /* of remote_syscall()                          */
	pid_t child;    /* that it made, under our ptrace too; 0: none  */
};

/*
 * Stops a thread in the system call that it is blocked in, or in its next one within `patience_us`; with
 * `anywhere`, where it is, unless that is a restartable sequence (rseq(2)), which would not be begun anew.
 * -EAGAIN: none that can be left and resumed; the thread runs on. -ESRCH: it has ended. -errno with
 * a sentence.
 */
int remote_stop(pid_t pid, pid_t tid, int mem_fd, uint32_t patience_us, bool anywhere,
		struct remote *ret_thread, struct err *e);

/* The thread of a process that is stopped under our ptrace in no system call: it stays that. */
int remote_take(pid_t pid, int mem_fd, struct remote *ret_thread, struct err *e);

/*
 * Has it call function(args). `stack`: above the memory for the call, 0 for the thread's own stack;
 * `restore`: an address of code that makes the system call rt_sigreturn. There is no result: check
 * the call's effects. -ETIMEDOUT: it did not return within `patience_us`, and was put back as it
 * was.
 */
int remote_call(struct remote *t, uint64_t function, const uint64_t args[6], uint64_t stack,
		uint64_t restore, uint32_t patience_us, struct err *e);

/*
 * The same of code that was put at [code, code + bytes), from `entry` on, which writes a word that is not 0
 * at `told` when it is done, and waits there for a while before it returns.
 */
int remote_call_told(struct remote *t, uint64_t code, uint64_t bytes, uint64_t entry,
		     const uint64_t args[6], uint64_t stack, uint64_t restore, uint64_t told,
		     uint32_t patience_us, struct err *e);

/*
 * A thread that the caller has stopped by PTRACE_INTERRUPT; it stays the caller's, who restores nothing and lets it go.
 * -EAGAIN: it is at no place that can be left and resumed.
 */
int remote_adopt(pid_t pid, pid_t tid, int mem_fd, struct remote *ret_thread);

/*
 * Has it make a system call: `insn` is an address of code that is that instruction and a return. t->result has what
 * it returned; the rest is as of remote_call(). A child that it made is stopped before its first instruction (ptrace(2),
 * PTRACE_O_TRACECLONE).
 */
int remote_syscall(struct remote *t, uint64_t insn, uint64_t number, const uint64_t args[6],
		   uint64_t stack, uint64_t restore, uint32_t patience_us, struct err *e);

/*
 * A stack for a child that clone(2) makes without sharing memory: if it ever runs, it ends by itself at once. The next
 * call's own frame goes below it (`stack`).
 */
int remote_ready_twin(struct remote *t, uint64_t insn, uint64_t restore, uint64_t *ret_stack,
		      struct err *e);

/* Lets it go on, if it was not held before. */
void remote_release(struct remote *t);

#endif
