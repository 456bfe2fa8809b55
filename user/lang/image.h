/*
 * What is known of a file's image, shared by the languages' files. Internal to the room.
 */
#ifndef MEMSCOPE_LANG_IMAGE_H
#define MEMSCOPE_LANG_IMAGE_H

#include "lang/accessor.h"
#include "elf/elf_exports.h"
#include "lang/lang.h"

struct lang_range {
	uint64_t start, end;  /* vaddr */
};

/* CPython's (lang_python.c). */
struct python_image {
	uint32_t version;        /* 0x030b02; 0: nothing says it             */
	uint64_t runtime;        /* vaddr of _PyRuntime; 0: not known        */
	uint64_t runtime_size;
	uint64_t code_type;      /* vaddr of PyCode_Type; 0: not known       */
	struct accessor tstate;  /* PyGILState_GetThisThreadState()          */
};

/* --- lang_hotspot.c --- */

enum hotspot_symbol {
	HS_STRUCTS,
	HS_STRUCT_TYPE, HS_STRUCT_FIELD, HS_STRUCT_TYPE_STRING, HS_STRUCT_STATIC, HS_STRUCT_OFFSET, HS_STRUCT_ADDRESS,
	HS_STRUCT_STRIDE,
	HS_TYPES,
	HS_TYPE_NAME, HS_TYPE_SIZE, HS_TYPE_STRIDE,
	HS_N_SYMBOLS,
};

extern const char *const hotspot_symbols[HS_N_SYMBOLS];

struct hotspot_image {
	uint64_t symbol[HS_N_SYMBOLS]; /* vaddrs */
};

/* --- lang_v8.c --- */

enum v8_symbol { V8_MAJOR, V8_MINOR, V8_BUILD, V8_TAGGED, V8_SMI, V8_N_SYMBOLS };

extern const char *const v8_symbols[V8_N_SYMBOLS];

struct v8_image {
	uint32_t version, build; /* 0x000a0002: 10.2 */
	bool is_opaque;          /* its pointers are compressed, or it does not describe its objects: its frames are not known */
	bool untested;
	struct v8_rt rt;
};

/* GHC's (lang_ghc.c). */
struct ghc_offsets {
	uint16_t reg_tso, tso_stack, stack_sp;  /* as in struct ms_ghc */
};

struct ghc_image {
	uint32_t version;        /* 0x090002; 0: nothing says it             */
	uint64_t run;            /* vaddr of StgRun()                        */
	uint32_t run_saved;
	uint64_t text, text_bytes; /* the segment that it is in              */
	bool has_offsets;
	struct ghc_offsets offsets;
};

/* --- lang_php.c --- */

enum php_symbol {
	PHP_EXECUTE,
	PHP_GLOBALS,
	PHP_ZEND_VERSION,
	/* In builds for threads (ZTS), instead of PHP_GLOBALS. */
	PHP_GLOBALS_OFFSET,
	PHP_THREAD_STORAGE,
	PHP_N_SYMBOLS,
};

extern const char *const php_symbols[PHP_N_SYMBOLS];

struct php_image {
	uint64_t globals, globals_size; /* vaddr of executor_globals; 0: built for threads, each of which has its own: */
	uint64_t globals_offset;        /* vaddr of executor_globals_offset, where they are in its storage, */
	struct accessor storage;        /* which tsrm_get_ls_cache() returns */
	struct accessor version;        /* get_zend_version() */
	bool has_registers;             /* execute_ex() keeps its frame and its instruction in r14 and r15 ... */
	uint8_t prologue;               /* ... from this byte on */
};

/* Perl's (lang_perl.c). */
struct perl_image {
	uint32_t version;        /* 0x052400: 5.36.0 */
	uint64_t thread_key;     /* vaddr of PL_thr_key; 0: it has no threads   */
	uint64_t interpreter;    /* vaddr of PL_curinterp; 0: not known     */
	uint64_t op, curcop, stackinfo; /* vaddrs; 0: they are in the interpreter's struct */
	uint64_t entersub;       /* vaddr of Perl_pp_entersub(); 0: not known */
	struct lang_range main, catch; /* perl_run(), docatch(); none: not known */
};

/* --- lang_ruby.c --- */

enum ruby_symbol {
	RB_VERSION,
	RB_EXEC,
	RB_EVAL,
	RB_THREAD_CURRENT,
	RB_ID2STR,
	RB_CURRENT_EC,
	RB_N_SYMBOLS,
};

extern const char *const ruby_symbols[RB_N_SYMBOLS];

enum { RUBY_CANDIDATES = 8 };

struct ruby_image {
	uint32_t version;        /* 0x030107 */
	uint64_t current_ec;     /* vaddr of ruby_current_execution_context_ptr, up to 2.7; 0: there is none */
	struct accessor current; /* rb_thread_current() */
	/* Variables that rb_id2str() reads: one is the table of names, ids of global_symbols. */
	uint64_t names[RUBY_CANDIDATES];
	uint32_t n_names;
	uint16_t ready;          /* as in struct ms_ruby */
	uint8_t cfp_reg, outer;
};

struct lang_image {
	enum ms_lang lang;
	bool libc;
	char name[256];
	struct accessor getspecific, self;  /* pthread_getspecific(), pthread_self() */
	struct lang_range range[MS_LANG_RANGES]; /* code that executes frames of a chain */
	uint32_t n_ranges;
	struct python_image python;
	struct ghc_image ghc;
	struct hotspot_image hotspot;
	struct v8_image v8;
	struct php_image php;
	struct perl_image perl;
	struct ruby_image ruby;
};

/* --- lang_python.c --- */

enum python_symbol {
	PY_EVAL,
	PY_TSTATE,
	PY_RUNTIME,
	PY_VERSION,
	PY_GET_VERSION,
	PY_CODE_TYPE,
	PY_N_SYMBOLS,
};

extern const char *const python_symbols[PY_N_SYMBOLS];

/* -ENOENT: there is no CPython in it. `syms` as in python_symbols. Fills in image->python. */
int python_image_read(struct elf_file *elf, const struct elf_export syms[PY_N_SYMBOLS],
		      struct lang_image *image, struct err *e);
/* lang_runtime_find() for CPython. */
int python_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);
/* lang_decode() for CPython. */
enum lang_decoded python_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
				const uint64_t words[2], struct lang_frame *ret_frame);

/* -ENOENT: there is no HotSpot in it. `syms` as in hotspot_symbols. Fills in image->hotspot. */
int hotspot_image_read(struct elf_file *elf, const struct elf_export syms[HS_N_SYMBOLS],
		       struct lang_image *image, struct err *e);
/* lang_runtime_find() for HotSpot. */
int hotspot_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
		 const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);
/* lang_decode() for HotSpot. */
enum lang_decoded hotspot_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
				 const uint64_t words[2], struct lang_frames *ret_frames);

/* --- lang_v8.c, v8_decode.c --- */

/* -ENOENT: there is no V8 in it. `syms` as in v8_symbols. Fills in image->v8. */
int v8_image_read(struct elf_file *elf, const struct elf_export *syms, struct lang_image *image, struct err *e);
int v8_find(const struct lang_mapped *runtime, const struct lang_mapped *libc, const struct lang_memory *mem,
	    struct lang_runtime *ret_runtime, struct err *e);
enum lang_decoded v8_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			    const uint64_t words[2], struct lang_frames *ret_frames);

/* --- lang_ghc.c --- */

/* As python_image_read(); `syms` are not used. */
int ghc_image_read(struct elf_file *elf, const struct elf_export *syms, struct lang_image *image, struct err *e);
int ghc_find(const struct lang_mapped *runtime, const struct lang_mapped *libc, const struct lang_memory *mem,
	     struct lang_runtime *ret_runtime, struct err *e);

/* As python_image_read(), python_find(), python_decode(). */
int php_image_read(struct elf_file *elf, const struct elf_export syms[PHP_N_SYMBOLS],
		   struct lang_image *image, struct err *e);
int php_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	     const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);
enum lang_decoded php_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			     const uint64_t words[2], struct lang_frame *ret_frame);
/* As for CPython; `syms` as in ruby_symbols. Fills in image->ruby. */
int ruby_image_read(struct elf_file *elf, const struct elf_export syms[RB_N_SYMBOLS],
		    struct lang_image *image, struct err *e);
int ruby_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	      const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e);
enum lang_decoded ruby_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame);

/* --- lang_perl.c --- */

enum perl_symbol {
	PERL_RUNOPS,
	PERL_RUNOPS_DEBUG,
	PERL_RUN,
	PERL_ENTERSUB,
	PERL_ENTERTRY,
	PERL_ENTEREVAL,
	PERL_OPS,
	PERL_THREAD_KEY,
	PERL_INTERPRETER,
	PERL_OP,
	PERL_CURCOP,
	PERL_STACKINFO,
	PERL_REVISION,
	PERL_VERSION,
	PERL_SUBVERSION,
	PERL_N_SYMBOLS,
};

extern const char *const perl_symbols[PERL_N_SYMBOLS];

/* As python_image_read(), python_find() and python_decode(). */
int perl_image_read(struct elf_file *elf, const struct elf_export syms[PERL_N_SYMBOLS], struct lang_image *image,
		    struct err *e);
int perl_find(const struct lang_mapped *runtime, const struct lang_mapped *libc, const struct lang_memory *mem,
	      struct lang_runtime *ret_runtime, struct err *e);
enum lang_decoded perl_decode(const struct lang_runtime *runtime, const struct lang_memory *mem,
			      const uint64_t words[2], struct lang_frame *ret_frame);

/* --- ranges.c --- */

/*
 * The ranges of code of a function that executes frames, its begin first: compilers put parts of one elsewhere, without a
 * symbol. image->range, image->n_ranges. -EOPNOTSUPP: where it ends is not known.
 */
int lang_ranges(struct elf_file *elf, const struct elf_export *function, struct lang_image *image, struct err *e);
/* One more range: all of `function`, if there is room for it and its size is known. */
void lang_range_add(const struct elf_export *function, struct lang_image *image);
/* These, as they are mapped, into the row. */
void lang_ranges_mapped(const struct lang_mapped *runtime, struct ms_lang_row *row);

/* --- thread.c --- */

/* Where a thread keeps the value of `key`: thread, off and module of the row. -EAGAIN: `libc` is none, which
 * may not be mapped yet. */
int lang_thread_slot(const struct lang_image *libc, uint32_t key, struct ms_lang_row *row,
		     struct err *e);
/* Reads what the row says of the thread whose pointer is `tp`. */
bool lang_thread_value(const struct ms_lang_row *row, uint64_t tp, const struct lang_memory *mem,
		       uint64_t *ret_value);
/* The pointer of the thread that pthread_self() calls `self`; false: not known. */
bool lang_thread_pointer(const struct lang_image *libc, uint64_t self, uint64_t *ret_tp);

static inline bool lang_read(const struct lang_memory *mem, uint64_t addr, void *buf, size_t len)
{
	return mem->read(mem->ctx, addr, buf, len);
}

#endif
