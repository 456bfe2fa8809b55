/*
 * CPython: what its files share. Internal to the room.
 *
 * Layouts are fixed within a minor version, and in no other way promised. 3.13 and later say theirs in
 * the process (_Py_DebugOffsets, the first field of _PyRuntime), and that is what counts there; for the
 * others there is a row each, compiled from the headers of that version (Include/cpython, Include/internal).
 */
#ifndef MEMSCOPE_LANG_PYTHON_H
#define MEMSCOPE_LANG_PYTHON_H

#include "elf/elf_exports.h"
#include "lang/image.h"

/* "3.10.13", also with "rc1" or "+" behind it: 0x030a0d; 0: that is no version of Python 3. */
uint32_t python_version_of(const char *text);

/* --- python_layout.c --- */

struct python_layout {
	struct ms_python frames;
	uint16_t code_filename, code_qualname, code_bytecode;
	uint8_t str_ascii, str_compact, object;  /* heads: of strings, of any object */
	uint8_t ob_type;
	uint16_t type_name, type_flags;
	/* From _PyRuntime to threads. */
	uint32_t runtime_interpreters, interp_next, interp_threads;
	uint32_t interp_modules; /* 0: it does not say it itself */
	uint16_t tstate_next, tstate_thread_id;
	bool untested, free_threaded;
};

enum { PYTHON_OFFSETS_BYTES = 768 };  /* of _Py_DebugOffsets, that are looked at */

/*
 * The layout of `version`. `said`: what is at _PyRuntime in the process, NULL where that is not known.
 * -EOPNOTSUPP with a sentence: no row, or what it says of itself is no layout.
 */
int python_layout_find(uint32_t version, const uint8_t said[PYTHON_OFFSETS_BYTES],
		       struct python_layout *ret_layout, struct err *e);
/* Does this version, and each one after it, say its layout itself? */
bool python_says_layout(uint32_t version);
/* The version that it says itself; 0: it says none. */
uint32_t python_said_version(const uint8_t said[PYTHON_OFFSETS_BYTES]);

/* --- python_lines.c --- */

enum python_lines {
	PYTHON_LNOTAB,    /* to 3.9                      */
	PYTHON_LINES_10,  /* 3.10                        */
	PYTHON_LOCATIONS, /* from 3.11 on                */
};

/* Bytes of a table, read from a process part by part. */
struct python_table {
	const struct lang_memory *mem;
	uint64_t at, end;
	uint8_t part[512];
	uint16_t n, next;
	bool lost;
};

/*
 * The line of the instruction at byte `at` of the code, which begins at `first_line`; before the first: that
 * line. 0: it has none. -EIO: the table cannot be read, -EBADMSG: it is none.
 */
int64_t python_line(enum python_lines kind, struct python_table *table, uint32_t first_line,
		    int64_t at);

/* --- python_text.c --- */

/*
 * A string object as UTF-8: control characters and what is no text become \xNN, \uNNNN. `ret_cut`: it was longer
 * than its room. -EIO: it cannot be read, -EBADMSG: it is none.
 */
int python_text(const struct lang_runtime *runtime, const struct lang_memory *mem, uint64_t at,
		char *ret_text, size_t room, bool *ret_cut);

#endif
