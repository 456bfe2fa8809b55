/*
 * PHP in an image and in a process: the command line's, php-fpm, libphp in a web server and programs that embed it look
 * the same. Its functions are exported, for extensions are linked against them.
 *
 * Built for threads (ZTS: FrankenPHP, web servers with threads) each thread has its own globals, in its storage (TSRM/TSRM.c):
 *
 *   pthread_getspecific(tls_key) ─► tsrm_tls_entry, … + executor_globals_offset: executor_globals
 */
#include "lang/php.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const php_symbols[PHP_N_SYMBOLS] = {
	[PHP_EXECUTE] = "execute_ex",
	[PHP_GLOBALS] = "executor_globals",
	[PHP_ZEND_VERSION] = "get_zend_version",
	[PHP_GLOBALS_OFFSET] = "executor_globals_offset",
	[PHP_THREAD_STORAGE] = "tsrm_get_ls_cache",
};

/* --- in an image --- */

enum { PROLOGUE_MAX = 128, INSN_BYTES = 3, REG_FRAME = 14, REG_OPLINE = 15 };

/* Behind the first of these instructions in the code; 0: it is not there. */
static size_t behind(const uint8_t code[PROLOGUE_MAX], const uint8_t insn[INSN_BYTES])
{
	const uint8_t *at = memmem(code, PROLOGUE_MAX, insn, INSN_BYTES);

	return at ? (size_t)(at - code) + INSN_BYTES : 0;
}

/*
 * GCC keeps two variables of execute_ex() in registers of their own (ZEND_VM_FP_GLOBAL_REG, ZEND_VM_IP_GLOBAL_REG), clang
 * does not. They are loaded at its begin, from its argument.
 */
static void find_registers(struct elf_file *elf, uint64_t vaddr, struct php_image *php)
{
	static const uint8_t frame[] = { 0x49, 0x89, 0xfe };    /* mov %rdi,%r14   */
	static const uint8_t opline[] = { 0x4c, 0x8b, 0x3f };   /* mov (%rdi),%r15 */
	static const uint8_t by_frame[] = { 0x4d, 0x8b, 0x3e }; /* mov (%r14),%r15 */
	const struct elf_segment *segs;
	uint8_t code[PROLOGUE_MAX];
	size_t to_frame, to_op;
	uint64_t off;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	if (elf_file_machine(elf) != EM_X86_64 ||
	    !elf_segments_vaddr_to_off(segs, n, vaddr, &off) ||
	    elf_file_read(elf, off, code, sizeof(code), NULL) < 0)
		return;
	to_frame = behind(code, frame);
	to_op = behind(code, opline);
	if (!to_op)
		to_op = behind(code, by_frame);
	php->has_registers = to_frame && to_op;
	php->prologue = (uint8_t)(to_frame > to_op ? to_frame : to_op);
}

int php_image_read(struct elf_file *elf, const struct elf_export syms[PHP_N_SYMBOLS],
		   struct lang_image *image, struct err *e)
{
	struct php_image php = { 0 };
	int r;

	if (!syms[PHP_EXECUTE].vaddr || !syms[PHP_ZEND_VERSION].vaddr || !elf_file_is64(elf) ||
	    (!syms[PHP_GLOBALS].vaddr && !syms[PHP_GLOBALS_OFFSET].vaddr))
		return -ENOENT;
	php.globals = syms[PHP_GLOBALS].vaddr;
	php.globals_size = syms[PHP_GLOBALS].size;
	if (!php.globals && syms[PHP_THREAD_STORAGE].vaddr) {
		php.globals_offset = syms[PHP_GLOBALS_OFFSET].vaddr;
		r = accessor_load(elf, syms[PHP_THREAD_STORAGE].vaddr,
				  syms[PHP_THREAD_STORAGE].size, &php.storage, e);
		if (r < 0)
			return r;
	}
	r = accessor_load(elf, syms[PHP_ZEND_VERSION].vaddr, syms[PHP_ZEND_VERSION].size,
			  &php.version, e);
	if (r < 0)
		return r;
	r = lang_ranges(elf, &syms[PHP_EXECUTE], image, e);
	if (r < 0)
		return r;
	find_registers(elf, syms[PHP_EXECUTE].vaddr, &php);
	image->php = php;
	return 0;
}

/* --- its version --- */

struct version_search {
	const struct lang_mapped *runtime;
	const struct lang_memory *mem;
	bool is_waiting; /* where it will be is known, there is nothing yet */
	uint32_t version;
};

uint32_t php_version_of(const char *text)
{
	unsigned major, minor, patch;

	if (sscanf(text, "Zend Engine v%2u.%2u.%3u", &major, &minor, &patch) != 3 || patch > 255)
		return 0;
	if (major == 3)
		major = 7;
	else if (major == 4)
		major = 8;
	else
		major += 100; /* there is none yet; no row has it */
	return major << 16 | minor << 8 | patch;
}

static void take_version(void *ctx, const struct place *value)
{
	struct version_search *s = ctx;
	uint64_t addr = (uint64_t)value->off[0] + s->runtime->bias;
	char text[32] = "";

	if (value->base != PLACE_IMAGE)
		return;
	s->is_waiting = true;
	for (uint8_t i = 0; i < value->reads; i++) {
		if (!lang_read(s->mem, addr, &addr, sizeof(addr)) || !addr)
			return;
		addr += (uint64_t)value->off[i + 1];
	}
	if (lang_read(s->mem, addr, text, sizeof(text) - 1))
		s->version = php_version_of(text);
}

/* --- in a process --- */

/* 8.0 is from the headers; the others were compared with running programs, 8.2 also with one that is built for threads. */
static const struct php_layout layouts[] = {
	{ 0x0704, 488, 64, 60, 136, 64, 200, 160, false },
	{ 0x0800, 488, 72, 68, 144, 64, 200, 160, true },
	{ 0x0801, 488, 72, 68, 144, 56, 184, 152, false },
	{ 0x0802, 488, 88, 80, 152, 56, 184, 152, false, true },
	{ 0x0803, 488, 80, 76, 144, 56, 184, 152, false },
	{ 0x0804, 488, 104, 96, 168, 56, 184, 152, false },
	{ 0x0805, 512, 104, 96, 168, 56, 184, 152, false },
};

const struct php_layout *php_layout_of(uint32_t version)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].version == version >> 8)
			return &layouts[i];
	return NULL;
}

/* --- its threads --- */

enum { STORAGE_MAX = 1 << 24, KEYS_MAX = 1024 };

struct key_search {
	const struct lang_mapped *runtime;
	const struct lang_memory *mem;
	bool found;
	uint32_t key;
};

/* pthread_getspecific(tls_key) */
static void take_key(void *ctx, const struct place *arg)
{
	struct key_search *s = ctx;

	if (arg->base != PLACE_IMAGE || arg->reads != 1 || arg->last_bytes != 4 || arg->off[1])
		return;
	s->found |= lang_read(s->mem, (uint64_t)arg->off[0] + s->runtime->bias, &s->key,
			      sizeof(s->key)) &&
		    s->key < KEYS_MAX;
}

/* How a thread finds its storage, and where its globals are in that. The offset is set after the key has been made. */
static int find_storage(const struct lang_mapped *runtime, const struct lang_image *libc,
			const struct lang_memory *mem, const struct php_layout *l,
			struct lang_runtime *rt, struct err *e)
{
	const struct php_image *php = &runtime->image->php;
	struct key_search s = { .runtime = runtime, .mem = mem };
	uint64_t offset;

	if (!php->storage.len)
		return err_set(e, -EOPNOTSUPP, "%s: how its threads find their state is not known",
			       rt->name);
	if (!lang_read(mem, php->globals_offset + runtime->bias, &offset, sizeof(offset)) ||
	    !offset || offset > STORAGE_MAX)
		return err_set(e, -EAGAIN, "%s has not been initialized", rt->name);
	accessor_follow(&php->storage, 0, &(struct accessor_fn){ .calls = take_key, .ctx = &s });
	if (!s.found)
		return err_set(e, -EOPNOTSUPP,
			       "%s: how its threads find their state cannot be read from "
			       "tsrm_get_ls_cache()",
			       rt->name);
	rt->row.php.current = (uint32_t)offset + l->current;
	return lang_thread_slot(libc, s.key, &rt->row, e);
}

static void fill(const struct lang_mapped *runtime, const struct php_layout *l,
		 struct lang_runtime *rt)
{
	const struct php_image *php = &runtime->image->php;
	struct ms_php *row = &rt->row.php;

	rt->lang = MS_LANG_PHP;
	rt->untested = l->untested || php->version.machine != EM_X86_64 ||
		       (!php->globals && !l->tried_threads);
	rt->row.lang = MS_LANG_PHP;
	rt->row.thread = MS_THREAD_GLOBAL;
	rt->row.off = php->globals + runtime->bias + l->current;
	lang_ranges_mapped(runtime, &rt->row);
	row->func_ops = l->ops;
	row->func_n_ops = l->n_ops;
	row->func_file = l->file;
	row->generator_frame = l->generator_frame;
	row->generator_fake = l->generator_fake;
	row->generator_parent = l->generator_parent;
	if (php->has_registers) {
		row->frame_reg = REG_FRAME;
		row->opline_reg = REG_OPLINE;
		row->prologue = php->prologue;
	}
}

int php_find(const struct lang_mapped *runtime, const struct lang_mapped *libc,
	     const struct lang_memory *mem, struct lang_runtime *ret_runtime, struct err *e)
{
	const struct php_image *php = &runtime->image->php;
	struct version_search s = { .runtime = runtime, .mem = mem };
	const char *file = runtime->image->name;
	const struct php_layout *l;
	struct lang_runtime rt = { 0 };
	int r = 0;

	accessor_follow(&php->version, 0,
			&(struct accessor_fn){ .returns = take_version, .ctx = &s });
	if (!s.version && s.is_waiting)
		return err_set(e, -EAGAIN, "%s: PHP has not been initialized", file);
	if (!s.version)
		return err_set(e, -EOPNOTSUPP, "%s: has PHP, but its version is not known", file);
	rt.version = s.version;
	snprintf(rt.name, sizeof(rt.name), "PHP %u.%u.%u%s", s.version >> 16, s.version >> 8 & 0xff,
		 s.version & 0xff, php->globals ? "" : " ZTS");
	l = php_layout_of(s.version);
	if (!l)
		return err_set(e, -EOPNOTSUPP, "%s: of PHP, 7.4 to 8.5 can be read", rt.name);
	if (php->globals && php->globals_size < l->current + 8u)
		return err_set(e, -EOPNOTSUPP, "%s: its executor_globals has only %llu bytes",
			       rt.name, (unsigned long long)php->globals_size);
	fill(runtime, l, &rt);
	if (!php->globals)
		r = find_storage(runtime, libc ? libc->image : NULL, mem, l, &rt, e);
	if (r < 0)
		return r;
	*ret_runtime = rt;
	return 0;
}
