#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/image.h"
#include "proc/proc_maps.h"

static struct dict *dict;
static struct ns_roots roots;
static struct images images;
static char dir[64];

/* Processes that are asked for a file: none, or this one. */
static bool we_map_it;

static pid_t mapper(void *ctx, const struct image *img, uint32_t n)
{
	return we_map_it && n == 0 ? getpid() : 0;
}

static int begin(void **state)
{
	(void)state;
	dict = dict_new();
	images_init(&images, dict, &roots, mapper, NULL);
	we_map_it = false;
	strcpy(dir, "/tmp/memscope-image-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	images_fini(&images);
	ns_roots_fini(&roots);
	dict_free(dict);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct image *get(pid_t pid, uint64_t addr, const char *path, uint64_t dev, uint64_t ino)
{
	struct image *img = images_get(&images, pid, addr, path, dev, ino);

	assert_non_null(img);
	return img;
}

static void a_file_is_one_image_whoever_maps_it_and_wherever(void **state)
{
	struct image *lib = get(1, 0x1000, "/lib/a.so", 8, 100);

	(void)state;
	assert_ptr_equal(get(2, 0x7000, "/lib/a.so", 8, 100), lib);
	/* Another file came to its path; the same path on another file system. */
	assert_ptr_not_equal(get(1, 0x1000, "/lib/a.so", 8, 101), lib);
	assert_ptr_not_equal(get(1, 0x1000, "/lib/a.so", 9, 100), lib);
	assert_int_equal(images.n, 3);
}

static void memory_without_a_file_is_its_process_s(void **state)
{
	struct image *one = get(1, 0x1000, "", 0, 0);

	(void)state;
	assert_int_equal(one->kind, MODULE_ANON);
	assert_ptr_equal(get(1, 0x9000, "", 0, 0), one);
	assert_ptr_not_equal(get(2, 0x1000, "", 0, 0), one);
	/* These have a name and no file. */
	assert_int_equal(get(1, 0, "/dev/zero (deleted)", 5, 7)->kind, MODULE_ANON);
	assert_int_equal(get(1, 0, "/SYSV00000000 (deleted)", 5, 8)->kind, MODULE_ANON);
	assert_int_equal(get(1, 0, "//anon", 0, 0)->kind, MODULE_ANON);
	assert_int_equal(get(1, 0, "/lib/a.so", 5, 9)->kind, MODULE_ELF);
}

static void the_vdso_is_one_for_all_but_that_of_32_bit_processes(void **state)
{
	struct image *vdso = get(1, 0x7ffff7fc1000, "[vdso]", 0, 0);

	(void)state;
	assert_int_equal(vdso->kind, MODULE_VDSO);
	assert_ptr_equal(get(2, 0x7ffc00001000, "[vdso]", 0, 0), vdso);
	assert_ptr_not_equal(get(3, 0xf7fc1000, "[vdso]", 0, 0), vdso);
}

static void a_module_leads_back_to_its_image(void **state)
{
	struct image *a = get(1, 0x1000, "/lib/a.so", 8, 100),
		     *b = get(1, 0x2000, "/lib/b.so", 8, 200);
	module_id of_a = image_module(&images, a), of_b = image_module(&images, b);

	(void)state;
	assert_int_equal(image_module(&images, a).ix, of_a.ix);
	assert_int_not_equal(of_a.ix, of_b.ix);
	assert_ptr_equal(images_find(&images, of_a), a);
	assert_ptr_equal(images_find(&images, of_b), b);
	assert_null(images_find(&images, (module_id){ 0 }));
	assert_null(images_find(&images, (module_id){ 1 << 20 }));
	assert_string_equal(dict_str(dict, dict_module_get(dict, of_b)->path), "/lib/b.so");
}

/* --- this program itself --- */

struct own {
	uint64_t start, end, off, dev, ino;
	char path[256];
};

static int on_map(void *ctx, const struct proc_map *map)
{
	struct own *own = ctx;
	uint64_t here = (uint64_t)(uintptr_t)on_map;

	if (here < map->start || here >= map->end)
		return 0;
	*own = (struct own){ map->start, map->end, map->file_off, map->dev, map->ino, "" };
	snprintf(own->path, sizeof(own->path), "%s", map->path);
	return 1;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1; /* the program is first */
}

static struct own own_text(void)
{
	struct own own = { 0 };

	assert_int_equal(proc_maps_each(getpid(), on_map, &own, NULL), 1);
	return own;
}

static void addresses_become_those_of_the_file(void **state)
{
	struct own own = own_text();
	uint64_t bias = 0, here = (uint64_t)(uintptr_t)own_text;
	struct image *img = get(getpid(), own.start, own.path, own.dev, own.ino);

	(void)state;
	dl_iterate_phdr(on_object, &bias);
	img->pid = getpid();
	img->addr = own.start;
	img->len = own.end - own.start;
	assert_int_equal(image_vaddr(&images, img, here - own.start + own.off), here - bias);
	assert_int_equal(img->state, IMAGE_READ);
	assert_int_equal(image_bias(&images, img, own.start, own.end - own.start, own.off), bias);
	/* What is learnt is reported: where its code begins and ends. */
	assert_true(dict_module_get(dict, img->module)->start <= here - bias &&
		    here - bias < dict_module_get(dict, img->module)->limit);
	assert_int_equal(images.fds, 1);
}

static void a_file_that_was_never_readable_has_offsets_for_addresses(void **state)
{
	struct image *img = get(1, 0x1000, "/nowhere/a.so", 8, 100);

	(void)state;
	assert_int_equal(image_vaddr(&images, img, 0x1234), 0x1234);
	assert_int_equal(img->state, IMAGE_UNREADABLE);
	assert_int_equal(image_open(&images, img, NULL), -ESTALE);
	assert_int_equal(image_open_any(&images, img, NULL), -ENOENT);
}

/* --- which file is opened --- */

static void make(char path[128], const char *name, const char *text, struct stat *st)
{
	FILE *f;

	snprintf(path, 128, "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(stat(path, st), 0);
}

static void is_text(int fd, const char *text)
{
	char got[64] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, got, sizeof(got) - 1) >= 0);
	close(fd);
	assert_string_equal(got, text);
}

static void another_file_at_the_path_is_not_taken_for_it(void **state)
{
	struct stat st, other;
	char path[128], new_path[128];
	struct image *img;
	struct err e = { 0 };

	(void)state;
	make(path, "a", "mapped", &st);
	img = get(1, 0x1000, path, st.st_dev, st.st_ino);
	is_text(image_open(&images, img, &e), "mapped");
	make(new_path, "b", "another", &other);
	assert_int_equal(rename(new_path, path), 0);
	assert_int_equal(image_open(&images, img, &e), -ESTALE);
	assert_non_null(strstr(e.msg, "no longer the file that was mapped"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(image_open(&images, img, &e), -ENOENT);
}

static void a_deleted_file_is_opened_through_who_maps_it(void **state)
{
	struct stat st;
	char path[128];
	struct image *img;
	void *at;
	int fd;

	(void)state;
	make(path, "a", "mapped", &st);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	unlink(path);
	img = get(getpid() + 1, 0x1000, path, st.st_dev, st.st_ino);
	assert_int_equal(image_open(&images, img, NULL), -ENOENT);
	we_map_it = true;
	fd = image_open(&images, img, NULL);
	munmap(at, 4096);
	if (fd == -EPERM || fd == -EACCES)
		skip(); /* map_files is root's alone on old kernels */
	is_text(fd, "mapped");
	assert_int_equal(image_open(&images, img, NULL), -ENOENT);
}

static void debug_info_is_looked_for_below_one_root_or_ours(void **state)
{
	struct ns_root three[] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1, .own = true } };
	struct image *lib = get(1, 0x1000, "/lib/a.so", 8, 100);
	struct image *other = get(1, 0x1000, "/lib/b.so", 8, 101);

	(void)state;
	roots = (struct ns_roots){ three, 3 };
	assert_int_equal(lib->beside, -1);
	image_seen_from(&images, lib, -1); /* not known */
	assert_int_equal(lib->beside, -1);
	image_seen_from(&images, lib, 0);
	image_seen_from(&images, lib, 0);
	assert_int_equal(lib->beside, 0);
	/* Neither of two may say what the other's functions are called. */
	image_seen_from(&images, lib, 1);
	assert_int_equal(lib->beside, NS_NO_ROOT);
	assert_int_equal(lib->root, 1);
	image_seen_from(&images, lib, 0);
	assert_int_equal(lib->beside, NS_NO_ROOT);
	image_seen_from(&images, lib, 2);
	assert_int_equal(lib->beside, 2);
	image_seen_from(&images, lib, 0);
	assert_int_equal(lib->beside, 2);
	image_seen_from(&images, other, 0);
	image_seen_from(&images, other, 2);
	assert_int_equal(other->beside, 2);
	roots = (struct ns_roots){ 0 };
}

/* Of two that have something at its path only what is that file is taken, whatever build ID it claims. */
static void a_likeness_in_one_of_several_roots_is_not_taken(void **state)
{
	struct stat st, other;
	char path[128], new_path[128];
	struct image *img;

	(void)state;
	make(path, "a", "mapped", &st);
	img = get(1, 0x1000, path, st.st_dev, st.st_ino);
	img->root = ns_roots_add(&roots, getpid());
	img->beside = NS_NO_ROOT;
	is_text(image_open(&images, img, NULL), "mapped");
	make(new_path, "b", "another", &other);
	assert_int_equal(rename(new_path, path), 0);
	img->ino = 0; /* anything is likely */
	assert_int_equal(image_open(&images, img, NULL), -ESTALE);
	img->beside = img->root;
	is_text(image_open(&images, img, NULL), "another");
}

static void what_is_no_file_cannot_be_opened(void **state)
{
	(void)state;
	assert_int_equal(image_open(&images, get(1, 0x1000, "", 0, 0), NULL), -ENOENT);
	assert_int_equal(image_open(&images, get(1, 0x7ffff7fc1000, "[vdso]", 0, 0), NULL),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_is_one_image_whoever_maps_it_and_wherever,
						begin, end),
		cmocka_unit_test_setup_teardown(memory_without_a_file_is_its_process_s, begin, end),
		cmocka_unit_test_setup_teardown(
			the_vdso_is_one_for_all_but_that_of_32_bit_processes, begin, end),
		cmocka_unit_test_setup_teardown(a_module_leads_back_to_its_image, begin, end),
		cmocka_unit_test_setup_teardown(addresses_become_those_of_the_file, begin, end),
		cmocka_unit_test_setup_teardown(
			a_file_that_was_never_readable_has_offsets_for_addresses, begin, end),
		cmocka_unit_test_setup_teardown(another_file_at_the_path_is_not_taken_for_it, begin,
						end),
		cmocka_unit_test_setup_teardown(a_deleted_file_is_opened_through_who_maps_it, begin,
						end),
		cmocka_unit_test_setup_teardown(debug_info_is_looked_for_below_one_root_or_ours,
						begin, end),
		cmocka_unit_test_setup_teardown(a_likeness_in_one_of_several_roots_is_not_taken,
						begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_file_cannot_be_opened, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
