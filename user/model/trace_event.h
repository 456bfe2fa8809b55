/*
 * A system call in the log of calls: what is to be read of it, and what was.
 */
#ifndef MEMSCOPE_MODEL_TRACE_EVENT_H
#define MEMSCOPE_MODEL_TRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_READS 4
#define TRACE_ARGS  6
#define TRACE_LONG  1024 /* bytes kept of the first two reads … */
#define TRACE_SHORT 256  /* … and of the others                 */
#define TRACE_CALLS 512  /* numbers of calls that have a row    */

enum trace_how { /* as enum ms_trace_how */
		 TRACE_NONE,
		 TRACE_STRING,
		 TRACE_FIXED,
		 TRACE_BY_ARG,
		 TRACE_BY_RESULT,
		 TRACE_BY_WORD,
		 TRACE_STRINGS,
		 TRACE_VECTORS,
		 TRACE_MSG_VECTORS,
		 TRACE_MSG,
};

#define TRACE_IOVS 16

/* What TRACE_MSG reads, of which the last two parts may be missing: as struct ms_trace_msg. */
struct trace_msg {
	uint64_t name;
	uint32_t name_len, pad;
	uint64_t iov, n_iov, control, control_len;
	uint32_t flags, pad_flags;
	uint8_t name_bytes[128];
	uint8_t control_bytes[64];
};

/* What is read of a call: as struct ms_trace_call. */
struct trace_read {
	enum trace_how how;
	uint8_t arg, of;
	bool at_exit;
	uint16_t size, most;
};
struct trace_call {
	bool wanted, result_is_fd;
	uint8_t files[2]; /* 1 + the argument that is a descriptor; 0: none */
	struct trace_read reads[TRACE_READS];
};

struct trace_bytes {
	const char *s;
	uint32_t len;
	bool unread; /* was wanted, and could not be read */
};

struct trace_event {
	uint32_t pid, tid, nr;
	bool compat, returns;  /* exit and exit_group do not */
	uint64_t begin_ns, ns; /* CLOCK_MONOTONIC */
	int64_t ret;
	uint64_t args[TRACE_ARGS];
	struct trace_bytes read[TRACE_READS];
	const char *file[2], *result_file; /* "/etc/passwd", "TCP:[…]"; NULL: not known */
	uint64_t lost; /* calls that are missing up to here, since the run began */
	const struct event_key *stack; /* its user stack (collect/stream/event_key.h); NULL: none */
};

#endif
