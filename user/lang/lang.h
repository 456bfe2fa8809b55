/*
 * Runtimes of languages in processes: interpreters whose frames are data. What is here finds them and
 * names their frames; bpf/walk/python.h walks the frames in the kernel.
 *
 *   image    a file, read once: is there a runtime in it, of which version, where is its code that
 *            executes frames, how does a thread find its state. By symbols and sections, never by the
 *            file's name: runtimes are embedded, renamed, linked statically
 *   runtime  the same in one process: a row for the kernel (bpf/walk/lang.h), and what decoding needs
 *   frame    two words, as the kernel recorded them → function, file, line
 *
 * All memory that is read belongs to the process, which may be hostile and keeps running: whatever is
 * read is checked, bounded, and refused where it does not fit; nothing is guessed. Decoders are pure:
 * bytes in, checked records out.
 *
 * One file a language, lang_NAME.c, one row in lang.c.
 */
#ifndef MEMSCOPE_LANG_LANG_H
#define MEMSCOPE_LANG_LANG_H

#include "base/cleanup.h"
#include "base/err.h"
#include "elf/elf_file.h"
#include "walk/lang.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory of a process. false: it is not there (any more). */
struct lang_memory {
	bool (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

/* What one file says of itself. */
struct lang_image;

/*
 * Looks for a runtime in an image, and for a C library, which says how it keeps the values of
 * pthread_getspecific(). -ENOENT: neither is there (no sentence is set).
 */
int lang_image_read(struct elf_file *elf, struct lang_image **ret_image, struct err *e);
void lang_image_free(struct lang_image *image);
DEFINE_CLEANUP(struct lang_image *, lang_image_freep, lang_image_free)

/* MS_LANG_NONE: only a C library. */
enum ms_lang lang_image_lang(const struct lang_image *image);
bool lang_image_is_libc(const struct lang_image *image);
/* Does the code at `vaddr` execute frames of the language? */
bool lang_image_executes(const struct lang_image *image, uint64_t vaddr);

/* By the name that users have for it, `len` bytes: "python". */
enum ms_lang lang_named(const char *name, size_t len);
/* All of these, as a list for a sentence. */
const char *lang_names(void);
/* As it is shown: "Python". */
const char *lang_title(enum ms_lang lang);
/* Frames of it are code, which has a symbol like any other: the kernel records no words for lang_decode(), and none of
 * its frames is the runtime's own business. */
bool lang_is_compiled(enum ms_lang lang);

/* Does its runtime map part of its own file once more, elsewhere? (V8: its builtins, near what it compiles.) */
bool lang_maps_twice(enum ms_lang lang);

/* An image as it is mapped: vaddr + bias is an address. */
struct lang_mapped {
	const struct lang_image *image;
	uint64_t bias;
};

/* Of HotSpot, for decoding. Fields of 0 bytes are not there. */
struct hotspot_rt {
	struct ms_field name, code, compile_id, method;            /* of CodeBlob and nmethod */
	struct ms_field pcs, pcs_end, scopes, scopes_end, metadata; /* addresses, or offsets from: */
	uint8_t pcs_from, scopes_from, metadata_from;               /* enum hotspot_from       */
	struct ms_field data, mutable_data, relocation, immutable, immutable_bytes;
	uint16_t blob_bytes, runtime_bytes;
	uint16_t pc_bytes, pc_offset, pc_scope;   /* of PcDesc */
	uint16_t method_const, const_constants, const_words, const_code, const_name, const_bytes;
	uint16_t pool_holder, pool_length, pool_file, pool_bytes, klass_constants, klass_file, klass_name;
	uint16_t symbol_length, symbol_body;
	bool klass_has_file; /* klass_file, else pool_file */
	bool no_zeros;       /* struct hotspot_stream */
	struct {
		bool known;
		bool by_id;      /* a monitor's owner is a thread's number, else the thread or an address on its stack */
		uint64_t list;   /* where the address of the list of threads is */
		uint16_t list_length, list_threads, os_thread, os_tid, pending, stack_base, stack_size, id, owner;
	} threads;               /* of hotspot_monitors() */
};

/* Of Ruby, for decoding: what versions differ in. */
struct ruby_rt {
	uint64_t names;         /* address of the variable with the names of IDs */
	uint16_t lines;         /* insns_info, in the body of an iseq */
	uint16_t class_path, class_attached; /* of a class; 0: in its variables, which class_variables says */
	uint16_t class_variables; /* from where a class points to, to its table of variables; 0: it has none */
	uint16_t parent;        /* iseq of the code around an iseq, in its body, for the label of eval(); 0: it has its own */
	uint16_t singleton;     /* bit among the flags of a class       */
	uint8_t line_bytes;     /* sizeof(struct iseq_insn_info_entry)  */
	bool tagged_line;       /* the first line is an Integer object  */
	bool length_apart;      /* embedded strings have their length not among the flags */
};

enum hotspot_from {
	HOTSPOT_FROM_NOTHING,   /* an address                  */
	HOTSPOT_FROM_HEADER,    /* the begin of the nmethod   */
	HOTSPOT_FROM_DATA,      /* its data                    */
	HOTSPOT_FROM_IMMUTABLE, /* another block            */
	HOTSPOT_FROM_MUTABLE,   /* another one; metadata lies behind its relocations */
};

/* Of V8, for decoding: instance types, and offsets in bytes from an object's begin. */
struct v8_rt {
	uint16_t map_type;
	uint16_t type_function, type_function_last, type_bytecodes, type_shared, type_scope, type_script, type_code,
		type_array;
	uint16_t function_shared;
	uint16_t shared_data, shared_name, shared_script, shared_numbers;
	uint16_t script_name, script_source, script_lines;
	uint16_t bytecodes_positions, bytecodes_data;
	uint16_t array_length, array_data;
	uint16_t scope_locals_ix, scope_first_ix, scope_locals, scope_first;
	/* Instructions are behind the head of a Code, or where its code_start says, in what code_stream points to. */
	uint16_t code_header, code_stream, code_start;
	uint16_t code_deopt, code_positions, code_size, code_flags;
	uint8_t kind_mask, kind_baseline, kind_regexp;
	uint8_t deopt_literals, deopt_shared, deopt_positions; /* numbers of elements */
	uint8_t frame_regexp, frame_exit;
	uint16_t n_bytecodes;            /* 0: their sizes are not known */
	uint8_t bytecode_size[3][256];   /* with operands of 1, 2, 4 bytes */
	const struct v8_deopt_layout *deopts; /* NULL: not known */
};

struct lang_runtime {
	enum ms_lang lang;
	uint32_t version;     /* 0x030b02: 3.11.2; 0: unknown */
	bool untested;        /* no build of this version was ever tried with its row of offsets */
	char name[32];        /* as shown: "CPython 3.11.2" */
	struct ms_lang_row row; /* start_ns and exec_id are the caller's */
	/* For decoding: what the kernel need not know. */
	uint16_t code_filename, code_qualname, code_bytecode;
	uint8_t str_ascii, str_compact; /* bytes of the heads of strings */
	uint8_t object_head, ob_type;   /* bytes of any object's, and where its type is in it */
	struct hotspot_rt hotspot;
	struct v8_rt v8;
	bool perl_threads;              /* Perl: statements have the file's name, not its glob */
	bool perl_hv_aux;               /* … and what a stash has more than a hash lies in its body */
	struct ruby_rt ruby;
	uint64_t code_type;             /* what code objects have there; 0: not known */
	uint64_t python_interpreters;   /* where the address of the first interpreter is; 0: not known */
	uint32_t python_interp_next, python_modules; /* of an interpreter; 0: not known */
};

/*
 * The runtime of a process. `libc`: what answers pthread_getspecific() there, NULL or its image NULL where
 * that is not known. -EAGAIN: it has not been initialized yet, ask again later, with a sentence for who does not want to;
 * -EOPNOTSUPP: of a version that no row of offsets describes, or memory that does not look like that
 * version, with a sentence.
 */
int lang_runtime_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		      const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);

/* Where a Thread of HotSpot counts what it has allocated, in bytes from its begin: all but what is in its present buffer
 * (TLAB), and the part of that which is in use, from start to top. */
struct hotspot_counter {
	uint16_t allocated, tlab_start, tlab_top;
};

/* A thread of a JVM that waits to enter a monitor, by the numbers that the JVM's own threads have. */
struct hotspot_waiter {
	uint32_t tid, owner_tid; /* owner_tid 0: nobody has it by now, or that is not known */
};

/* Those that wait now, at most `cap`: how many; 0 also where it cannot be read. `*ret_threads`: of how many. The program runs on meanwhile,
 * so a row may be of a moment ago. */
uint32_t hotspot_monitors(const struct lang_runtime *runtime, const struct lang_memory *mem, struct hotspot_waiter *out,
			  uint32_t cap, uint32_t *ret_threads);

/* What is remembered of asyncio in a process from look to look; zeroed at first. */
#define PYTHON_TYPES 16
#define PYTHON_TYPE_NAME 32
struct python_tasks {
	uint64_t weakset;
	uint32_t missed, skip; /* looks that found none; those until it is searched for again: ever more */
	struct {
		uint64_t type;
		uint8_t kind;
	} types[PYTHON_TYPES];
	uint32_t n_types, next_type;
};

/* A task that waits. `words`: its coroutines as lang_decode() wants them, the outermost first. */
#define PYTHON_TASK_FRAMES 32
struct python_task {
	uint64_t at, waits_for; /* addresses of the task, and of the future that will wake it   */
	bool of_task;           /* that is another task                                        */
	uint32_t n;
	uint64_t words[PYTHON_TASK_FRAMES][2];
};

struct python_task_fn {
	void (*task)(void *ctx, const struct python_task *task);
	void *ctx;
	uint32_t max;                   /* as many tasks as that are looked at … */
	bool more;                      /* … and there were more                 */
	uint32_t seen, ready, changed;  /* ready: waits for nothing; changed: it ran while it was looked at */
};

/* The tasks of asyncio in a process: calls fn->task() for those that wait. -ENOENT: it has none; -EOPNOTSUPP: of this version it is not
 * known where they are. */
int python_tasks(const struct lang_runtime *runtime, const struct lang_memory *mem, struct python_tasks *t,
		 struct python_task_fn *fn);

/* -ENOENT: the image is no HotSpot. -EAGAIN, -EOPNOTSUPP: as lang_runtime_find(). */
int hotspot_counter_find(const struct lang_mapped *runtime, const struct lang_memory *mem,
			 struct hotspot_counter *ret_counter, struct err *e);

enum { LANG_NAME_MAX = 512, LANG_FILE_MAX = 1024 };

struct lang_frame {
	char function[LANG_NAME_MAX]; /* qualified: Class.method, outer.<locals>.inner, <module>; UTF-8 */
	char file[LANG_FILE_MAX];     /* "" when unknown */
	uint32_t line;                /* 0: unknown */
	uint32_t first_line;          /* of the function; 0: unknown */
	bool cut;                     /* a name was longer than its room */
	bool stub;                    /* code of the runtime between its functions: in none of the program */
};

enum { LANG_INLINED_MAX = 32 };

/* The functions of one frame: innermost first, each inlined into the next. */
struct lang_frames {
	uint32_t n; /* at least 1 */
	struct lang_frame frame[LANG_INLINED_MAX];
};

/* Why a frame has no name. */
enum lang_decoded {
	LANG_DECODED,
	LANG_GONE,       /* the code object has been freed, or its memory is not there any more */
	LANG_DAMAGED,    /* what is there is no code object                                     */
};

/* `words` as in bpf/walk/lang.h, with their tags. Fills in *ret_frame only with LANG_DECODED. */
enum lang_decoded lang_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame);
/*
 * Of a frame whose names could not be read: what it has in common with frames of the same function that lies elsewhere (a
 * closure of PHP's has a copy of its code, for as long as it lives); 0: nothing. And its line, 0: unknown.
 */
uint64_t lang_function_key(const uint64_t words[2], uint32_t *ret_line);
/* The same with what was inlined into it. */
enum lang_decoded lang_decode_all(const struct lang_runtime *runtime, const struct lang_memory *mem,
				  const uint64_t words[2], struct lang_frames *ret_frames);

#endif
