/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract of the log of system calls (trace.bpf.c) with user space: what is read of a call, and its record.
 *
 * What is read is data, not code: user space has a row for each call (struct ms_trace_call), which says where its arguments
 * point and how much of that is wanted.
 */
#ifndef MEMSCOPE_TRACE_ABI_H
#define MEMSCOPE_TRACE_ABI_H

#include "abi.h"

#define MS_TRACE_CALLS 512 /* numbers of calls; larger ones are logged without what they point to */
#define MS_TRACE_ARGS  6
#define MS_TRACE_READS 4
#define MS_TRACE_LONG  1024 /* bytes kept of the first two reads … */
#define MS_TRACE_SHORT 256  /* … and of the others                 */
#define MS_TRACE_DATA  (2 * MS_TRACE_LONG + 2 * MS_TRACE_SHORT)
#define MS_TRACE_FILES 3  /* two arguments and the result         */
#define MS_TRACE_DEPTH 20 /* components of a path                  */
#define MS_TRACE_PATH  1024
#define MS_TRACE_NAME  256

/* How many bytes. */
enum ms_trace_how {
	MS_TRACE_NONE,
	MS_TRACE_STRING,    /* up to its NUL                                        */
	MS_TRACE_FIXED,     /* `size`                                               */
	MS_TRACE_BY_ARG,    /* `size` times argument `of`                           */
	MS_TRACE_BY_RESULT, /* `size` times the result                              */
	MS_TRACE_BY_WORD,   /* as many as the 32-bit word says to which `of` points */
	MS_TRACE_STRINGS, /* what an array of pointers that ends with NULL points to, behind each other */
	MS_TRACE_VECTORS, /* argument `of` struct iovec and what they point to, see below; into the first slot */
	MS_TRACE_MSG_VECTORS, /* those of a struct msghdr */
	MS_TRACE_MSG, /* struct ms_trace_msg, as far as there is something in it; into the second slot */
};

/*
 * Vectors in a slot: up to MS_TRACE_IOVS struct iovec, then the first bytes of each, `most` at most, without gaps; of what a call
 * has written as many bytes as its result says. Where the slot ends early, what follows could not be read or found no room.
 */
#define MS_TRACE_IOVS 16

/* A struct msghdr of 64-bit programs. */
struct ms_trace_msg {
	__u64 name;
	__u32 name_len, pad;
	__u64 iov, n_iov, control, control_len;
	__u32 flags, pad_flags;
	__u8 name_bytes[128];
	__u8 control_bytes[64];
};

struct ms_trace_read {
	__u8 how, arg, of, at_exit;
	__u16 size, most;
};

struct ms_trace_call {
	__u8 wanted;
	__u8 files[2]; /* 1 + the argument that is a descriptor; 0: none */
	__u8 result_is_fd;
	__u32 pad;
	struct ms_trace_read reads[MS_TRACE_READS];
};

#define MS_TRACE_UNREAD 0xffff /* of a length: it could not be read */

/* What a thread is in. In `trace_now`, and at the head of a record. */
struct ms_trace_head {
	__u32 kind, flags;
	__u64 begin_ns; /* CLOCK_MONOTONIC; 0: in no call that is logged */
	__u64 ns;
	__s64 ret;
	__u64 args[MS_TRACE_ARGS];
	struct ms_proc proc;
	__u32 tid, nr;
	__u64 files[MS_TRACE_FILES]; /* of struct ms_trace_file_rec; 0: none */
	__u64 lost;                  /* calls that found no room in the ring, up to now */
	__u16 len[MS_TRACE_READS];
};
_Static_assert(sizeof(struct ms_trace_head) % 8 == 0, "packed");

#define MS_TRACE_NO_RETURN 1 /* exit, exit_group */
#define MS_TRACE_PARTLY    2 /* of the vectors some could not be read at the entry */
#define MS_TRACE_STACK     4 /* a struct ms_trace_stack stands at the end of the record, unaligned */

/* The user stack of a call: its record comes in the ring of stacks. */
struct ms_trace_stack {
	struct ms_hash user; /* empty: there is none */
	__u32 as_gen, pad;
};

struct ms_trace_now {
	struct ms_trace_head head;
	char data
		[MS_TRACE_DATA]; /* slot 0, 1: MS_TRACE_LONG each; 2, 3: MS_TRACE_SHORT; in records without gaps */
	struct ms_trace_stack stack;
};

enum ms_trace_kind { MS_TRACE_CALL = 1, MS_TRACE_FILE };

/* A file, before the first call that names it. The path's components, the last one first, each with a NUL. */
struct ms_trace_file_rec {
	__u32 kind, len;
	__u64 id, ino;
	__u32 magic, mode; /* of the file system; of the inode */
	__u16 family, protocol, local_port,
		remote_port; /* of a socket; remote_port in network order */
	__u8 local[16], remote[16];
	__u64 deleted;
	char path[2 * MS_TRACE_PATH]; /* MS_TRACE_PATH and a name at most */
};

#endif
