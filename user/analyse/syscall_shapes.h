/*
 * What the arguments of system calls are: one row a call, by name, a word for each argument.
 *
 *   d u l x o off a number: of 32 bits, with a sign or without; of 64 bits; hexadecimal (0: NULL); a mode; hexadecimal (0: 0)
 *   fd at         a descriptor; a directory or AT_FDCWD. The first two of a call are named by their file
 *   path str      a string; `str` is bounded by -s
 *   in:K out      bytes: as many as argument K says; as many as the result says. Bounded by -s
 *   argv          an array of strings
 *   iov:K iovout:K  an array of K buffers: the first bytes of each; `iovout` is read at the exit
 *   msg msgout    a message: its address, buffers, control messages; `msgout` is read at the exit. Takes two and three of a call's reads
 *   len           the length of an address, before and after the call; takes two reads
 *   opt optin:K optout  an option of a socket, of the level in argument 1, and its value, K bytes
 *   request rarg  of ioctl: its request and what its argument points to
 *   sa:K saout:K  a socket address of K bytes; of as many as K points to
 *   stat fds ts tsout tv tvout poll:K ev sigset sigsetout action actionout rlim rlimout status cwd
 *                 what the name says, read at the entry, or (stat, fds, …out, status, cwd) at the exit
 *   sig proto     a signal; a protocol of the address family in argument 0
 *   NAME|         flags, by the table of that name (syscall_flags.h); NAME= is one of its values
 *
 * `result` is fd, x (an address), or empty: a number. `classes` has the words that -e trace=%WORD takes.
 */
#ifndef MEMSCOPE_ANALYSE_SYSCALL_SHAPES_H
#define MEMSCOPE_ANALYSE_SYSCALL_SHAPES_H

#include "analyse/syscall_flags.h"
#include "base/err.h"
#include "model/trace_event.h"

enum arg_kind {
	ARG_NONE,
	ARG_INT,
	ARG_UNSIGNED,
	ARG_LONG,
	ARG_HEX,
	ARG_OFFSET,
	ARG_MODE,
	ARG_FD,
	ARG_AT,
	ARG_PATH,
	ARG_STRING,
	ARG_IN,
	ARG_OUT,
	ARG_ARGV,
	ARG_IOV,
	ARG_IOV_OUT,
	ARG_ADDRESS,
	ARG_ADDRESS_OUT,
	ARG_STAT,
	ARG_FDS,
	ARG_TIME,
	ARG_TIME_OUT,
	ARG_MICRO,
	ARG_MICRO_OUT,
	ARG_POLL,
	ARG_EVENT,
	ARG_SIGSET,
	ARG_SIGSET_OUT,
	ARG_ACTION,
	ARG_ACTION_OUT,
	ARG_MSG,
	ARG_MSG_OUT,
	ARG_LENGTH,
	ARG_OPTION,
	ARG_OPTION_IN,
	ARG_OPTION_OUT,
	ARG_REQUEST,
	ARG_REQUEST_ARG,
	ARG_LIMIT,
	ARG_LIMIT_OUT,
	ARG_STATUS,
	ARG_CWD,
	ARG_PROTOCOL,
	ARG_SIGNAL,
	ARG_FLAGS,
	ARG_VALUE,
	N_ARG_KINDS
};

struct call_arg {
	enum arg_kind kind;
	uint8_t of;    /* the argument with its length   */
	int8_t read;   /* of trace_event.read; -1: none  */
	int8_t file;   /* of trace_event.file; -1: none  */
	uint16_t most; /* bytes kept of a buffer       */
	const struct flag_set *flags;
};

enum call_result { RESULT_NUMBER, RESULT_FD, RESULT_ADDRESS };

struct call_shape {
	uint8_t n; /* arguments; of a call that is not in the table 6 */
	bool known;
	enum call_result result;
	struct call_arg args[TRACE_ARGS];
};

/* Of call number `nr` of this architecture. `ret_call`: what has to be read for it, buffers up to `most` bytes; or NULL. */
void call_shape_of(uint32_t nr, uint32_t most, struct call_shape *ret_shape,
		   struct trace_call *ret_call);

/*
 * "openat,close", "%file,%network", "!read", with "trace=" before it or not: which numbers are meant (`wanted` has TRACE_CALLS
 * of them). -EINVAL with a sentence.
 */
int calls_choose(const char *text, bool *wanted, struct err *e);
/* Does any of the table's rows not parse, or need more than can be read? For tests: its name; NULL: all are good. */
const char *call_shapes_check(void);

#endif
