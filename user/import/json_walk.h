/*
 * A JSON document as a stream: each value with its path from the root. Memory holds one piece of the file and
 * the path, whatever the size. (yajl; cJSON, which has whole documents in memory, took 1.9 GB
 * for 105 MB of speedscope's numbers, a reader above yajl 0.1 GB for its distinct stacks.)
 */
#ifndef MEMSCOPE_IMPORT_JSON_WALK_H
#define MEMSCOPE_IMPORT_JSON_WALK_H

#include "base/err.h"
#include "base/input.h"

enum { JSON_DEPTH = 64, JSON_KEY = 48 };

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_BEGIN, JSON_END };

/* One step of the way: a key of an object (its first JSON_KEY - 1 bytes), or the place in an array. */
struct json_step {
	char key[JSON_KEY];
	uint64_t index;
	bool in_array;
};

struct json_value {
	enum json_type type;      /* BEGIN and END: of an object or array, which its elements come between */
	bool truth;
	struct bytes text;        /* of strings, and of numbers as they are written */
	const struct json_step *way;
	uint32_t depth;           /* steps of the way; 0: the document itself */
};

/* `fn` returns 0 to go on. */
typedef int (*json_fn)(void *ctx, const struct json_value *v);

/*
 * 0, what `fn` returned, -ENOMEM, or -EBADMSG with `ret_what` as "no JSON at byte 17" or what is wrong with the input; what came
 * before was passed on.
 */
int json_walk(struct input *in, json_fn fn, void *ctx, char *ret_what, size_t cap);

/* Step `i` of the way: of that key; an element of an array. */
bool json_is(const struct json_value *v, uint32_t i, const char *key);
bool json_in_array(const struct json_value *v, uint32_t i);

/* Copies a string, cut to fit into `cap` bytes with its NUL; leaves `to` alone for other values. */
void json_copy_text(char *to, size_t cap, const struct json_value *v);

/*
 * A number in units of 1/scale, rounded: exact where it is written as an integer and fits. False: it is no number, or out of
 * range.
 */
bool json_integer(const struct json_value *v, int64_t scale, int64_t *ret);

/* Does a document that begins like this have an object as its root? */
bool json_is_object(struct bytes head);

#endif
