/*
 * A process with CPython 3.14 in it, made of bytes after that version's own description of its layout: one
 * interpreter, one thread, one code object. The code of its functions is arm64's, which is followed on
 * every machine. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_PYTHON_FIXTURE_H
#define MEMSCOPE_TESTS_PYTHON_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/python.h"

#include <elf.h>
#include <string.h>

#define PYF_BIAS 0x7f0000000000ULL

enum {
	PYF_RUNTIME = 0x30000, /* vaddr; what follows are distances from it */
	PYF_LEN = 0x10000,
	PYF_HEAD = 0x328,
	PYF_KEY = 0x650,
	PYF_INTERP = 0x1000,
	PYF_TSTATE = 0x2000,
	PYF_TP = 0x4000,
	PYF_TYPE = 0x5000,
	PYF_TYPE_NAME = 0x5800,
	PYF_CODE = 0x6000,
	PYF_NAME = 0x6400,
	PYF_QUALNAME = 0x6600,
	PYF_FILE = 0x6800,
	PYF_TABLE = 0x6a00,
	PYF_SLOT = PYF_TP - 1584 + 16 * 5 + 8, /* of key 5 */
	PYF_FIRST_LINE = 40,
	PYF_BYTECODE = 208,
};

struct python_process {
	uint8_t bytes[PYF_LEN];
	struct lang_image python, libc;
	struct lang_mapped runtime_at, libc_at;
	struct fake_process memory;
};

static inline uint64_t pyf_addr(uint32_t off)
{
	return PYF_BIAS + PYF_RUNTIME + off;
}

static inline void pyf_put(struct python_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

static inline void pyf_code(struct accessor *code, uint64_t vaddr, const uint32_t *insns, uint16_t len)
{
	*code = (struct accessor){ .machine = EM_AARCH64, .vaddr = vaddr, .len = len };
	memcpy(code->bytes, insns, len);
}

/* A string of 1, 2 or 4 bytes a character, as 3.12 and later have it. */
static inline void pyf_text(struct python_process *p, uint32_t off, const void *chars, uint64_t n,
			    unsigned kind, bool ascii)
{
	pyf_put(p, off + 16, n, 8);
	pyf_put(p, off + 32, (uint64_t)kind << 2 | 1 << 5 | (ascii ? 1 << 6 : 0), 4);
	memcpy(p->bytes + off + (ascii ? 40 : 56), chars, n * kind);
}

static inline void pyf_bytes(struct python_process *p, uint32_t off, const void *bytes, uint64_t n)
{
	pyf_put(p, off + 16, n, 8);
	memcpy(p->bytes + off + 32, bytes, n);
}

/* 3.14's, in words: which, value. */
static inline void pyf_offsets(struct python_process *p)
{
	static const uint16_t said[][2] = {
		{ 5, PYF_HEAD }, { 8, 0x10 }, { 9, 0x20 },		       /* to the threads */
		{ 24, 16 }, { 26, 72 }, { 27, 152 },			       /* a thread's     */
		{ 31, 96 }, { 32, 8 }, { 33, 0 }, { 34, 56 }, { 36, 74 },     /* a frame's      */
		{ 39, 216 }, { 40, 112 }, { 41, 120 }, { 42, 128 }, { 43, 136 }, /* a code's   */
		{ 44, 68 }, { 48, PYF_BYTECODE },
		{ 50, 16 }, { 51, 8 }, { 53, 24 }, { 55, 168 }, { 80, 40 },
	};

	memcpy(p->bytes, "xdebugpy", 8);
	pyf_put(p, 8, 0x030e01f0, 8);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		pyf_put(p, 8u * said[i][0], said[i][1], 8);
}

static inline void pyf_code_object(struct python_process *p)
{
	/* first line + 2 for 4 bytes, that + 1 for 6, none for 2, then a long one of - 3 for 16. */
	static const uint8_t table[] = { 0x80 | 12 << 3 | 1, 0, 4, 0x80 | 11 << 3 | 2, 1, 5,
					 0x80 | 15 << 3 | 0, 0x80 | 14 << 3 | 7, 7, 0, 1, 1 };

	pyf_put(p, PYF_CODE + 8, pyf_addr(PYF_TYPE), 8);
	pyf_put(p, PYF_CODE + 68, PYF_FIRST_LINE, 4);
	pyf_put(p, PYF_CODE + 112, pyf_addr(PYF_FILE), 8);
	pyf_put(p, PYF_CODE + 120, pyf_addr(PYF_NAME), 8);
	pyf_put(p, PYF_CODE + 128, pyf_addr(PYF_QUALNAME), 8);
	pyf_put(p, PYF_CODE + 136, pyf_addr(PYF_TABLE), 8);
	pyf_text(p, PYF_NAME, "f", 1, 1, true);
	pyf_text(p, PYF_QUALNAME, "C.f", 3, 1, true);
	pyf_text(p, PYF_FILE, "/a/b.py", 7, 1, true);
	pyf_bytes(p, PYF_TABLE, table, sizeof(table));
}

static inline void pyf_images(struct python_process *p)
{
	static const uint32_t tstate[] = { 0x90000100, 0x91100000, 0xb9425001, 0x34000061,
					   0xb9425400, 0x17ffffef, 0xd2800000, 0xd65f03c0 };
	/* pthread_getspecific() and pthread_self() of glibc 2.36. */
	static const uint32_t get[] = {
		0x2a0003e1, 0x71007c1f, 0x54000248, 0xd37c7c20, 0xd53bd042, 0xd118c000, 0x8b000042,
		0xf9400440, 0xb4000140, 0xd37c7c21, 0xd0000903, 0x91206063, 0xf9400044, 0xf8616861,
		0xeb04003f, 0x54000041, 0xd65f03c0, 0xf900045f, 0xd2800000, 0xd65f03c0, 0x710ffc1f,
		0x54ffffa8, 0x53057c00, 0xd53bd042, 0x12001023, 0x8b000c40, 0xd1110000, 0xf9400802,
		0xb4fffec2, 0xd37c1063, 0x8b030042, 0x17ffffe8,
	};
	static const uint32_t self[] = { 0xd53bd040, 0xd11d0000, 0xd65f03c0 };
	struct python_image *py = &p->python.python;

	p->python.lang = MS_LANG_PYTHON;
	strcpy(p->python.name, "libpython");
	py->version = 0x030e01;
	py->runtime = PYF_RUNTIME;
	py->runtime_size = 0x1000;
	py->code_type = PYF_RUNTIME + PYF_TYPE;
	pyf_code(&py->tstate, 0x10410, tstate, sizeof(tstate));
	p->python.range[0] = (struct lang_range){ 0x11000, 0x12000 };
	p->python.n_ranges = 1;
	p->libc.libc = true;
	strcpy(p->libc.name, "libc");
	pyf_code(&p->libc.getspecific, 0x804c0, get, sizeof(get));
	pyf_code(&p->libc.self, 0x85980, self, sizeof(self));
	p->runtime_at = (struct lang_mapped){ &p->python, PYF_BIAS };
	p->libc_at = (struct lang_mapped){ &p->libc, 0 };
}

static inline void pyf_init(struct python_process *p)
{
	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, pyf_addr(0), p->bytes, PYF_LEN);
	pyf_images(p);
	pyf_offsets(p);
	pyf_put(p, PYF_HEAD, pyf_addr(PYF_INTERP), 8);
	pyf_put(p, PYF_KEY, 1 | 5ULL << 32, 8);
	pyf_put(p, PYF_INTERP + 0x20, pyf_addr(PYF_TSTATE), 8);
	pyf_put(p, PYF_TSTATE + 152, pyf_addr(PYF_TP) - 1856, 8);
	pyf_put(p, PYF_SLOT, pyf_addr(PYF_TSTATE), 8);
	pyf_put(p, PYF_TYPE + 24, pyf_addr(PYF_TYPE_NAME), 8);
	pyf_put(p, PYF_TYPE + 168, 1 << 12, 8);
	memcpy(p->bytes + PYF_TYPE_NAME, "code", 5);
	pyf_code_object(p);
}

/* The words of a frame in the code object, `at` bytes behind the begin of its code. */
static inline void pyf_words(int64_t at, uint64_t words[2])
{
	words[0] = pyf_addr(PYF_CODE) | 2ULL << MS_FRAME_TAG_SHIFT;
	words[1] = 3ULL << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_PYTHON << MS_LANG_SHIFT |
		   ms_python_cookie(PYF_FIRST_LINE, pyf_addr(PYF_NAME), pyf_addr(PYF_TABLE)) << 32 |
		   (uint32_t)(PYF_BYTECODE + at);
}

#endif
