/*
 * CPython's objects, as far as names need them: strings, dicts, types. By their layouts in 3.8 to 3.14 (Include/cpython/
 * unicodeobject.h, Objects/dictobject.c, Include/internal/pycore_dict.h), which are distinguished by what is there: a dict's keys
 * begin with a function's address where 3.11 and later have a small number, a string's text ends where its length says.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_PYTHON_H
#define MEMSCOPE_HEAP_SNAPSHOT_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PYTHON_TEXT_MAX = 128, PYTHON_ENTRIES_MAX = 1 << 16 };

/* Offsets in PyTypeObject (Include/cpython/object.h), the same in all of them. */
enum { PYTHON_OB_TYPE = 8, PYTHON_TP_NAME = 24, PYTHON_TP_FLAGS = 168, PYTHON_TP_DICT = 264, PYTHON_MA_KEYS = 32 };

/* Copies `len` bytes; false: they are not there. */
struct python_memory {
	bool (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

/* A str of ASCII, cut off at PYTHON_TEXT_MAX - 1. false: it is none, or has other letters. */
bool python_str(const struct python_memory *mem, uint64_t at, char text[PYTHON_TEXT_MAX]);

/* The keys of a dict: what dk_entries[i] is. */
struct python_keys {
	uint64_t entries, n; /* the address of the first, and how many                */
	uint32_t bytes;      /* of an entry                                           */
	uint32_t key, value; /* offsets in it; value 0: values are elsewhere (split)  */
};

bool python_keys(const struct python_memory *mem, uint64_t at, struct python_keys *ret_keys);
/* The key of the entry that has the byte at `addr`. */
bool python_key_at(const struct python_memory *mem, const struct python_keys *keys, uint64_t addr,
		   char text[PYTHON_TEXT_MAX]);
/* The value of a key of the dict at `dict`, if it is among its first PYTHON_ENTRIES_MAX; 0: it has none. */
uint64_t python_dict_get(const struct python_memory *mem, uint64_t dict, const char *key);

#endif
