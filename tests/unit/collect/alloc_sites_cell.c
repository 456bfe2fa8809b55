/* Where allocation probes go, by a cell: what it finds is what the finder finds, and nothing that it says is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/put.h"
#include "cell_fixture.h"
#include "collect/stream/alloc_sites_cell.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

static uint32_t n_asked;
static bool kills;

static int no_debug(void *ctx, const char *path, bool host)
{
	(void)ctx;
	(void)host;
	assert_int_equal(path[0], '/');
	n_asked++;
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

static void a_cell_finds_what_is_in_the_file(void **state)
{
	struct alloc_image im = image_of(path_of_the_c_library());
	struct alloc_sites here, there;
	struct err e;

	(void)state;
	alloc_sites_find(&im, true, false, &here);
	assert_int_equal(alloc_sites_ask(&im, true, false, &there, &e), 0);
	assert_in_range(here.n, 5, ALLOC_SITES_MAX);
	assert_int_equal(there.n, here.n);
	for (uint32_t i = 0; i < here.n; i++) {
		assert_int_equal(there.site[i].off, here.site[i].off);
		assert_int_equal(there.site[i].place, here.site[i].place);
		assert_int_equal(there.site[i].shape, here.site[i].shape);
		assert_int_equal(there.site[i].main, here.site[i].main);
		assert_int_equal(there.site[i].emulated, here.site[i].emulated);
	}
	assert_int_equal(there.own_new, here.own_new);
	alloc_sites_fini(&here);
	alloc_sites_fini(&there);
	close(im.fd);
}

static void a_cell_finds_functions_that_are_known_otherwise(void **state)
{
	struct alloc_function f[2] = { { .size = 256, .shape = MS_SHAPE_SIZE },
				       { .vaddr = 1, .size = 1, .shape = MS_SHAPE_FREE } };
	struct alloc_image im = image_of(path_of_the_c_library());
	struct alloc_sites here, there;
	uint64_t probed[2][2] = { { 1, 1 }, { 1, 1 } };
	struct link_map *map = NULL;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	(void)state;
	assert_int_equal(dlinfo(libc, RTLD_DI_LINKMAP, &map), 0);
	f[0].vaddr = (uint64_t)(uintptr_t)dlsym(libc, "malloc") - map->l_addr;
	dlclose(libc);
	assert_int_equal(alloc_sites_of(&im, f, 2, true, &here, probed[0]), 0);
	assert_int_equal(alloc_sites_ask_of(&im, f, 2, true, &there, probed[1], NULL), 0);
	assert_true(probed[0][0] != 0);
	assert_memory_equal(probed[0], probed[1], sizeof(probed[0]));
	assert_int_equal(there.n, here.n);
	assert_int_equal(there.site[0].off, here.site[0].off);
	alloc_sites_fini(&here);
	alloc_sites_fini(&there);
	close(im.fd);
}

/* What is no ELF file is none that failed. */
static void what_is_no_elf_file_has_no_sites(void **state)
{
	struct alloc_image im = image_of("/etc/passwd");
	struct alloc_sites sites;
	struct err e;

	(void)state;
	assert_int_equal(alloc_sites_ask(&im, true, false, &sites, &e), 0);
	assert_int_equal(sites.n, 0);
	assert_false(sites.nameless);
	alloc_sites_fini(&sites);
	close(im.fd);
}

/* It asks for debug files of a program without names, and is killed while it waits for one. */
static void a_cell_that_dies_costs_one_file_its_sites(void **state)
{
	char path[64];
	struct alloc_sites sites;
	struct alloc_image im;
	struct err e;

	(void)state;
	stripped_copy(path);
	im = image_of(path);
	unlink(path);
	n_asked = 0;
	kills = true;
	assert_int_equal(alloc_sites_ask(&im, true, false, &sites, &e), -EBADMSG);
	kills = false;
	assert_int_equal(n_asked, 1);
	assert_non_null(strstr(e.msg, "ended early"));
	assert_int_equal(sites.n, 0);
	assert_false(sites.nameless);
	alloc_sites_fini(&sites);
	assert_int_equal(alloc_sites_ask(&im, true, false, &sites, &e), 0);
	assert_true(sites.nameless);
	assert_true(n_asked > 2);
	alloc_sites_fini(&sites);
	close(im.fd);
}

/* --- answers, as a cell that was taken over may give them --- */

enum { FILE_BYTES = 0x1000, HEAD = 4 + 1 + 1 + 4, SITE = 18 };

static const struct alloc_function function = { .vaddr = 0x500, .size = 9, .shape = MS_SHAPE_SIZE };

/* Two sites, and where a function's probe is. */
static void put_answer(struct strbuf *b)
{
	put_u32(b, 0);
	put_u8(b, 2); /* without names */
	put_u8(b, 1);
	put_u32(b, 2);
	for (uint64_t i = 0; i < 2; i++) {
		put_u64(b, FILE_BYTES - 1 - i);
		put_u64(b, MS_COOKIE_MOVED | 0xffff0321);
		put_u8(b, MS_N_SHAPES - 1);
		put_u8(b, 3);
	}
	put_u64(b, function.vaddr + 9);
}

static int take(const void *data, size_t len, struct alloc_sites *ret, uint64_t *ret_probed)
{
	int r = alloc_sites_take(bytes_of(data, len), FILE_BYTES, &function, 1, ret, ret_probed);

	if (r < 0) {
		assert_int_equal(ret->n, 0);
		assert_null(ret->site);
		assert_null(ret->hidden);
		assert_int_equal(*ret_probed, 0);
	}
	return r;
}

static int take_part(const void *data, size_t len)
{
	struct alloc_sites x;
	uint64_t probed[2] = { 0 };

	return take(data, len, &x, probed);
}

static void an_answer_that_holds_together_is_taken(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct alloc_sites sites;
	uint64_t probed;

	(void)state;
	put_answer(&b);
	assert_int_equal(take(b.s, b.len, &sites, &probed), 0);
	assert_int_equal(sites.n, 2);
	assert_true(sites.nameless);
	assert_false(sites.own_new);
	assert_string_equal(sites.hidden, allocator_traces[0].allocator);
	assert_int_equal(sites.site[1].off, FILE_BYTES - 2);
	assert_int_equal(probed, function.vaddr + 9);
	alloc_sites_fini(&sites);
}

static void an_answer_that_is_cut_is_none(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct alloc_sites sites;
	uint64_t probed;

	(void)state;
	put_answer(&b);
	assert_no_part_is_taken(b.s, b.len, take_part);
	put_u8(&b, 0);
	assert_int_equal(take(b.s, b.len, &sites, &probed), -EBADMSG);
}

static void an_answer_that_lies_is_none(void **state)
{
	static const struct {
		size_t at, len;
		uint64_t value;
	} lies[] = {
		{ 0, 4, 1 }, /* a code that is none       */
		{ 0, 4, (uint32_t)-4096 },
		{ 4, 1, 0x10 }, /* flags that are none       */
		{ 5, 1, 200 },  /* an allocator that is none */
		{ 6, 4, 3 },    /* more sites than there are */
		{ 6, 4, ALLOC_SITES_MAX + 1 },
		{ 6, 4, UINT32_MAX },
		{ HEAD, 8, FILE_BYTES }, /* behind the file's end     */
		{ HEAD + SITE, 8, UINT64_MAX },
		{ HEAD + 8, 8, 1ULL << MS_COOKIE_SHAPE_SHIFT }, /* another shape in the cookie */
		{ HEAD + 16, 1, MS_N_SHAPES },
		{ HEAD + 17, 1, 4 },
		{ HEAD + 2 * SITE, 8, 0x4ff }, /* a probe outside its function */
		{ HEAD + 2 * SITE, 8, 0x500 + 513 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		_cleanup_(strbuf_free) struct strbuf b = { 0 };
		struct alloc_sites sites;
		uint64_t probed;

		put_answer(&b);
		memcpy(b.s + lies[i].at, &lies[i].value, lies[i].len);
		assert_int_equal(take(b.s, b.len, &sites, &probed), -EBADMSG);
	}
}

static void an_error_of_the_finder_is_that_error(void **state)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	struct alloc_sites sites;
	uint64_t probed;

	(void)state;
	put_answer(&b);
	memcpy(b.s, &(int32_t){ -ENOEXEC }, 4);
	assert_int_equal(take(b.s, b.len, &sites, &probed), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_finds_what_is_in_the_file),
		cmocka_unit_test(a_cell_finds_functions_that_are_known_otherwise),
		cmocka_unit_test(what_is_no_elf_file_has_no_sites),
		cmocka_unit_test(a_cell_that_dies_costs_one_file_its_sites),
		cmocka_unit_test(an_answer_that_holds_together_is_taken),
		cmocka_unit_test(an_answer_that_is_cut_is_none),
		cmocka_unit_test(an_answer_that_lies_is_none),
		cmocka_unit_test(an_error_of_the_finder_is_that_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
