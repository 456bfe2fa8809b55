/*
 * A process with Ruby in it, made of bytes after the headers of its version: the names of some IDs, a class, its method "run"
 * and a block of that, and a method in C. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_RUBY_FIXTURE_H
#define MEMSCOPE_TESTS_RUBY_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/ruby.h"

#include <elf.h>
#include <string.h>

#define RBF_BIAS 0x7f0000000000ULL

enum {
	RBF_DATA = 0x30000, /* vaddr; what follows are distances from it */
	RBF_LEN = 0x8000,
	RBF_NAMES_VAR = 0x100,
	RBF_TLS_PAIR = 0x110,
	RBF_NAMES = 0x200,
	RBF_PARTS = 0x240,
	RBF_PART0 = 0x280,
	RBF_PART1 = 0x2c0,
	RBF_STRING_BANG = 0x300,  /* of 40 bytes each */
	RBF_STRING_RUN = 0x340,
	RBF_STRING_BLOCK = 0x380,
	RBF_STRING_PATH = 0x3c0,
	RBF_STRING_REAL = 0x400,
	RBF_STRING_CLASS = 0x440,
	RBF_STRING_SLEEP = 0x480,
	RBF_STRING_CLASSPATH = 0x4c0,
	RBF_STRING_ATTACHED = 0x500,
	RBF_PATHS = 0x540,
	RBF_CLASS = 0x600,        /* of 256 bytes each */
	RBF_SINGLETON = 0x700,
	RBF_EXT = 0x800,
	RBF_EXT_SINGLETON = 0x840,
	RBF_TABLE = 0x880,
	RBF_TABLE_SINGLETON = 0x8c0,
	RBF_ENTRIES = 0x900,
	RBF_ENTRIES_SINGLETON = 0x980,
	RBF_ENTRY = 0xa00,
	RBF_ENTRY_C = 0xa40,
	RBF_DEF = 0xa80,
	RBF_DEF_C = 0xac0,
	RBF_ISEQ = 0xb00,
	RBF_ISEQ_BLOCK = 0xb40,
	RBF_BODY = 0xc00,         /* of 512 bytes each */
	RBF_BODY_BLOCK = 0xe00,
	RBF_LINES = 0x1000,       /* entries */
	RBF_INDEX = 0x1400,
	RBF_TEXT = 0x2000,        /* longer texts */
	RBF_PART0_DATA = 0x4000,
	RBF_PART1_DATA = 0x6000,
	RBF_CODE = 0x7f00,        /* is not read */
	RBF_SIZE = 700,           /* words of code */
	RBF_FIRST_LINE = 40,
	RBF_ID_SLEEP = 600 << 4 | 1,
	RBF_ID_CLASSPATH = 601 << 4 | 1,
	RBF_ID_ATTACHED = 602 << 4 | 1,
	RBF_IMEMO_ENTRY = 0x601a,
	RBF_IMEMO_ISEQ = 0x701a,
};

struct ruby_process {
	uint8_t bytes[RBF_LEN];
	struct lang_image image;
	struct lang_mapped at;
	struct fake_process memory;
	struct ruby_layout layout;
};

static inline uint64_t rbf_addr(uint32_t off)
{
	return RBF_BIAS + RBF_DATA + off;
}

static inline void rbf_put(struct ruby_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

/* One that fits into an object. */
static inline void rbf_string(struct ruby_process *p, uint32_t off, const char *text)
{
	size_t len = strlen(text);
	bool apart = p->layout.rt.length_apart;

	rbf_put(p, off, RUBY_T_STRING | (apart ? 0 : len << 14), 8);
	if (apart)
		rbf_put(p, off + 16, len, 8);
	memcpy(p->bytes + off + (apart ? 24 : 16), text, len);
}

/* One whose bytes are elsewhere. */
static inline void rbf_long_string(struct ruby_process *p, uint32_t off, const void *text, uint64_t len)
{
	rbf_put(p, off, RUBY_T_STRING | 1 << 13, 8);
	rbf_put(p, off + 16, len, 8);
	rbf_put(p, off + 24, rbf_addr(RBF_TEXT), 8);
	memcpy(p->bytes + RBF_TEXT, text, len);
}

static inline void rbf_array(struct ruby_process *p, uint32_t off, uint64_t len, uint32_t data)
{
	rbf_put(p, off, RUBY_T_ARRAY, 8);
	rbf_put(p, off + 16, len, 8);
	rbf_put(p, off + 32, rbf_addr(data), 8);
}

static inline void rbf_name(struct ruby_process *p, uint32_t serial, uint32_t string, const char *text)
{
	rbf_string(p, string, text);
	rbf_put(p, (serial < 512 ? RBF_PART0_DATA : RBF_PART1_DATA) + serial % 512 * 16, rbf_addr(string), 8);
}

static inline void rbf_names(struct ruby_process *p)
{
	rbf_put(p, RBF_NAMES_VAR, rbf_addr(RBF_NAMES), 8);
	rbf_array(p, RBF_NAMES, 2, RBF_PARTS);
	rbf_put(p, RBF_PARTS, rbf_addr(RBF_PART0), 8);
	rbf_put(p, RBF_PARTS + 8, rbf_addr(RBF_PART1), 8);
	rbf_array(p, RBF_PART0, 1024, RBF_PART0_DATA);
	rbf_array(p, RBF_PART1, 1024, RBF_PART1_DATA);
	rbf_name(p, '!', RBF_STRING_BANG, "!");
	rbf_name(p, 600, RBF_STRING_SLEEP, "sleep");
	rbf_name(p, 601, RBF_STRING_CLASSPATH, "__classpath__");
	rbf_name(p, 602, RBF_STRING_ATTACHED, "__attached__");
}

/* A variable of a class, as up to 3.1. The first entry has been deleted. */
static inline void rbf_variable(struct ruby_process *p, uint32_t klass, uint32_t ext, uint32_t table, uint32_t entries,
				uint64_t id, uint32_t value)
{
	rbf_put(p, klass + 24, rbf_addr(ext), 8);
	rbf_put(p, ext + 8, rbf_addr(table), 8);
	rbf_put(p, table + 32, 0, 8);
	rbf_put(p, table + 40, 2, 8);
	rbf_put(p, table + 48, rbf_addr(entries), 8);
	rbf_put(p, entries, ~0ULL, 8);
	rbf_put(p, entries + 24, 1, 8);
	rbf_put(p, entries + 32, id, 8);
	rbf_put(p, entries + 40, rbf_addr(value), 8);
}

/* A class "App::Job" and its own class. */
static inline void rbf_classes(struct ruby_process *p)
{
	const struct ruby_rt *rt = &p->layout.rt;

	rbf_string(p, RBF_STRING_CLASS, "App::Job");
	rbf_put(p, RBF_CLASS, RUBY_T_CLASS, 8);
	rbf_put(p, RBF_CLASS + 8, rbf_addr(RBF_SINGLETON), 8);
	rbf_put(p, RBF_SINGLETON, RUBY_T_CLASS | rt->singleton, 8);
	if (rt->class_variables) {
		rbf_variable(p, RBF_CLASS, RBF_EXT, RBF_TABLE, RBF_ENTRIES, RBF_ID_CLASSPATH, RBF_STRING_CLASS);
		rbf_variable(p, RBF_SINGLETON, RBF_EXT_SINGLETON, RBF_TABLE_SINGLETON, RBF_ENTRIES_SINGLETON,
			     RBF_ID_ATTACHED, RBF_CLASS);
	} else if (rt->class_path) {
		rbf_put(p, RBF_CLASS + rt->class_path, rbf_addr(RBF_STRING_CLASS), 8);
		rbf_put(p, RBF_SINGLETON + rt->class_attached, rbf_addr(RBF_CLASS), 8);
	}
}

/* Lines: one at each of these places, 50 on. */
static const uint16_t rbf_lines_at[] = { 0, 5, 53, 54, 60, 117, 118, 119, 400, 565, 566, 640 };

enum { RBF_N_LINES = sizeof(rbf_lines_at) / sizeof(rbf_lines_at[0]) };

static inline void rbf_lines(struct ruby_process *p)
{
	uint32_t rank = 0, small = 0;

	for (uint32_t i = 0; i < RBF_N_LINES; i++)
		rbf_put(p, RBF_LINES + i * p->layout.rt.line_bytes, 50 + i, 4);
	for (uint32_t at = 0; at < RBF_SIZE; at++) {
		uint32_t block = (at - 54) / 512, bit = (at - 54) % 512;
		uint8_t *b = p->bytes + RBF_INDEX + 48 + block * 80;
		bool here = rank < RBF_N_LINES && rbf_lines_at[rank] == at;
		uint64_t word;

		if (at < 54) {
			rank += here;
			memcpy(&word, p->bytes + RBF_INDEX + at / 9 * 8, 8);
			word |= (uint64_t)rank << at % 9 * 7;
			memcpy(p->bytes + RBF_INDEX + at / 9 * 8, &word, 8);
			continue;
		}
		if (bit == 0) {
			memcpy(b, &rank, 4);
			small = 0;
		} else if (bit % 64 == 0) {
			memcpy(&word, b + 8, 8);
			word |= (uint64_t)small << (bit / 64 - 1) * 9;
			memcpy(b + 8, &word, 8);
		}
		if (here)
			b[16 + bit / 8] |= (uint8_t)(1 << bit % 8);
		rank += here;
		small += here;
	}
}

static inline void rbf_iseq(struct ruby_process *p, uint32_t iseq, uint32_t body, uint32_t label)
{
	uint64_t first = p->layout.rt.tagged_line ? RBF_FIRST_LINE << 1 | 1 : RBF_FIRST_LINE;
	uint32_t info = body + p->layout.rt.lines;

	rbf_put(p, iseq, RBF_IMEMO_ISEQ, 8);
	rbf_put(p, iseq + 16, rbf_addr(body), 8);
	rbf_put(p, body, 1 | (uint64_t)RBF_SIZE << 32, 8);
	rbf_put(p, body + 8, rbf_addr(RBF_CODE), 8);
	rbf_put(p, body + 64, rbf_addr(RBF_PATHS), 8);
	rbf_put(p, body + 72, rbf_addr(RBF_STRING_RUN), 8);
	rbf_put(p, body + 80, rbf_addr(label), 8);
	rbf_put(p, body + 88, first, 8);
	rbf_put(p, info, rbf_addr(RBF_LINES), 8);
	rbf_put(p, info + 16, RBF_N_LINES, 4);
	rbf_put(p, info + 24, rbf_addr(RBF_INDEX), 8);
}

static inline void rbf_methods(struct ruby_process *p)
{
	rbf_string(p, RBF_STRING_RUN, "run");
	rbf_string(p, RBF_STRING_BLOCK, "block in run");
	rbf_string(p, RBF_STRING_PATH, "a/job.rb");
	rbf_string(p, RBF_STRING_REAL, "/a/job.rb");
	rbf_put(p, RBF_PATHS, RUBY_T_ARRAY | 1 << 13 | 2 << 15, 8);
	rbf_put(p, RBF_PATHS + 16, rbf_addr(RBF_STRING_PATH), 8);
	rbf_put(p, RBF_PATHS + 24, rbf_addr(RBF_STRING_REAL), 8);
	rbf_put(p, RBF_ENTRY, RBF_IMEMO_ENTRY, 8);
	rbf_put(p, RBF_ENTRY + 16, rbf_addr(RBF_DEF), 8);
	rbf_put(p, RBF_ENTRY + 32, rbf_addr(RBF_CLASS), 8);
	rbf_put(p, RBF_DEF + 8, rbf_addr(RBF_ISEQ), 8);
	rbf_put(p, RBF_ENTRY_C, RBF_IMEMO_ENTRY, 8);
	rbf_put(p, RBF_ENTRY_C + 16, rbf_addr(RBF_DEF_C), 8);
	rbf_put(p, RBF_ENTRY_C + 32, rbf_addr(RBF_SINGLETON), 8);
	rbf_put(p, RBF_DEF_C, 1, 4);
	rbf_put(p, RBF_DEF_C + 32, RBF_ID_SLEEP, 8);
	rbf_iseq(p, RBF_ISEQ, RBF_BODY, RBF_STRING_RUN);
	rbf_iseq(p, RBF_ISEQ_BLOCK, RBF_BODY_BLOCK, RBF_STRING_BLOCK);
}

/* rb_thread_current() as arm64 would read a static thread-local variable at 0x30: mrs x0; ldr, ldr, ldr; ret. */
static inline void rbf_image(struct ruby_process *p, uint32_t version)
{
	static const uint32_t current[] = { 0xd53bd040, 0xf9401800, 0xf9401800, 0xf9400800, 0xd65f03c0 };
	struct lang_image *image = &p->image;

	image->lang = MS_LANG_RUBY;
	strcpy(image->name, "libruby");
	image->range[0] = (struct lang_range){ 0x11000, 0x15000 };
	image->range[1] = (struct lang_range){ 0x10000, 0x10800 };
	image->n_ranges = 2;
	image->ruby.version = version;
	image->ruby.current = (struct accessor){ .machine = EM_AARCH64, .vaddr = 0x9000, .len = sizeof(current) };
	memcpy(image->ruby.current.bytes, current, sizeof(current));
	image->ruby.names[0] = RBF_DATA + RBF_TEXT;
	image->ruby.names[1] = RBF_DATA + RBF_NAMES_VAR;
	image->ruby.n_names = 2;
	image->ruby.cfp_reg = 15;
	image->ruby.ready = 0x32;
	image->ruby.outer = 2;
	p->at = (struct lang_mapped){ image, RBF_BIAS };
}

/* false: there is no layout of that version. */
static inline bool rbf_init(struct ruby_process *p, uint32_t version)
{
	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, rbf_addr(0), p->bytes, RBF_LEN);
	if (ruby_layout_find(version, &p->layout, NULL) < 0)
		return false;
	p->layout.rt.names = rbf_addr(RBF_NAMES_VAR);
	rbf_names(p);
	rbf_classes(p);
	rbf_methods(p);
	rbf_lines(p);
	rbf_image(p, version);
	return true;
}

enum rbf_frame { RBF_METHOD, RBF_IN_C, RBF_BLOCK, RBF_INSIDE, RBF_KINDS };

/* The words of a frame at word `at` of its code. */
static inline void rbf_words(enum rbf_frame kind, uint32_t at, uint64_t words[2])
{
	uint64_t cookie, address;

	switch (kind) {
	case RBF_METHOD:
		address = rbf_addr(RBF_ENTRY);
		cookie = ms_ruby_cookie(rbf_addr(RBF_DEF), rbf_addr(RBF_CLASS), rbf_addr(RBF_ISEQ));
		at |= MS_RUBY_METHOD;
		break;
	case RBF_IN_C:
		address = rbf_addr(RBF_ENTRY_C);
		cookie = ms_ruby_cookie(rbf_addr(RBF_DEF_C), rbf_addr(RBF_SINGLETON), 0);
		at = MS_RUBY_METHOD | MS_RUBY_CFUNC;
		break;
	case RBF_INSIDE:
		cookie = ms_ruby_cookie(rbf_addr(RBF_BODY_BLOCK), rbf_addr(RBF_CODE), rbf_addr(RBF_CLASS));
		words[0] = MS_FRAME_LANG << MS_FRAME_TAG_SHIFT | ms_ruby_inside(rbf_addr(RBF_ISEQ_BLOCK), at);
		words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_RUBY << MS_LANG_SHIFT |
			   ms_ruby_inside_at(rbf_addr(RBF_ENTRY), at, cookie);
		return;
	default:
		address = rbf_addr(RBF_ISEQ_BLOCK);
		cookie = ms_ruby_cookie(rbf_addr(RBF_BODY_BLOCK), rbf_addr(RBF_CODE), RBF_SIZE);
		break;
	}
	words[0] = address | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_RUBY << MS_LANG_SHIFT | cookie << 32 | at;
}

#endif
