/*
 * A process with Perl 5.36 in it, with threads, made of bytes: one interpreter with two stacks of contexts, statements, globs and
 * subs. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_PERL_FIXTURE_H
#define MEMSCOPE_TESTS_PERL_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/perl.h"
#include "python_fixture.h"

#include <string.h>

#define PLF_BIAS 0x7f0000000000ULL

enum {
	PLF_DATA = 0x30000, /* vaddr; what follows are distances from it */
	PLF_LEN = 0x10000,
	PLF_KEY = 0x100,    /* PL_thr_key   */
	PLF_FIRST = 0x108,  /* PL_curinterp */
	PLF_OP = 0x180,
	PLF_ENTERSUB = 0x190, /* an op that calls a sub */
	PLF_FILE = 0x200,
	PLF_STASH = 0x300,
	PLF_STASH_NAME = 0x3a0,
	PLF_INTERP = 0x1000,
	PLF_SLOT = 0x1f00,  /* of the thread */
	PLF_SI = 0x2000,    /* 0x800 each */
	PLF_CX = 0x40,      /* in one     */
	PLF_COP = 0x4000,   /* 0x80 each  */
	PLF_GV = 0x5000,    /* 0x100 each */
	PLF_CV = 0x6000,    /* 0x100 each */
	PLF_CX_BYTES = 0x68,
	PLF_TEXT = 0x10000, /* vaddrs: code */
};

/* Types of contexts, with their flags. */
enum {
	PLF_NULL = 0,
	PLF_BLOCK = 2,
	PLF_LOOP = 4,
	PLF_SUB = 9 | 0x20,
	PLF_MULTICALL = 9 | 0x10,
	PLF_RE_FAKE = 9 | 0x10 | 0xc0,
	PLF_FORMAT = 10,
	PLF_EVAL = 11 | 0x20,
	PLF_REQUIRE = 11,
	PLF_EVAL_BLOCK = 11 | 0x40,
	PLF_DEFER = 13,
};

struct perl_process {
	uint8_t bytes[PLF_LEN];
	struct lang_image perl, libc;
	struct lang_mapped runtime_at, libc_at;
	struct fake_process memory;
};

static inline uint64_t plf_addr(uint32_t off)
{
	return PLF_BIAS + PLF_DATA + off;
}

static inline void plf_put(struct perl_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

static inline void plf_hek(struct perl_process *p, uint32_t off, const char *text, uint8_t flags)
{
	size_t len = strlen(text);

	plf_put(p, off + 4, len, 4);
	memcpy(p->bytes + off + 8, text, len);
	p->bytes[off + 8 + len + 1] = flags;
}

/* Statement i: line 10 + i. */
static inline uint64_t plf_cop(struct perl_process *p, uint32_t i)
{
	uint32_t at = PLF_COP + i * 0x80;

	plf_put(p, at + 0x24, 10 + i, 4);
	plf_put(p, at + 0x30, plf_addr(PLF_FILE), 8);
	plf_put(p, at + 0x3c, 100 + i, 4);
	return plf_addr(at);
}

static inline uint64_t plf_glob(struct perl_process *p, uint32_t i, const char *name)
{
	uint32_t at = PLF_GV + i * 0x100;

	plf_put(p, at, plf_addr(at + 0x20), 8);
	plf_put(p, at + 12, 9, 4);
	plf_put(p, at + 0x40, plf_addr(at + 0x60), 8);
	plf_put(p, at + 0x48, plf_addr(PLF_STASH), 8);
	plf_hek(p, at + 0x60, name, 0);
	return plf_addr(at);
}

/* Sub i, named by glob i, or with flags 0x8000 by itself. */
static inline uint64_t plf_cv(struct perl_process *p, uint32_t i, uint32_t flags, uint32_t depth)
{
	uint32_t at = PLF_CV + i * 0x100;

	plf_put(p, at, plf_addr(at + 0x20), 8);
	plf_put(p, at + 12, 13, 4);
	plf_put(p, at + 0x40, plf_addr(PLF_STASH), 8);
	plf_put(p, at + 0x58, plf_addr(PLF_GV + i * 0x100 + (flags & 0x8000 ? 0x60 : 0)), 8);
	plf_put(p, at + 0x7c, flags, 4);
	plf_put(p, at + 0x80, depth, 4);
	return plf_addr(at);
}

/* Stack of contexts i, of n; `prev` is the one around it, -1: none. */
static inline uint64_t plf_stack(struct perl_process *p, uint32_t i, int32_t n, int32_t prev)
{
	uint32_t at = PLF_SI + i * 0x800;

	plf_put(p, at + 8, plf_addr(at + PLF_CX), 8);
	plf_put(p, at + 0x10, prev < 0 ? 0 : plf_addr(PLF_SI + (uint32_t)prev * 0x800), 8);
	plf_put(p, at + 0x20, (uint32_t)(n - 1), 4);
	plf_put(p, at + 0x24, 16, 4);
	plf_put(p, at + 0x2c, prev < 0 ? 1 : 5, 4);
	return plf_addr(at);
}

/* Context `ix` of stack i; it was entered at statement `cop`, and returns to an op if `returns`. */
static inline void plf_cx(struct perl_process *p, uint32_t i, uint32_t ix, uint8_t type, uint32_t cop, bool returns,
			  uint64_t cv)
{
	uint32_t at = PLF_SI + i * 0x800 + PLF_CX + ix * PLF_CX_BYTES;

	plf_put(p, at, type, 1);
	plf_put(p, at + 0x10, plf_addr(PLF_COP + cop * 0x80), 8);
	plf_put(p, at + 0x30, returns ? plf_addr(PLF_OP) : 0, 8);
	plf_put(p, at + 0x48, cv, 8);
	plf_put(p, at + 0x50, 0, 4);
}

/* The statement, the stack of contexts and the op that the interpreter is at. */
static inline void plf_at(struct perl_process *p, uint32_t cop, uint32_t stack, uint64_t op)
{
	plf_put(p, PLF_INTERP + 0x8, op, 8);
	plf_put(p, PLF_INTERP + 0xd0, plf_addr(PLF_COP + cop * 0x80), 8);
	plf_put(p, PLF_INTERP + 0xe0, plf_addr(PLF_SI + stack * 0x800), 8);
}

static inline void plf_init(struct perl_process *p)
{
	static struct python_process other;
	struct perl_image *image = &p->perl.perl;

	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, plf_addr(0), p->bytes, PLF_LEN);
	pyf_init(&other);
	p->libc = other.libc;
	p->perl.lang = MS_LANG_PERL;
	strcpy(p->perl.name, "perl");
	p->perl.n_ranges = 1;
	p->perl.range[0] = (struct lang_range){ PLF_TEXT, PLF_TEXT + 0x1000 };
	image->version = 0x052400;
	image->thread_key = PLF_DATA + PLF_KEY;
	image->interpreter = PLF_DATA + PLF_FIRST;
	image->entersub = PLF_TEXT + 0x8000;
	image->main = (struct lang_range){ PLF_TEXT + 0x1000, PLF_TEXT + 0x2000 };
	image->catch = (struct lang_range){ PLF_TEXT + 0x2000, PLF_TEXT + 0x3000 };
	p->runtime_at = (struct lang_mapped){ &p->perl, PLF_BIAS };
	p->libc_at = (struct lang_mapped){ &p->libc, 0 };
	plf_put(p, PLF_KEY, 5, 4);
	plf_put(p, PLF_FIRST, plf_addr(PLF_INTERP), 8);
	plf_put(p, PLF_SLOT, plf_addr(PLF_INTERP), 8);
	plf_put(p, PLF_OP + 16, PLF_BIAS + PLF_TEXT + 0x8100, 8);
	plf_put(p, PLF_ENTERSUB, plf_addr(PLF_OP), 8);
	plf_put(p, PLF_ENTERSUB + 16, PLF_BIAS + PLF_TEXT + 0x8000, 8);
	strcpy((char *)p->bytes + PLF_FILE, "/a/b.pl");
	/* A hash with what a stash has more, and its name. */
	plf_put(p, PLF_STASH, plf_addr(PLF_STASH + 0x20), 8);
	plf_put(p, PLF_STASH + 12, 12 | 0x02000000, 4);
	plf_put(p, PLF_STASH + 0x40, plf_addr(PLF_STASH_NAME), 8);
	plf_hek(p, PLF_STASH_NAME, "My::Class", 0);
	for (uint32_t i = 0; i < 8; i++)
		plf_cop(p, i);
	for (uint32_t i = 0; i < 4; i++) {
		plf_glob(p, i, i == 3 ? "__ANON__" : "method");
		plf_cv(p, i, 0, 1);
	}
	plf_stack(p, 0, 0, -1);
	plf_at(p, 0, 0, plf_addr(PLF_OP));
}

/* The words of a frame at statement `cop`: of a glob, a sub that has its name itself, or something without either. */
static inline void plf_words(enum ms_perl_kind kind, uint32_t cop, uint32_t i, uint64_t words[2])
{
	uint64_t gv = plf_addr(PLF_GV + i * 0x100), hek = gv + 0x60, stash = plf_addr(PLF_STASH);
	uint64_t name = kind < MS_PERL_SUB    ? (10 + cop) << 3
			: kind == MS_PERL_CV ? plf_addr(PLF_CV + i * 0x100)
					     : gv;
	uint64_t cookie = ms_perl_cookie(100 + cop, 10 + cop, plf_addr(PLF_FILE));

	if (kind < MS_PERL_SUB)
		hek = stash = 0;
	words[0] = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT | (cookie >> 3) << 48 | plf_addr(PLF_COP + cop * 0x80) | kind;
	words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_PERL << MS_LANG_SHIFT |
		   ms_perl_name_cookie(hek, stash) << 48 | name | (cookie & 7);
}

#endif
