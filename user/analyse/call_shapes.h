/*
 * Which functions allocate, by what they are called with and what they return.
 *
 * A function allocates in a certain way (a shape) if a thousand of its results in a row are beginnings of
 * blocks in use, each of the size that the allocator would have for the size asked for, and none is another;
 * and if that is so of one shape only. What cannot be judged, because there is no result or no size was asked for,
 * neither counts nor ends the row.
 *
 * Calls are put together here from what is seen of a thread: the entry of a function, with its stack pointer
 * and return address, and the instruction behind the call. A function that is entered inside others which
 * allocate is a part of them.
 */
#ifndef MEMSCOPE_ANALYSE_CALL_SHAPES_H
#define MEMSCOPE_ANALYSE_CALL_SHAPES_H

#include <stdbool.h>
#include <stdint.h>

enum call_shape {
	CALL_SIZE,       /* malloc(size), mallocx(size, flags)  */
	CALL_COUNT_SIZE, /* calloc(n, size)                     */
	CALL_ALIGN_SIZE, /* aligned_alloc(align, size)          */
	CALL_REALLOC,    /* realloc(block, size)                */
	N_CALL_SHAPES,
};

/* "malloc" */
const char *call_shape_name(enum call_shape shape);

enum { CALL_RESULTS_ENOUGH = 1000, CALL_FUNCTIONS_MAX = 1024 };

/* What the allocator said of an address at that moment. */
enum call_block_answer { CALL_BLOCK_NONE, CALL_BLOCK_IN_USE, CALL_BLOCK_UNKNOWN };
struct call_block {
	enum call_block_answer answer;
	uint64_t start, size; /* CALL_BLOCK_IN_USE */
};

/* The size of the blocks that a request for `size` bytes gets; 0: none has it. */
typedef uint64_t (*call_room_fn)(uint64_t size);

enum call_state {
	CALL_OPEN,      /* not known yet                                          */
	CALL_ALLOCATES, /* in the way of `shape`                                  */
	CALL_DOES_NOT,
	CALL_PART,      /* it would, but as a part of another one that allocates  */
};

struct call_verdict {
	enum call_state state;
	enum call_shape shape;
	uint64_t entries;    /* seen                                          */
	uint64_t results;    /* that could be judged                          */
	uint64_t unjudged;
	uint64_t agreed;     /* of the results: to `shape`, in a row, at least CALL_RESULTS_ENOUGH */
	bool promising;      /* CALL_OPEN: all results so far agree to a shape */
};

struct call_judge;

/* `n` functions, CALL_FUNCTIONS_MAX at most. NULL: out of memory. */
struct call_judge *call_judge_new(uint32_t n, call_room_fn room);
void call_judge_free(struct call_judge *j);

/* A function was entered. */
struct call_entry {
	uint32_t function, tid;
	uint64_t sp, ra, arg[2];
	struct call_block block; /* around arg[0] */
	bool seen; /* so will be the instruction behind the call, if it gets there */
};
void call_judge_entry(struct call_judge *j, const struct call_entry *entry);
/* A thread is at the instruction behind a call, with `sp` as it is there. */
struct call_back {
	uint32_t tid;
	uint64_t sp, pc, ret;
	struct call_block block; /* around ret */
};
void call_judge_back(struct call_judge *j, const struct call_back *back);
/* Threads were not watched for a while: what they were in is not known any more. */
void call_judge_break(struct call_judge *j);

struct call_verdict call_judge_of(const struct call_judge *j, uint32_t function);

#endif
