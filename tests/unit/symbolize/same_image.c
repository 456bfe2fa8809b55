#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbolize/same_image.h"
#include "unit/elf/elf_image.h"

enum { ROOTS = 4 };

static const char build_id[] = "deadbeef000102ff"; /* of every image of elf_image.h */

/* Up to four containers, each with its own copy of a file, and perhaps with debug info for it. */
struct fixture {
	struct dict *d;
	struct image image;
	module_id modules[ROOTS];
	const char *renamed[ROOTS]; /* what its copy calls the function hot_loop; same length */
	bool debug[ROOTS];
	struct symbolize_opts opts;
	struct symbolize_stats st;
};

static int root_of(const struct fixture *f, module_id m)
{
	int i = 0;

	while (f->modules[i].ix != m.ix)
		assert_true(++i < ROOTS);
	return i;
}

static int copy_of(struct fixture *f, const char *name)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);
	uint8_t bytes[IMAGE_CAP], *at = bytes;

	memcpy(bytes, f->image.bytes, f->image.len);
	if (name) {
		at = memmem(bytes, f->image.len, "hot_loop", 8);
		memcpy(at, name, 8);
	}
	assert_int_equal(write(fd, bytes, f->image.len), f->image.len);
	return fd;
}

static int open_module(void *ctx, module_id m, struct err *e)
{
	struct fixture *f = ctx;

	return copy_of(f, f->renamed[root_of(f, m)]);
}

static int open_debug(void *ctx, module_id m, const char *path, bool host)
{
	struct fixture *f = ctx;

	if (host || !f->debug[root_of(f, m)] || !strstr(path, "/.build-id/"))
		return -ENOENT;
	return copy_of(f, NULL);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->opts = (struct symbolize_opts){ .open_module = open_module,
					   .open_debug = open_debug,
					   .ctx = f };
	image_init(&f->image);
	image_sym(&f->image, "hot_loop", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100, 0x40);
	image_finish(&f->image);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	dict_free(f->d);
	free(f);
	return 0;
}

static location_id contained(struct fixture *f, int root, const char *path)
{
	f->modules[root] = dict_module(f->d, &(struct module){
						     .kind = MODULE_ELF,
						     .path = dict_string(f->d, path),
						     .build_id = dict_string(f->d, build_id),
						     .dev = 1 + (uint64_t)root,
						     .ino = 7,
					     });
	return dict_location(f->d, f->modules[root], IMAGE_TEXT + 0x120);
}

static uint64_t images(struct fixture *f)
{
	assert_int_equal(symbolize(f->d, &f->opts, &f->st), 0);
	return f->st.images;
}

static void assert_name(const struct fixture *f, location_id id, const char *name)
{
	const struct location *l = dict_location_get(f->d, id);

	assert_int_equal(l->n_lines, 1);
	assert_string_equal(dict_str(f->d, l->lines[0].function), name);
}

static void the_same_library_in_many_containers_is_read_once(void **state)
{
	struct fixture *f = *state;
	location_id ids[ROOTS], other;

	for (int i = 0; i < ROOTS; i++)
		ids[i] = contained(f, i, i % 2 ? "/usr/lib/libx.so" : "/lib/libx.so");
	other = dict_location(f->d, f->modules[3], IMAGE_TEXT + 0x800);
	assert_int_equal(images(f), 1);
	for (int i = 0; i < ROOTS; i++)
		assert_name(f, ids[i], "hot_loop");
	assert_int_equal(f->st.named, ROOTS);
	/* What has no name is counted where it is. */
	assert_name(f, other, "libx.so+0x401800");
	assert_int_equal(f->st.n_worst, 1);
	assert_int_equal(f->st.worst[0].module.ix, f->modules[3].ix);
	assert_int_equal(f->st.worst[0].locations, 1);
}

static void who_claims_anothers_build_id_names_only_itself(void **state)
{
	struct fixture *f = *state;
	location_id liar, honest, also_honest;

	f->renamed[0] = "liarliar";
	liar = contained(f, 0, "/lib/libx.so");
	honest = contained(f, 1, "/lib/libx.so");
	also_honest = contained(f, 2, "/lib/libx.so");
	assert_int_equal(images(f), 2);
	assert_name(f, liar, "liarliar");
	assert_name(f, honest, "hot_loop");
	assert_name(f, also_honest, "hot_loop");
}

static void debug_info_of_one_container_is_not_the_others(void **state)
{
	struct fixture *f = *state;

	f->debug[1] = true;
	for (int i = 0; i < 3; i++)
		contained(f, i, "/lib/libx.so");
	assert_int_equal(images(f), 2);
	assert_int_equal(f->st.named, 3);
}

static void equal_debug_info_is_the_same(void **state)
{
	struct fixture *f = *state;

	f->debug[0] = f->debug[1] = true;
	contained(f, 0, "/lib/libx.so");
	contained(f, 1, "/lib/libx.so");
	assert_int_equal(images(f), 1);
	assert_int_equal(f->st.named, 2);
}

/* Made-up names have the file's own in them. */
static void a_file_of_another_name_is_another(void **state)
{
	struct fixture *f = *state;

	contained(f, 0, "/lib/libx.so");
	contained(f, 1, "/lib/liby.so");
	assert_int_equal(images(f), 2);
	assert_int_equal(f->st.named, 2);
}

static void equal_files_without_build_id_are_not_compared(void **state)
{
	struct fixture *f = *state;
	struct module m = { .kind = MODULE_ELF, .ino = 7 };

	for (int i = 0; i < 2; i++) {
		m.path = dict_string(f->d, i ? "/a/libx.so" : "/b/libx.so");
		f->modules[i] = dict_module(f->d, &m);
		dict_location(f->d, f->modules[i], IMAGE_TEXT + 0x120);
	}
	assert_int_equal(images(f), 2);
	assert_int_equal(f->st.named, 2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_library_in_many_containers_is_read_once),
		TEST(who_claims_anothers_build_id_names_only_itself),
		TEST(debug_info_of_one_container_is_not_the_others),
		TEST(equal_debug_info_is_the_same),
		TEST(a_file_of_another_name_is_another),
		TEST(equal_files_without_build_id_are_not_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
