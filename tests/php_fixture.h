/*
 * A process with PHP 8.2 in it, made of bytes: its globals, a chain of frames, a method, a function of PHP's own, and the
 * main script's code. Tests and the fuzzer change it.
 */
#ifndef MEMSCOPE_TESTS_PHP_FIXTURE_H
#define MEMSCOPE_TESTS_PHP_FIXTURE_H

#include "abi.h"
#include "fake_process.h"
#include "lang/image.h"

#include <elf.h>
#include <string.h>

#define PHF_BIAS 0x7f0000000000ULL

enum {
	PHF_DATA = 0x20000, /* vaddr; what follows are distances from it */
	PHF_LEN = 0x4000,
	PHF_VERSION = 0x100, /* a pointer to … */
	PHF_VERSION_TEXT = 0x140,
	PHF_OFFSET = 0x200, /* built for threads: executor_globals_offset, tls_key, */
	PHF_KEY = 0x208,
	PHF_STORAGE = 0x300, /* and the storage of the thread that has the globals */
	PHF_GLOBALS = 0x400,
	PHF_CURRENT = PHF_GLOBALS + 488,
	PHF_METHOD = 0x1000, /* zend_op_arrays, and an internal function */
	PHF_MAIN = 0x1200,
	PHF_INTERNAL = 0x1400,
	PHF_CLASS = 0x1600,
	PHF_METHOD_NAME = 0x1700, /* zend_strings */
	PHF_CLASS_NAME = 0x1800,
	PHF_FILE = 0x1900,
	PHF_INTERNAL_NAME = 0x1e00,
	PHF_OPS = 0x2000, /* of the method; line 10, 11, 12, 13 */
	PHF_MAIN_OPS = 0x2100, /* 30, 31, 32, 33 */
	PHF_N_OPS = 4,
	PHF_GENERATOR = 0x2800,
	PHF_FRAMES = 0x3000, /* of 0x80 bytes each */
};

struct php_process {
	uint8_t bytes[PHF_LEN];
	struct lang_image php;
	struct lang_mapped at;
	struct fake_process memory;
};

static inline uint64_t phf_addr(uint32_t off)
{
	return PHF_BIAS + PHF_DATA + off;
}

static inline void phf_put(struct php_process *p, uint32_t off, uint64_t value, size_t len)
{
	fake_process_put(&p->memory, off, value, len);
}

static inline void phf_string(struct php_process *p, uint32_t off, const char *text, size_t n)
{
	phf_put(p, off, 1 | 0x16ULL << 32, 8); /* a string, never freed */
	phf_put(p, off + 8, 0x8000000000000000ULL | off * 0x9e3779b97f4a7c15ULL, 8);
	phf_put(p, off + 16, n, 8);
	memcpy(p->bytes + off + 24, text, n);
}

static inline void phf_func(struct php_process *p, uint32_t off, uint8_t type, uint32_t name, uint32_t ops,
			    uint32_t line)
{
	phf_put(p, off, type, 1);
	phf_put(p, off + 8, name ? phf_addr(name) : 0, 8);
	if (type == 1)
		return;
	phf_put(p, off + 80, PHF_N_OPS, 4);
	phf_put(p, off + 88, phf_addr(ops), 8);
	phf_put(p, off + 152, phf_addr(PHF_FILE), 8);
	phf_put(p, off + 160, line - 1, 4);
	phf_put(p, off + 164, line + 5, 4);
	for (uint32_t i = 0; i < PHF_N_OPS; i++)
		phf_put(p, ops + 32 * i + 24, line + i, 4);
}

static inline uint32_t phf_frame(uint32_t i)
{
	return PHF_FRAMES + 0x80 * i;
}

/* A frame of the chain; `previous`: an address. `op`: the number of its instruction. */
static inline void phf_put_frame(struct php_process *p, uint32_t i, uint32_t func, uint32_t ops, uint32_t op,
				 uint32_t info, uint64_t previous)
{
	uint32_t off = phf_frame(i);

	phf_put(p, off, ops ? phf_addr(ops + 32 * op) : 0, 8);
	phf_put(p, off + 24, func ? phf_addr(func) : 0, 8);
	phf_put(p, off + 40, info, 4);
	phf_put(p, off + 48, previous, 8);
}

static inline void phf_init(struct php_process *p)
{
	/* mov PHF_VERSION(%rip),%rax; ret */
	static const uint8_t version[] = { 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3 };
	struct accessor *code = &p->php.php.version;
	uint32_t to = PHF_DATA + PHF_VERSION - 0x10007;

	memset(p, 0, sizeof(*p));
	fake_process_init(&p->memory, phf_addr(0), p->bytes, PHF_LEN);
	p->php.lang = MS_LANG_PHP;
	strcpy(p->php.name, "php-fpm");
	p->php.range[0] = (struct lang_range){ 0x11000, 0x12000 };
	p->php.n_ranges = 1;
	p->php.php.globals = PHF_DATA + PHF_GLOBALS;
	p->php.php.globals_size = 1800;
	p->php.php.has_registers = true;
	p->php.php.prologue = 48;
	*code = (struct accessor){ .machine = EM_X86_64, .vaddr = 0x10000, .len = sizeof(version) };
	memcpy(code->bytes, version, sizeof(version));
	memcpy(code->bytes + 3, &to, sizeof(to));
	p->at = (struct lang_mapped){ &p->php, PHF_BIAS };
	phf_put(p, PHF_VERSION, phf_addr(PHF_VERSION_TEXT), 8);
	strcpy((char *)p->bytes + PHF_VERSION_TEXT, "Zend Engine v4.2.36, Copyright (c) Zend Technologies\n");
	phf_string(p, PHF_METHOD_NAME, "run", 3);
	phf_string(p, PHF_CLASS_NAME, "App\\Job", 7);
	phf_string(p, PHF_FILE, "/srv/app.php", 12);
	phf_string(p, PHF_INTERNAL_NAME, "usleep", 6);
	phf_put(p, PHF_CLASS + 8, phf_addr(PHF_CLASS_NAME), 8);
	phf_func(p, PHF_METHOD, 2, PHF_METHOD_NAME, PHF_OPS, 10);
	phf_put(p, PHF_METHOD + 16, phf_addr(PHF_CLASS), 8);
	phf_func(p, PHF_MAIN, 2, 0, PHF_MAIN_OPS, 30);
	phf_func(p, PHF_INTERNAL, 1, PHF_INTERNAL_NAME, 0, 0);
}

/* Built for threads, which find their storage by a key of pthread_getspecific(). */
static inline void phf_threads(struct php_process *p, uint32_t key)
{
	/* mov PHF_KEY(%rip),%edi; jmp elsewhere */
	static const uint8_t storage[] = { 0x8b, 0x3d, 0, 0, 0, 0, 0xe9, 0, 0x10, 0, 0 };
	struct accessor *code = &p->php.php.storage;
	uint32_t to = PHF_DATA + PHF_KEY - 0x10106;

	p->php.php.globals = p->php.php.globals_size = 0;
	p->php.php.globals_offset = PHF_DATA + PHF_OFFSET;
	*code = (struct accessor){ .machine = EM_X86_64, .vaddr = 0x10100, .len = sizeof(storage) };
	memcpy(code->bytes, storage, sizeof(storage));
	memcpy(code->bytes + 2, &to, sizeof(to));
	phf_put(p, PHF_OFFSET, PHF_GLOBALS - PHF_STORAGE, 8);
	phf_put(p, PHF_KEY, key, 4);
}

/* The words of a frame of `func`, with a line and flags. */
static inline void phf_words(const struct php_process *p, uint32_t func, uint32_t line, uint64_t words[2])
{
	uint64_t name, scope, ops, lines = 0, hash = 0;

	memcpy(&name, p->bytes + func + 8, 8);
	memcpy(&scope, p->bytes + func + 16, 8);
	memcpy(&ops, p->bytes + func + 88, 8);
	if (p->bytes[func] != 1) {
		memcpy(&lines, p->bytes + func + 160, 8);
		memcpy(&hash, p->bytes + PHF_FILE + 8, 8);
	}
	words[0] = phf_addr(func) | MS_FRAME_LANG << MS_FRAME_TAG_SHIFT;
	words[1] = MS_FRAME_LANG_AT << MS_FRAME_TAG_SHIFT | (uint64_t)MS_LANG_PHP << MS_LANG_SHIFT |
		   ms_php_cookie(name, scope, ops, lines, hash) | line;
}

#endif
