/*
 * What CPython 3.8 to 3.14 keeps in its blocks, exactly: which words of each object, and of the tables that dicts, lists, sets and
 * deques keep beside themselves, are references. The objects themselves are blocks of allocators whose type is known
 * (snapshot/python_types.c).
 *
 *   list      ob_item[0 … ob_size), not what is left behind it          set      keys, not hashes
 *   tuple     its items                                               deque    from its left to its right index
 *   dict      keys and values of dk_entries[0 … dk_nentries)           weakref  its callback, not what it refers to
 *   instance  its __dict__, or values beside it (3.11, 3.12) or in it (3.13)
 *   frame     locals, and the stack as far as it is filled; so have generators, whose frame is in them
 *   code      its constants and names, not its instructions, whose caches have borrowed pointers
 *   others    all words of tp_basicsize and the items, but for the list of their weak references
 *
 * Which version it is follows from the size of a heap type (Include/cpython/object.h), the same for 3.8 and 3.9 as their
 * objects are. A version that has no row is scanned as other blocks are.
 */
#ifndef MEMSCOPE_HEAP_PYTHON_PYTHON_HEAP_H
#define MEMSCOPE_HEAP_PYTHON_PYTHON_HEAP_H

#include "heap/gc/gc.h"
#include "heap/snapshot/exact.h"
#include "heap/snapshot/python.h"

/* sizeof(PyUnicodeObject), from 3.8 and from 3.12 on; its last word refers to a text that is not in the object itself. */
enum { PYTHON_STR_SIZE_8 = 80, PYTHON_STR_SIZE_12 = 64, PYTHON_STR_STATE = 32 };
enum { PYTHON_FUNCTION_MAX = 3 * PYTHON_TEXT_MAX };

/* How objects of a class are read; of a subclass it is that of the class of C that it extends. */
enum python_shape {
	PYTHON_PLAIN,
	PYTHON_ATOM, /* refers to nothing: numbers, bytes */
	PYTHON_STR,
	PYTHON_LIST,
	PYTHON_DICT,
	PYTHON_SET,
	PYTHON_DEQUE,
	PYTHON_WEAKREF,
	PYTHON_MEMORYVIEW,
	PYTHON_TYPE,
	PYTHON_CODE,
	PYTHON_FRAME,
	PYTHON_GENERATOR,
	PYTHON_NOT, /* the type is not one of CPython's */
};

struct python_class {
	uint8_t shape;
	bool managed_dict, inline_values;
	uint32_t size, item_size; /* of an object, and of each of its items                       */
	uint32_t own;       /* of that the part that its shape reads; subclasses have the rest */
	uint32_t weak_list; /* the offset that has the list of its weak references; 0: none      */
	uint32_t length;          /* the offset that has how many items it has; 0: none has           */
	int64_t dict;       /* tp_dictoffset                                              */
	uint64_t shared_keys; /* the keys that instances' values have in common; 0: none         */
};

/* Blocks that are part of an object which refers to them. */
enum python_table {
	PYTHON_TABLE_NONE,
	PYTHON_DICT_KEYS,
	PYTHON_DICT_VALUES,
	PYTHON_LIST_ITEMS,
	PYTHON_SET_ENTRIES,
	PYTHON_DEQUE_BLOCK,
	PYTHON_STR_TEXT,
	PYTHON_TABLES
};

/* Offsets that differ between versions. */
struct python_version {
	uint32_t type_size; /* sizeof(PyHeapTypeObject)                        */
	uint32_t minor;
	uint16_t shared_keys, spec_cache; /* in a heap type; spec_cache 0: it has none          */
	uint16_t frame_locals,
		frame_inline; /* of a frame object: up to 3.10 f_localsplus; later the frame that it may contain */
	uint16_t generator_frame,
		generator_state;            /* from 3.11 on; 0: it refers to a frame object  */
	uint16_t generator_borrowed;        /* whose exceptions it goes on with                */
	uint16_t iframe_locals, iframe_top; /* in _PyInterpreterFrame                           */
	uint16_t iframe_function, iframe_code;
	uint16_t code_locals, code_stack; /* in a code object: how many of each                 */
	uint16_t code_names, code_file, code_name,
		code_line;       /* the names of its locals, its file, … */
	uint32_t interp_threads; /* in the interpreter's state                        */
	uint16_t thread_frame,
		cframe_frame; /* in a thread's, and in what that refers to from 3.11 to 3.12; 0: no such thing */
};

struct python_heap {
	struct copy *copy;
	const struct python_version *version; /* NULL: not known, or not looked for yet */
	struct python_class *classes;         /* by type                                */
	uint32_t n_classes;
	uint8_t *table; /* of each node an enum python_table        */
	uint32_t *live; /* … how many words of it are in use        */
	uint8_t *begin; /* … and in words, where they begin           */
	bool *in_work;  /* … does a thread's stack or a register refer to it?  */
	char **names;   /* of roots                                */
	uint32_t n_names, room;
	uint64_t *type_at;     /* addresses of all types, sorted */
	uint32_t n_types;
	struct gc_python found; /* its interpreters         */
	bool collecting;        /* one of them, when the copy was made */
	bool ready;
};

extern const struct exact_runtime python_runtime;

/* Where the states of its interpreters lie: for the walker of its allocator. */
void python_interpreters(const struct exact *x, struct heap_found *found);

/* python_classes.c: which version, and how objects of each type are read. -ENOENT: no type is CPython's, or its version is not
 * known; -ENOMEM. */
int python_classes_find(struct python_heap *h, const struct snapshot *s);

/* python_tables.c: which blocks are tables, and how far they are in use. -ENOMEM. */
int python_tables_find(struct python_heap *h, const struct snapshot *s);

/* python_edges.c */
/* Where the values of an _PyInterpreterFrame end: as far as it has noted; a running one may have used all. */
uint64_t python_frame_end(const struct python_heap *h, uint64_t frame);
bool python_edges(void *state, const struct snapshot *s, uint32_t node, exact_edge_fn fn,
		  void *ctx);

/* python_chain.c: of a snapshot that is not a file, where CPython is in it and known; else NULL. */
const struct python_heap *python_heap_of(const struct snapshot *s);

/* python_refcounts.c: objects of a class that have more references than the heap, variables and the functions that run show: C code holds them. */
struct python_held {
	uint32_t type;
	uint64_t all;              /* objects of this type                    */
	uint64_t held, references; /* … that have more, and how many more       */
};

struct python_refcounts {
	struct python_held *rows; /* most references first; those with none are left out */
	uint32_t n;
	uint64_t equal, more, less, immortal; /* objects                        */
};

/* -ENOENT: it has no CPython that is known; -ENOMEM. */
int python_refcounts_find(const struct snapshot *s, struct python_refcounts *ret_refcounts);
void python_refcounts_fini(struct python_refcounts *r);

/* python_frames.c: "worker (app.py:72)", and the name of a local variable by its number, of a code object. */
void python_function(const struct python_heap *h, uint64_t code, char text[PYTHON_FUNCTION_MAX]);
bool python_local(const struct python_heap *h, uint64_t code, uint64_t i,
		  char text[PYTHON_TEXT_MAX]);
void python_roots(void *state, const struct snapshot *s, exact_root_fn fn, void *ctx);

/* The word at `addr` of the copy; 0: it is not there. */
uint64_t python_word(const struct python_heap *h, uint64_t addr);
uint32_t python_half(const struct python_heap *h, uint64_t addr);
/* A node's object. */
uint64_t python_object(const struct snapshot *s, uint32_t node);
const struct python_class *python_class_of(const struct python_heap *h, const struct snapshot *s,
					   uint32_t node);
/* The keys of a dict by their address. */
bool python_keys_of(const struct python_heap *h, uint64_t keys, struct python_keys *ret_keys);

#endif
