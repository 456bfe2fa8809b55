/* What a file has for those who listen to samplers, by a cell: what is there, and nothing that does not hold together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/put.h"
#include "cell_fixture.h"
#include "collect/probes/sampler_places.h"
#include "elf/elf_file.h"
#include "preload/sites.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* As an allocator with the sites of the contract, in this program. */
__attribute__((noinline)) static int allocate(uintptr_t addr, uintptr_t size, uintptr_t weight)
{
	SITE_OF_THREE("otel_memory", "alloc", addr, size, weight);
	return size > 3;
}

__attribute__((noinline)) static int release(uintptr_t addr)
{
	SITE_OF_ONE("otel_memory", "free", addr);
	return addr > 3;
}

/* As jemalloc's control function. */
int mallctl(void);
int mallctl(void)
{
	return 7;
}

static bool kills;

static int no_debug(void *ctx, const char *path, bool host)
{
	(void)ctx;
	(void)path;
	(void)host;
	if (kills)
		kill_the_cell();
	return -ENOENT;
}

static struct alloc_image image_of(const char *path)
{
	struct alloc_image im = { open(path, O_RDONLY | O_CLOEXEC), path, no_debug, NULL };

	assert_true(im.fd >= 0);
	return im;
}

enum { ALL = SAMPLER_ASK_NOTES | SAMPLER_ASK_OWN | SAMPLER_ASK_CONTROL };

static void a_cell_finds_the_sites_of_a_file(void **state)
{
	struct alloc_image im = image_of("/proc/self/exe");
	struct sampler_places p;
	struct err e;

	(void)state;
	assert_int_equal(allocate(1, 2, 3) + release(1) + mallctl(), 7);
	assert_int_equal(sampler_places_ask(&im, ALL, 0, &p, &e), 0);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_ALLOC], 1);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_FREE], 1);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_UNTRACKED], 0);
	assert_int_equal(p.n_left_out, 0);
	assert_int_equal(p.sites[SAMPLE_NOTE_ALLOC][0].n_args, 3);
	assert_int_equal(p.sites[SAMPLE_NOTE_FREE][0].n_args, 1);
	assert_true(p.sites[SAMPLE_NOTE_ALLOC][0].off != p.sites[SAMPLE_NOTE_FREE][0].off);
#if defined(__x86_64__)
	for (uint32_t kind = 0; kind < SAMPLE_NOTE_UNTRACKED; kind++) {
		uint8_t byte = 0;

		assert_int_equal(pread(im.fd, &byte, 1, (off_t)p.sites[kind][0].off), 1);
		assert_int_equal(byte, 0x90);
	}
#endif
	assert_string_equal(p.control, "MALLOC_CONF");
	assert_true(p.is_mapped);
	assert_null(p.found.sampler);
	close(im.fd);
}

static void what_is_not_asked_for_is_not_there(void **state)
{
	struct alloc_image im = image_of("/proc/self/exe");
	struct sampler_places p;
	struct err e;

	(void)state;
	assert_int_equal(sampler_places_ask(&im, SAMPLER_ASK_OWN, 0, &p, &e), 0);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_ALLOC], 0);
	assert_null(p.control);
	assert_true(p.is_mapped);
	close(im.fd);
}

static void what_is_no_elf_file_has_nothing(void **state)
{
	struct alloc_image im = image_of("/etc/passwd");
	struct sampler_places p;
	struct err e;

	(void)state;
	assert_int_equal(sampler_places_ask(&im, ALL, 0, &p, &e), 0);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_ALLOC], 0);
	assert_null(p.found.kind);
	assert_false(p.is_mapped);
	close(im.fd);
}

/*
 * This program as a library of jemalloc that was stripped has a sampler, by what it imports, and its functions no name: debug files are
 * asked for. The cell is killed while it waits for one.
 */
void *imported(void);
extern int _Unwind_Backtrace(void *, void *);
void *imported(void)
{
	return (void *)_Unwind_Backtrace;
}

static void a_cell_that_dies_costs_one_file_its_sampler(void **state)
{
	struct alloc_image im = image_of("/proc/self/exe");
	struct sampler_places p;
	struct err e;

	(void)state;
	assert_non_null(imported());
	kills = true;
	assert_int_equal(sampler_places_ask(&im, ALL, 0, &p, &e), -EBADMSG);
	kills = false;
	assert_non_null(strstr(e.msg, "ended early"));
	assert_int_equal(p.n_sites[SAMPLE_NOTE_ALLOC], 0);
	assert_null(p.control);
	assert_int_equal(sampler_places_ask(&im, ALL, 0, &p, &e), 0);
	assert_string_equal(p.found.kind, "jemalloc");
	assert_ptr_equal(p.found.why, sampler_whys[SAMPLER_WHY_JEMALLOC_NAMES]);
	assert_true(p.control_samples);
	close(im.fd);
}

/* --- answers, as a cell that was taken over may give them --- */

enum { FILE_BYTES = 0x1000 };

/* Where what is bent begins. */
enum {
	AT_LEFT_OUT = 0,
	AT_N_ALLOC = 4,
	AT_SITE = 5,
	AT_N_ARGS = AT_SITE + 16,
	AT_ARG = AT_N_ARGS + 1,
	AT_N_FREE = AT_ARG + 3 * 12,
	AT_FOUND = AT_N_FREE + 2,
	AT_RATE = AT_FOUND + 4,
	AT_OWN_SITE = AT_RATE + 16,
	AT_IS_MAPPED = AT_OWN_SITE + 2 * 16,
	AT_CONTROL = AT_IS_MAPPED + 9,
	BYTES = AT_CONTROL + 2,
};

static uint8_t row_of(const char *name)
{
	uint8_t i = 0;

	while (strcmp(samplers[i].name, name) != 0)
		i++;
	return (uint8_t)(i + 1);
}

/* A site with three arguments, and jemalloc's sampler. */
static void put_answer(struct strbuf *b)
{
	uint8_t row = row_of("jemalloc");

	put_u32(b, 0);
	put_u8(b, 1);
	put_u64(b, FILE_BYTES - 1);
	put_u64(b, FILE_BYTES - 2);
	put_u8(b, 3);
	for (uint8_t i = 0; i < 3; i++) {
		put_u8(b, i);
		put_u8(b, 8);
		put_u8(b, 1);
		put_u8(b, 31);
		put_u64(b, UINT64_MAX);
	}
	put_u8(b, 0);
	put_u8(b, 0);
	put_u8(b, row);
	put_u8(b, row);
	put_u8(b, 0);
	put_u8(b, 0);
	put_u64(b, 0x5000);
	put_u64(b, 0x6000);
	for (uint64_t i = 0; i < 2; i++) {
		put_u64(b, 0x2000 + i);
		put_u64(b, FILE_BYTES - 1 - i);
	}
	put_u8(b, 1);
	put_u64(b, 0x1000);
	put_u8(b, 1);
	put_u8(b, 1);
	assert_int_equal(b->len, BYTES);
}

static int take(const void *data, size_t len, struct sampler_places *ret)
{
	static const struct sampler_places none;
	int r = sampler_places_take(bytes_of(data, len), FILE_BYTES, ret);

	if (r < 0) {
		assert_memory_equal(ret->n_sites, none.n_sites, sizeof(none.n_sites));
		assert_null(ret->found.sampler);
		assert_null(ret->found.kind);
		assert_null(ret->control);
		assert_int_equal(ret->found.n_sites, 0);
	}
	return r;
}

static int take_part(const void *data, size_t len)
{
	struct sampler_places x;

	return take(data, len, &x);
}

static void an_answer_that_holds_together_is_taken(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct sampler_places p;

	(void)state;
	put_answer(&b);
	assert_int_equal(take(b.s, b.len, &p), 0);
	assert_int_equal(p.n_sites[SAMPLE_NOTE_ALLOC], 1);
	assert_int_equal(p.sites[SAMPLE_NOTE_ALLOC][0].n_args, 3);
	assert_int_equal(p.sites[SAMPLE_NOTE_ALLOC][0].args[1].kind, SDT_ARG_MEMORY);
	assert_int_equal(p.sites[SAMPLE_NOTE_ALLOC][0].args[2].value, -1);
	assert_string_equal(p.found.sampler->name, "jemalloc");
	assert_int_equal(p.found.n_sites, 2);
	assert_int_equal(p.found.sites[1].off, FILE_BYTES - 2);
	assert_int_equal(p.vaddr, 0x1000);
	assert_string_equal(p.control, "MALLOC_CONF");
}

static void an_answer_that_is_cut_is_none(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct sampler_places p;

	(void)state;
	put_answer(&b);
	assert_no_part_is_taken(b.s, b.len, take_part);
	put_u8(&b, 0);
	assert_int_equal(take(b.s, b.len, &p), -EBADMSG);
}

static void an_answer_that_lies_is_none(void **state)
{
	const struct {
		size_t at, len;
		uint64_t value;
	} lies[] = {
		{ AT_LEFT_OUT, 4, UINT32_MAX },
		{ AT_N_ALLOC, 1, SAMPLE_NOTES_MAX + 1 }, /* more than there is room for */
		{ AT_N_ALLOC, 1, 255 },
		{ AT_SITE, 8, FILE_BYTES }, /* behind the file's end       */
		{ AT_SITE + 8, 8, FILE_BYTES },
		{ AT_N_ARGS, 1, 2 }, /* fewer than its note has     */
		{ AT_N_ARGS, 1, 4 },
		{ AT_ARG, 1, SDT_ARG_CONST + 1 },
		{ AT_ARG + 1, 1, 3 }, /* bytes of no register        */
		{ AT_ARG + 2, 1, 2 },
		{ AT_ARG + 3, 1, 32 }, /* no register                 */
		{ AT_N_FREE, 1, SAMPLE_NOTES_MAX + 1 },
		{ AT_FOUND, 1, n_samplers + 1 },     /* no sampler                  */
		{ AT_FOUND, 1, row_of("tcmalloc") }, /* not what it is said to be   */
		{ AT_FOUND, 1, 0 },                  /* none, and no reason         */
		{ AT_FOUND + 1, 1, n_samplers + 1 },
		{ AT_FOUND + 1, 1, 0 },
		{ AT_FOUND + 2, 1, SAMPLER_N_WHYS + 1 },
		{ AT_FOUND + 2, 1, 1 }, /* it can, and it cannot       */
		{ AT_FOUND + 3, 1, 1 }, /* only Go's linker does that  */
		{ AT_RATE, 8, 0 },      /* it has a variable for that  */
		{ AT_OWN_SITE + 8, 8, FILE_BYTES },
		{ AT_OWN_SITE + 24, 8, UINT64_MAX },
		{ AT_IS_MAPPED, 1, 2 },
		{ AT_CONTROL, 1, n_sampler_controls + 1 },
		{ AT_CONTROL + 1, 1, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };
		struct sampler_places p;

		put_answer(&b);
		memcpy(b.s + lies[i].at, &lies[i].value, lies[i].len);
		assert_int_equal(take(b.s, b.len, &p), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_finds_the_sites_of_a_file),
		cmocka_unit_test(what_is_not_asked_for_is_not_there),
		cmocka_unit_test(what_is_no_elf_file_has_nothing),
		cmocka_unit_test(a_cell_that_dies_costs_one_file_its_sampler),
		cmocka_unit_test(an_answer_that_holds_together_is_taken),
		cmocka_unit_test(an_answer_that_is_cut_is_none),
		cmocka_unit_test(an_answer_that_lies_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
