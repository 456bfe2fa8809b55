/*
 * The protocol of memscope and the injected library (inject/inject.h).
 *
 * memscope writes one block into memory that it had the process map, and has a thread started there
 * whose function is memscope_alloc_agent(block). That thread makes two pipes in a table of
 * descriptors that no other thread has, writes their numbers to the block, and waits: memscope
 * opens their other ends in /proc. A command is one byte, an answer one struct.
 *
 * Where the process does not see the library's file, the thread makes a memfd first, which memscope
 * fills through /proc, and loads that. A library that came like this stays, and is used again.
 *
 * When the pipe of commands closes, memscope has ended, however that happened: everything is undone
 * as with AGENT_LEAVE.
 */
#ifndef MEMSCOPE_PRELOAD_AGENT_H
#define MEMSCOPE_PRELOAD_AGENT_H

#include <stdint.h>

#define AGENT_FUNCTION "memscope_alloc_agent"

enum agent_state {
	AGENT_NONE,
	AGENT_READY,      /* tid and descriptors are there                  */
	AGENT_NOT_LOADED, /* dlopen or dlsym failed: `path` says why        */
	AGENT_PRELOADED,  /* the library is in front of the allocator already */
	AGENT_BUSY,       /* another memscope has its thread there          */
	AGENT_FAILED,     /* no pipes, no memory                            */
	AGENT_EMPTY,      /* the memfd at library_fd waits for the library  */
};

struct agent_block {
	/* Of the C library, for the code that loads ours. */
	uint64_t dlopen, dlsym, dlerror, detach;
	uint64_t created;  /* what pthread_create returned, plus 1; 0: it has not yet */
	uint64_t thread;   /* pthread_t                                       */
	uint64_t bytes;    /* of this memory, which begins with the block     */
	uint64_t rate;     /* mean bytes between samples                      */
	uint32_t state;    /* enum agent_state                                */
	int32_t tid;       /* in the process's own namespace                  */
	int32_t command_fd, answer_fd;
	char function[32];
	char path[3840];   /* of the library                                  */
	uint32_t exact;    /* every call is to be recorded (exact_area.h) … */
	int32_t area_fd;   /* … there: a memfd of the thread's              */
	uint64_t agent;    /* memscope_alloc_agent(), of a library that is there; 0: load it */
	uint64_t munmap;
	uint32_t memfd;    /* 1: the library comes through one, which `path` names when … */
	int32_t library_fd;
	uint32_t filled;   /* … this is set                                  */
	char memfd_name[24];
};

enum agent_command {
	AGENT_STAY = 's',  /* memscope has the other ends: from now on their closing is heeded */
	AGENT_EXACT = 'x', /* the memfd is as large as it shall be, and filled: map it; `places`: errno */
	AGENT_HOOK = 'h',  /* exchange what is not yet; again for libraries that were loaded since */
	AGENT_LEAVE = 'l', /* put all back, unmap the block, end the thread   */
};

struct agent_answer {
	uint32_t places;   /* exchanged, or put back                          */
	uint32_t left;     /* that could not be                               */
	uint32_t loading;  /* libraries that were just being loaded           */
	uint32_t python;   /* enum python_state (python.h)                     */
	double rate;       /* in force                                        */
};

#endif
