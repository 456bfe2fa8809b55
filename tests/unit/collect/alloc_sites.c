/* Where probes go in files that are here: the C library's, and programs with and without names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cell_fixture.h"
#include "collect/stream/alloc_sites.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBC "libc.so.6"
#define NEAR 64 /* a probe may lie some instructions into its function */

static int no_debug(void *ctx, const char *path, bool host)
{
	return -ENOENT;
}

static struct alloc_sites find_in(const char *path, bool moved)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct alloc_image im = { .fd = fd, .path = path, .open_debug = no_debug };
	struct alloc_sites sites;

	assert_true(fd >= 0);
	alloc_sites_find(&im, moved, false, &sites);
	return sites;
}

/* By this process's own mappings: the file, and the offset in it of one of the C library's functions. */
static uint64_t offset_of(const char *function, char ret_path[256])
{
	void *libc = dlopen(LIBC, RTLD_NOW | RTLD_NOLOAD);
	uint64_t at = (uint64_t)(uintptr_t)dlsym(libc, function), low, high, off, found = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	assert_non_null(libc);
	assert_true(at != 0);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255s", &low, &high, &off, ret_path) ==
			    4 &&
		    at >= low && at < high) {
			found = at - low + off;
			break;
		}
	fclose(f);
	dlclose(libc);
	assert_true(found != 0);
	return found;
}

static const struct alloc_site *site_at(const struct alloc_sites *s, uint64_t off)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->site[i].off >= off && s->site[i].off < off + NEAR)
			return &s->site[i];
	return NULL;
}

static void functions_of_the_c_library_are_found_where_they_are(void **state)
{
	static const struct {
		const char *name;
		enum ms_shape shape;
		bool main;
	} functions[] = {
		{ "malloc", MS_SHAPE_SIZE, true },
		{ "calloc", MS_SHAPE_COUNT_SIZE, false },
		{ "realloc", MS_SHAPE_REALLOC, false },
		{ "posix_memalign", MS_SHAPE_OUT_PTR, false },
		{ "free", MS_SHAPE_FREE, true },
	};

	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		char path[256];
		uint64_t off = offset_of(functions[i].name, path);
		struct alloc_sites sites = find_in(path, false);
		const struct alloc_site *site = site_at(&sites, off);

		assert_non_null(site);
		assert_int_equal(site->shape, functions[i].shape);
		assert_int_equal(site->main, functions[i].main);
		alloc_sites_fini(&sites);
	}
}

/* Two at one place would count each call twice. */
static void no_place_has_two_probes(void **state)
{
	char path[256];
	struct alloc_sites sites;

	offset_of("malloc", path);
	sites = find_in(path, true);
	assert_in_range(sites.n, 5, ALLOC_SITES_MAX);
	for (uint32_t i = 0; i < sites.n; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_true(sites.site[i].off != sites.site[k].off);
	alloc_sites_fini(&sites);
}

/* Without cookies a probe finds its arguments only where the function begins. */
static void without_cookies_nothing_is_where_it_is_not_at_the_entry(void **state)
{
	char path[256];
	struct alloc_sites sites;

	offset_of("malloc", path);
	sites = find_in(path, false);
	for (uint32_t i = 0; i < sites.n; i++)
		assert_int_equal(sites.site[i].place & MS_COOKIE_MOVED, 0);
	alloc_sites_fini(&sites);
}

static void a_program_that_calls_an_allocator_has_none_of_its_own(void **state)
{
	struct alloc_sites sites = find_in("/proc/self/exe", true);

	assert_int_equal(sites.n, 0);
	assert_false(sites.nameless);
	assert_null(sites.hidden);
	alloc_sites_fini(&sites);
}

static void what_is_no_elf_file_has_no_sites(void **state)
{
	struct alloc_sites sites = find_in("/proc/self/maps", true);

	assert_int_equal(sites.n, 0);
	assert_false(sites.nameless);
	alloc_sites_fini(&sites);
}

static void a_program_without_names_is_said_to_be_that(void **state)
{
	struct alloc_sites sites;
	char path[64];

	stripped_copy(path);
	sites = find_in(path, true);
	unlink(path);
	assert_int_equal(sites.n, 0);
	assert_true(sites.nameless);
	alloc_sites_fini(&sites);
}

/* As if malloc had lost its name: the probe is where it is with it. */
static void a_function_that_is_known_otherwise_is_probed_like_one_with_a_name(void **state)
{
	uint64_t probed[2] = { 1, 1 }, off;
	struct alloc_sites sites, named;
	struct alloc_function f[2] = { { .size = 256, .shape = MS_SHAPE_SIZE },
				       { .vaddr = 1, .size = 1, .shape = MS_SHAPE_SIZE } };
	struct alloc_image im = { .open_debug = no_debug };
	_cleanup_(closep) int fd = -1;
	char path[256];

	off = offset_of("malloc", path);
	f[0].vaddr = off; /* a library's first segments are at their offsets */
	im.path = path;
	im.fd = fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(alloc_sites_of(&im, f, 1, true, &sites, probed), 0);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.site[0].shape, MS_SHAPE_SIZE);
	assert_int_equal(probed[0], sites.site[0].off);
	named = find_in(path, true);
	assert_non_null(site_at(&named, off));
	assert_int_equal(site_at(&named, off)->off, sites.site[0].off);
	assert_int_equal(site_at(&named, off)->place, sites.site[0].place);
	alloc_sites_fini(&named);
	alloc_sites_fini(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_the_c_library_are_found_where_they_are),
		cmocka_unit_test(no_place_has_two_probes),
		cmocka_unit_test(without_cookies_nothing_is_where_it_is_not_at_the_entry),
		cmocka_unit_test(a_program_that_calls_an_allocator_has_none_of_its_own),
		cmocka_unit_test(what_is_no_elf_file_has_no_sites),
		cmocka_unit_test(a_program_without_names_is_said_to_be_that),
		cmocka_unit_test(a_function_that_is_known_otherwise_is_probed_like_one_with_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
