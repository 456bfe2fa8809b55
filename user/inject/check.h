/*
 * What is known of a process before anything in it is touched.
 */
#ifndef MEMSCOPE_INJECT_CHECK_H
#define MEMSCOPE_INJECT_CHECK_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Addresses in the process, of its C library; and of memory that nobody uses. */
struct inject_place {
	uint64_t mmap, munmap, mprotect, pthread_create, pthread_detach, dlopen, dlsym, dlerror;
	uint64_t restore; /* code that makes the system call rt_sigreturn */
	uint64_t room;
	uint64_t
		agent; /* of the library, which came by a memfd before and is idle; 0: it is not there  */
	bool memfd; /* the library is to come by one: the process does not see its file            */
	uint32_t
		memfds; /* that other builds of the library came by                                   */
};

/* `room_bytes` is to be free at ->room. 0, or -errno and why not; -EAGAIN: another
 * memscope is at work there. `held`: it is stopped, and traced by us. */
int inject_look(pid_t pid, const char *library, uint64_t room_bytes, bool held,
		struct inject_place *ret_place, struct err *e);

#endif
