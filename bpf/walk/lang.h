/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a walk in the kernel knows of a language's runtime in a process: where its code that executes
 * frames is, how a thread's state is found, and the layout of frames. Written by user space, which
 * finds runtimes (user/lang/), one row a process. Shared by the kernel and the host.
 *
 * A frame of a language is two words of a stack record (abi.h, tags 2 and 3): what identifies its
 * code, and where in that it is.
 */
#ifndef MEMSCOPE_WALK_LANG_H
#define MEMSCOPE_WALK_LANG_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

enum ms_lang {
	MS_LANG_NONE,
	MS_LANG_PYTHON,
	MS_LANG_HOTSPOT,
	MS_LANG_GHC,
	MS_LANG_V8,
	MS_LANG_RUBY,
	MS_LANG_PHP,
	MS_LANG_PERL,
	MS_N_LANGS,
};

/* Are its frames a chain in memory, which functions of an interpreter execute? Those of the others are on a stack. */
static inline __attribute__((always_inline)) int ms_lang_has_chain(__u32 lang)
{
	return lang == MS_LANG_PYTHON || lang == MS_LANG_RUBY || lang == MS_LANG_PHP ||
	       lang == MS_LANG_PERL;
}

/* What is read at once of a frame, or of what one points to: at most so many bytes. */
#define MS_LANG_BYTES 128

/* How a thread finds its state. x86-64: `base` is fs, arm64: tpidr_el0. */
enum ms_lang_thread {
	MS_THREAD_NONE,
	MS_THREAD_TLS,    /* the word at base + off: a slot of pthread_getspecific(), a static TLS variable */
	MS_THREAD_DTV,    /* the word at *(dtv + 16 * module) + off; the dtv is at base + 8 */
	MS_THREAD_GLOBAL, /* the word at `off` */
	MS_THREAD_TABLE,  /* the word at *(base + module) + off: a slot in a table of pthread_getspecific()
			   * that a word of the thread points to (musl; keys from 32 on in glibc) */
};

/* Where an interpreter's C function stops executing frames of the chain. */
enum ms_python_boundary {
	MS_PYTHON_EACH,     /* every frame is a call of it (up to 3.10)     */
	MS_PYTHON_ENTRY,    /* behind the frame whose byte is `boundary` (3.11: is_entry == 1)      */
	MS_PYTHON_OWNER,    /* at a frame whose owner is `boundary` or more, which is no frame (3.12 on) */
};

/* Where in its code a frame is. */
enum ms_python_instr {
	MS_PYTHON_LASTI,    /* 4 bytes: a number                             */
	MS_PYTHON_POINTER,  /* 8 bytes: an address, recorded as its distance from the code object */
};

/* Offsets in bytes, in the structs that CPython calls PyThreadState, _PyCFrame, _PyInterpreterFrame
 * (PyFrameObject up to 3.10) and PyCodeObject. */
struct ms_python {
	__u16 tstate_frame;  /* the innermost frame, or what points to it: */
	__u16 cframe_frame;  /* in the struct that tstate_frame points to; 0xffff: there is none */
	__u16 cframe_previous; /* … and the one of the outer call; only with MS_PYTHON_ENTRY */
	__u16 frame_code, frame_previous, frame_instr, frame_boundary;
	/* Read together, from code_first_line, rounded down to 8; the others are multiples of 8. */
	__u16 code_first_line, code_name, code_linetable;
	__u8 boundary_kind;  /* enum ms_python_boundary */
	__u8 boundary;
	__u8 instr_kind;     /* enum ms_python_instr */
	__u8 code_mask;      /* low bits of frame_code that are tags */
	__u8 frame_bytes;    /* what is read of a frame: to behind the last of these fields, at most MS_LANG_BYTES */
	__u8 pad;
	__u16 tstate_thread; /* what pthread_self() is in the thread */
};

/*
 * Ruby (MRI). Its frames are an array, the innermost first, at the end of a thread's or fiber's VM stack. Offsets in
 * bytes; those of fields that no version has moved are in ruby.h.
 */
struct ms_ruby {
	__u16 frame_bytes;   /* sizeof(rb_control_frame_t)                      */
	__u16 ready;         /* from the begin of range[0]: here cfp_reg is set */
	__u16 stack_start, stack_bytes; /* of the C stack, in the execution context, where all threads have one word
			      * for theirs; 0: each thread has its own */
	__u8 cfp_reg;        /* in code of range[0]: the frame that is executed (DWARF's number); RUBY_NO_REG */
	__u8 outer;          /* ranges that are rb_vm_exec(), which calls range[0]: a bit each */
	__u8 pad[6];
};

/* In the second word of a frame of Ruby's, beside the index of an instruction in its code. */
#define MS_RUBY_METHOD 0x80000000U /* the first word is a method entry, else an iseq */
#define MS_RUBY_CFUNC  0x40000000U /* … of a method in C, which has no instructions  */
#define MS_RUBY_AT     0x3fffffffU

/*
 * Code inside of a method (a block, a rescue, an eval) is named by its iseq and the entry of the method, which is what has
 * the class. Both are addresses of 48 bits, multiples of 8. `at` is the index of the instruction, in two parts:
 *
 *   | tag:4 | at:12 | iseq:45  | 1:3  |
 *   | tag:4 | lang:4 | cookie:8 | entry:45 | at:3 |
 */
#define MS_RUBY_INSIDE      1ULL
#define MS_RUBY_ADDR        0x0000fffffffffff8ULL
#define MS_RUBY_INSIDE_AT   0x7fffU /* unknown, or: code that is longer is named by its iseq alone */
#define MS_RUBY_ENTRY_SHIFT 48

/*
 * GHC's run-time system. Offsets in bytes; BaseReg (r13) points to a StgRegTable, which is in a Capability.
 * A stack's frames begin at `sp` of the StgStack and end with a stop frame.
 */
struct ms_ghc {
	__u64 text, text_bytes; /* code of the run-time system, which calls StgRun() */
	__u32 run_saved;      /* from rsp in Haskell code to the registers that StgRun() has saved: rbx, rbp, r12 … r15, and
			       * its return address */
	__u16 reg_tso;        /* rCurrentTSO, of BaseReg                                   */
	__u16 tso_stack;      /* stackobj, of a StgTSO                                     */
	__u16 stack_sp;       /* sp, of a StgStack; its size in words is 8 bytes before    */
	__u16 reg_suspended;  /* suspended_ccalls, of BaseReg: foreign calls that other threads may run beside */
	__u32 pad;
};

/*
 * PHP: offsets in bytes, where versions differ. Its frames are found by EG(current_execute_data), which is the row's word, or
 * in the storage of the thread that this points to.
 */
struct ms_php {
	/* Of zend_op_array: opcodes, last, and filename, which line_start and line_end follow. */
	__u16 func_ops, func_n_ops, func_file;
	__u16 generator_frame, generator_fake, generator_parent; /* of zend_generator: execute_data, execute_fake, node.parent */
	__u8 frame_reg, opline_reg; /* of execute_ex(): zend_execute_data and instruction; 0: in no register */
	__u8 prologue;              /* bytes of execute_ex() until they have them */
	__u8 pad;
	__u32 current; /* built for threads (ZTS): from what the row's word points to, the thread's storage, to
			* EG(current_execute_data); else 0 */
};

/* In the second word of a frame of PHP's. */
#define MS_PHP_INCLUDED 0x80000000U /* a file's code that other code includes, or that of eval() */
#define MS_PHP_COOKIE   0x7fe00000U /* more of the cookie */
#define MS_PHP_LINE     0x001fffffU /* 0: unknown, or too large */
#define MS_PHP_COOKIES  (0xffffffULL << 32 | MS_PHP_COOKIE)

#define MS_LANG_RANGES 4

/*
 * Perl. Where an interpreter's variables are: bytes from the struct that belongs to a thread, or addresses where there
 * is one interpreter without a struct (`global`).
 */
struct ms_perl {
	__u64 main_start, main_end;   /* perl_run(), which calls the loop that executes the program; none: not known */
	__u64 catch_start, catch_end; /* docatch(), whose loop executes what the loop that has called it would */
	__u64 entersub;               /* the function of the op that calls subs; 0: not known */
	__u64 op, curcop, stackinfo;
	__u8 global;
	__u8 cx_bytes; /* of a PERL_CONTEXT: MS_LANG_BYTES at most */
	__u8 cx_cv;    /* blk_sub.cv in it; olddepth follows, in formats a glob */
	__u8 pad[5];
};

/*
 * The words of one of Perl's frames: under MS_FRAME_LANG the statement that it executes, a COP, and what it is, under
 * MS_FRAME_LANG_AT what its name is found by. Both are addresses of 48 bits, multiples of 8; above and below are a cookie of the
 * statement (11 bits) and one of the name (8).
 *
 *   | tag:4 | 0:4    | cookie:8 | COP:45  | kind:3   |
 *   | tag:4 | lang:4 | name's:8 | name:45 | cookie:3 |
 */
#define MS_PERL_ADDR 0x0000fffffffffff8ULL

enum ms_perl_kind {
	MS_PERL_LOST,    /* frames that could not be read: enum ms_lang_lost   */
	MS_PERL_MAIN,    /* the program, outside of subs; name: 8 * the line … */
	MS_PERL_EVAL,    /* … of a string that is evaluated                    */
	MS_PERL_REQUIRE, /* … of a file that is required                    */
	MS_PERL_SUB,     /* name: its glob */
	MS_PERL_CV,      /* a sub without one: itself, or 0 */
	MS_PERL_FORMAT,  /* name: its glob */
};

/* A number in one of HotSpot's objects. */
struct ms_field {
	__u16 at;   /* bytes from the object's begin, a multiple of `bytes` */
	__u8 bytes; /* 1, 2, 4, 8; 0: there is no such field            */
	__u8 from;  /* enum ms_field_from */
};

enum ms_field_from {
	MS_FROM_NOTHING, /* it is what it is: a number, an address     */
	MS_FROM_BLOB,    /* bytes from the begin of the CodeBlob          */
	MS_FROM_CODE,    /* bytes from the begin of the CodeBlob's code */
};

/*
 * HotSpot. Code that was compiled, the interpreter and all stubs lie in code heaps, which are the row's
 * ranges; `segments` of each is where its map of segments is. All fields are of CodeBlob and nmethod.
 */
struct ms_hotspot {
	__u64 segments[MS_LANG_RANGES];
	__u64 interpreter, interpreter_end; /* the code of the interpreter's blob ...     */
	__u64 entries, entries_end;         /* ... and of that where methods are entered  */
	__u64 call_stub;                    /* where Java code returns to native code    */
	struct ms_field name, code, frame_words, entry, deopt, deopt_mh, original_pc, compile_id;
	__u16 blob_bytes;                   /* what is read of one: MS_HOTSPOT_BYTES at most */
	__u16 runtime_bytes;                /* of one that is no nmethod */
	__u16 const_bytes;                  /* sizeof(ConstMethod), after which bytecodes follow */
	__u16 const_code_bytes;             /* ConstMethod::_code_size, 2 bytes */
	__u16 method_const;                 /* Method::_constMethod */
	__u8 segment_shift;                 /* a segment's size in the code heaps */
	__u8 block_bytes;                   /* HeapBlock::Header, before each CodeBlob */
	__u8 bcp;                           /* from where the interpreter keeps the bytecode's address up to rbp */
	__u8 pad[5];
};

#define MS_HOTSPOT_BYTES 512 /* a power of 2 */

/* In the second word of a frame of HotSpot's, where the rest is a number of bytes or a bytecode's index. The
 * cookie: of an nmethod its compile id, else 0. */
#define MS_HOTSPOT_INTERPRETED 0x80000000U /* the first word is a Method, the rest a bci */
#define MS_HOTSPOT_EXACT       0x40000000U /* where the thread was, not a return address */
#define MS_HOTSPOT_AT          0x3fffffffU /* unknown, or: */

/* V8. Offsets in bytes, from the begin of an object (a pointer to one has its lowest bit set). */
struct ms_v8 {
	__u16 map_type;        /* Map: the instance type, 2 bytes, of: */
	__u16 function_first, function_last; /* JSFunction, and what is derived from it */
	__u16 bytecode_type;   /* BytecodeArray                    */
	__u16 function_shared; /* JSFunction: its SharedFunctionInfo */
	__u16 shared_numbers;  /* SharedFunctionInfo: 16 bytes that no collection changes: length:2, parameters:2, …; its
				* flags:4, its number in the script:4; a multiple of 8 */
	__u16 mark_regexp;     /* in frames of regular expressions; 0: not known */
	__u16 mark_exit;       /* … of calls of functions that are written in C++ */
};

/* In the second word of a frame of V8's. */
#define MS_V8_INTERPRETED 0x00000000U /* the first word is a SharedFunctionInfo, the rest an offset in bytecode, as frames have it */
#define MS_V8_BASELINE    0x40000000U /* the same, and the lowest bits of the pc in its code by Sparkplug */
#define MS_V8_CODE        0x80000000U /* the first word is a pc in code of the function that the cookie is of … */
#define MS_V8_BYTES       0xc0000000U /* … or, the 8 bytes there */
#define MS_V8_KIND        0xc0000000U
#define MS_V8_EXACT       0x20000000U /* where the thread was, not a return address */
#define MS_V8_AT          0x1fffffffU /* unknown, or: */

struct ms_lang_row {
	__u64 start_ns; /* of its process, as in struct ms_space */
	__u32 exec_id;
	__u8 lang;      /* enum ms_lang */
	__u8 thread;    /* enum ms_lang_thread */
	__u8 n_ranges;
	__u8 pad;
	__u64 off;      /* enum ms_lang_thread says of what */
	__u64 module;   /* MS_THREAD_DTV, MS_THREAD_TABLE */
	/* Code that executes the language's frames: absolute addresses. */
	struct {
		__u64 start, end;
	} range[MS_LANG_RANGES];
	union {
		struct ms_python python;
		struct ms_hotspot hotspot;
		struct ms_ghc ghc;
		struct ms_v8 v8;
		struct ms_php php;
		struct ms_perl perl;
		struct ms_ruby ruby;
	};
};

/*
 * The words of a frame: the address of its code object under MS_FRAME_LANG, then under
 * MS_FRAME_LANG_AT lang << 56 | cookie << 32 | instr. The cookie shows that the object at that address is still
 * the one that was seen. An address of 0: the frames that belong here could not be read, `instr` says why.
 */
#define MS_LANG_SHIFT       56
#define MS_LANG_COOKIE_MASK 0xffffffULL
#define MS_LANG_NO_INSTR    0xffffffffULL /* it is not within 4 GiB of the code object */

/* Is a frame, by its second word, one whose bytecodes have code that the thread executes in its place? */
static inline __attribute__((always_inline)) int ms_lang_is_bytecode(__u64 word)
{
	return (word >> MS_LANG_SHIFT & 0xf) == MS_LANG_V8 && (word & MS_V8_KIND) == MS_V8_INTERPRETED &&
	       (word & MS_V8_AT) != MS_V8_AT;
}

enum ms_lang_lost {
	MS_LOST_STATE, /* the thread's state, or the head of its chain of frames    */
	MS_LOST_FRAME, /* a frame of the chain, or its code object: not in memory */
};

static inline __attribute__((always_inline)) __u64 ms_lang_cookie(__u64 of)
{
	__u64 h = of * 0x9e3779b97f4a7c15ULL;

	return (h ^ h >> 32) >> 8 & MS_LANG_COOKIE_MASK;
}

static inline __attribute__((always_inline)) __u64 ms_python_cookie(__u32 first_line, __u64 name,
								    __u64 linetable)
{
	return ms_lang_cookie(name ^ linetable << 20 ^ first_line);
}

/* Of a SharedFunctionInfo. */
static inline __attribute__((always_inline)) __u64 ms_v8_cookie(__u16 parameters, __u32 number)
{
	return ms_lang_cookie((__u64)number << 16 | parameters);
}

/*
 * Of a function's name, scope and instructions (addresses); of the program's code also `lines` (line_start, line_end) and the
 * hash that PHP has of its file's name. A request's functions come to lie where those of the one before were. As it
 * is in the second word.
 */
static inline __attribute__((always_inline)) __u64 ms_php_cookie(__u64 name, __u64 scope, __u64 ops,
								 __u64 lines, __u64 file_hash)
{
	__u64 h = (name ^ scope << 20 ^ ops << 40 ^ ops >> 24) * 0x9e3779b97f4a7c15ULL;

	h = (h ^ h >> 32 ^ lines ^ file_hash) * 0x9e3779b97f4a7c15ULL;
	h ^= h >> 32;
	return h & MS_PHP_COOKIES;
}

/* Of one of Perl's statements: 11 bits. */
static inline __attribute__((always_inline)) __u64 ms_perl_cookie(__u64 seq, __u64 line, __u64 file)
{
	__u64 h = ((seq << 32 ^ line) * 0x9e3779b97f4a7c15ULL ^ file) * 0xbf58476d1ce4e5b9ULL;

	return (h ^ h >> 32) * 0x9e3779b97f4a7c15ULL >> 53;
}

/* Of the two words that a function of Perl's is named by: 8 bits. */
static inline __attribute__((always_inline)) __u64 ms_perl_name_cookie(__u64 name, __u64 stash)
{
	return (name ^ stash << 17) * 0x9e3779b97f4a7c15ULL >> 56;
}

/* Of a method entry: its definition, owner and iseq (0: a method in C); of an iseq: its body, code and the code's size. */
static inline __attribute__((always_inline)) __u64 ms_ruby_cookie(__u64 a, __u64 b, __u64 c)
{
	return ms_lang_cookie(a ^ b << 20 ^ c << 7);
}

/* The words of code inside of a method, without tags and language; `cookie` is of body and code of the iseq, and the method's owner. */
static inline __attribute__((always_inline)) __u64 ms_ruby_inside(__u64 iseq, __u32 at)
{
	return (__u64)(at >> 3) << MS_RUBY_ENTRY_SHIFT | iseq | MS_RUBY_INSIDE;
}

static inline __attribute__((always_inline)) __u64 ms_ruby_inside_at(__u64 entry, __u32 at, __u64 cookie)
{
	return (cookie & 0xff) << MS_RUBY_ENTRY_SHIFT | entry | (at & 7);
}

#endif
