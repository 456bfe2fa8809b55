/*
 * What memscope may do, and what for: capabilities (capabilities(7)), in one table. Root has all of them, a service those of its unit, a
 * user those of the program's file or of the session. What counts is what a process has, not whose it is.
 */
#ifndef MEMSCOPE_BASE_RIGHTS_H
#define MEMSCOPE_BASE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a process of memscope does, and so may: what it does not do it has no right for. */
enum rights_phase {
	RIGHTS_ALL = 0,
	RIGHTS_RECORD = 1 << 0, /* programs in the kernel, their samples, the processes that these are of */
	RIGHTS_WRITE = 1 << 1,  /* files of what was gathered: the children that write windows             */
	RIGHTS_FILES = 1 << 2,  /* commands for profiles already taken                                     */
};

struct right {
	const char *name;    /* "CAP_BPF"                                                     */
	int number;          /* of the kernel's headers                                       */
	uint32_t phases;     /* in which it is kept, of those who have it                     */
	bool needed;         /* a run does not begin without it                               */
	const char *without; /* what is lost then, as doctor says it; NULL: nothing worth it  */
};

/* Ends with a row without a name. */
extern const struct right rights[];

/* The effective ones of this thread, a bit each; 0 where /proc does not say. */
uint64_t rights_held(void);
/* CAP_SYS_ADMIN has CAP_BPF and CAP_PERFMON in it (since those were taken out of it, Linux 5.8). */
bool rights_have(uint64_t held, int number);
/* "CAP_BPF, CAP_PERFMON": those that are missing of the needed rows, or of the others. Returns how many. */
uint32_t rights_missing(uint64_t held, bool needed, char *ret_names, size_t size);
/*
 * Are they those of the host? Root of a user namespace has all capabilities, and none of them for the kernel's programs and counters.
 * true also where /proc does not say.
 */
bool rights_are_the_hosts(void);
/* Nothing that is needed is missing. */
bool rights_enough(void);
/*
 * The effective ones of this thread alone, of those that it may have: rights_held() and rights_set_held() of what that said lay some down
 * for a while. 0 or -errno.
 */
int rights_set_held(uint64_t held);
/* Of those that this thread has, `kept` stay, and all others go for good, also from programs that a user without root executes. 0 or -errno. */
int rights_keep(uint64_t kept);
/* The same for those of a phase: before other threads are made. */
int rights_enter(enum rights_phase phase);
/* All of this process, for good: of a child that reads what others wrote. 0 or -errno. */
int rights_drop(void);

#endif
