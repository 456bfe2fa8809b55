#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "elf/debug_link.h"
#include "unit/elf/elf_image.h"

#define BY_ID "/usr/lib/debug/.build-id/de/adbeef000102ff.debug"

/* Who is asked for files: writes down what for, and has one. */
struct asked {
	struct image image;   /* what is asked about */
	struct elf_file *elf; /* the same, open      */
	char paths[32][256];
	unsigned n;
	const char *has;   /* "host:PATH" or "target:PATH", NULL */
	struct image file; /* what is there                        */
};

static struct asked *asked_new(void)
{
	struct asked *a = calloc(1, sizeof(*a));

	image_init(&a->image);
	image_finish(&a->image);
	a->file = a->image;
	return a;
}

static void asked_free(struct asked *a)
{
	elf_file_close(a->elf);
	free(a);
}

static int open_path(void *ctx, const char *path, bool host)
{
	struct asked *a = ctx;
	char *row = a->paths[a->n];
	int fd;

	assert_in_range(a->n, 0, 31);
	a->n++;
	snprintf(row, sizeof(a->paths[0]), "%s:%s", host ? "host" : "target", path);
	if (!a->has || strcmp(row, a->has) != 0)
		return -ENOENT;
	fd = memfd_create("debug", MFD_CLOEXEC);
	assert_int_equal(write(fd, a->file.bytes, a->file.len), a->file.len);
	return fd;
}

/* Makes .text.hot a section of this name and content. */
static void add_section(struct image *im, const char *name, const void *bytes, size_t len)
{
	Elf64_Shdr *names = image_shdr(im, 5), *sec = image_shdr(im, SEC_HOT);

	sec->sh_name = (Elf64_Word)names->sh_size;
	sec->sh_size = len;
	memcpy(im->bytes + sec->sh_offset, bytes, len);
	/* The names move to the end, where there is room. */
	memcpy(im->bytes + im->len, im->bytes + names->sh_offset, names->sh_size);
	names->sh_offset = im->len;
	memcpy(im->bytes + im->len + names->sh_size, name, strlen(name) + 1);
	names->sh_size += strlen(name) + 1;
	im->len += names->sh_size;
}

static void add_link(struct image *im, const char *file, uint32_t crc)
{
	uint8_t bytes[256] = { 0 };
	size_t at = (strlen(file) + 4) & ~(size_t)3;

	memcpy(bytes, file, strlen(file) + 1);
	memcpy(bytes + at, &crc, sizeof(crc));
	add_section(im, ".gnu_debuglink", bytes, at + sizeof(crc));
}

static void drop_build_id(struct image *im)
{
	image_phdr(im, 2)->p_type = PT_NULL;
}

static int find(struct asked *a, struct debug_file **ret_file)
{
	assert_int_equal(
		elf_file_open_memory(a->image.bytes, a->image.len, "/opt/app/prog", &a->elf, NULL),
		0);
	return debug_link_find(a->elf, open_path, a, ret_file);
}

static void the_targets_root_comes_before_the_host_and_build_ids_before_links(void **state)
{
	static const char *const want[] = {
		"target:" BY_ID,
		"host:" BY_ID,
		"target:/opt/app/prog.debug",
		"host:/opt/app/prog.debug",
		"target:/opt/app/.debug/prog.debug",
		"host:/opt/app/.debug/prog.debug",
		"target:/usr/lib/debug/opt/app/prog.debug",
		"host:/usr/lib/debug/opt/app/prog.debug",
	};
	struct asked *a = asked_new();
	struct debug_file *f;

	add_link(&a->image, "prog.debug", 1);
	assert_int_equal(find(a, &f), -ENOENT);
	assert_int_equal(a->n, 8);
	for (int i = 0; i < 8; i++)
		assert_string_equal(a->paths[i], want[i]);
	asked_free(a);
}

static void the_first_that_belongs_to_it_is_taken(void **state)
{
	static const char *const at[] = { "target:" BY_ID, "host:" BY_ID,
					  "host:/opt/app/.debug/prog.debug" };

	for (int i = 0; i < 3; i++) {
		struct asked *a = asked_new();
		struct debug_file *f;

		add_link(&a->image, "prog.debug", 1);
		a->has = at[i];
		assert_int_equal(find(a, &f), 0);
		assert_string_equal(f->path, strchr(at[i], '/'));
		assert_int_equal(f->host, at[i][0] == 'h');
		assert_string_equal(a->paths[a->n - 1], at[i]);
		debug_file_free(f);
		asked_free(a);
	}
}

static void a_file_of_another_build_id_is_passed_over(void **state)
{
	struct asked *a = asked_new();
	struct debug_file *f;
	uint8_t *id = memmem(a->file.bytes, a->file.len, "\xde\xad\xbe\xef", 4);

	id[3] ^= 1;
	/* The right sum is no excuse. */
	add_link(&a->image, "prog.debug", (uint32_t)crc32(0, a->file.bytes, (uInt)a->file.len));
	a->has = "target:/opt/app/prog.debug";
	assert_int_equal(find(a, &f), -ENOENT);
	assert_int_equal(a->n, 8);
	asked_free(a);
}

static void without_build_id_the_sum_decides(void **state)
{
	for (uint32_t wrong = 0; wrong < 2; wrong++) {
		struct asked *a = asked_new();
		struct debug_file *f;
		uint32_t crc = (uint32_t)crc32(0, a->file.bytes, (uInt)a->file.len);

		drop_build_id(&a->image);
		add_link(&a->image, "prog.debug", crc ^ wrong);
		a->has = "host:/usr/lib/debug/opt/app/prog.debug";
		assert_int_equal(find(a, &f), wrong ? -ENOENT : 0);
		assert_int_equal(a->n, 6);
		if (!wrong)
			debug_file_free(f);
		asked_free(a);
	}
}

static void a_link_names_a_file_and_no_path(void **state)
{
	struct asked *a = asked_new();
	struct debug_file *f;

	drop_build_id(&a->image);
	add_link(&a->image, "../../etc/shadow", 1);
	assert_int_equal(find(a, &f), -ENOENT);
	assert_int_equal(a->n, 0);
	asked_free(a);
}

static void the_shared_file_is_found_by_build_id_then_by_path(void **state)
{
	static const uint8_t link[] = "../common\0\xde\xad\xbe\xef\x00\x01\x02\xff";
	static const char *const at[] = { "host:" BY_ID, "target:/usr/lib/debug/x/../common" };

	for (int i = 0; i < 2; i++) {
		struct asked *a = asked_new();
		struct debug_file *f;

		add_section(&a->image, ".gnu_debugaltlink", link, sizeof(link) - 1);
		a->has = at[i];
		assert_int_equal(
			elf_file_open_memory(a->image.bytes, a->image.len, "prog", &a->elf, NULL),
			0);
		assert_int_equal(
			debug_link_alt(a->elf, "/usr/lib/debug/x/prog.debug", open_path, a, &f), 0);
		assert_string_equal(a->paths[a->n - 1], at[i]);
		debug_file_free(f);
		asked_free(a);
	}
}

static void of_our_root_there_is_debug_info_and_what_lies_beside_an_image(void **state)
{
	static const struct {
		const char *path, *image;
		bool may;
	} cases[] = {
		{ "/usr/lib/debug/.build-id/ab/cd.debug", "/opt/app", true },
		{ "/opt/app.debug", "/opt/app", true },
		{ "/opt/.debug/app.debug", "/opt/app", true },
		{ "/etc/shadow", "/opt/app", false },
		{ "/opt/../etc/shadow", "/opt/app", false },
		{ "/usr/lib/debug/../../../etc/shadow", "/opt/app", false },
		{ "/usr/lib/debugger", "/opt/app", false },
		{ "etc/shadow", "/opt/app", false },
		{ "/etc/shadow", "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(debug_link_host_path_ok(cases[i].path, cases[i].image),
				 cases[i].may);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_targets_root_comes_before_the_host_and_build_ids_before_links),
		cmocka_unit_test(the_first_that_belongs_to_it_is_taken),
		cmocka_unit_test(a_file_of_another_build_id_is_passed_over),
		cmocka_unit_test(without_build_id_the_sum_decides),
		cmocka_unit_test(a_link_names_a_file_and_no_path),
		cmocka_unit_test(the_shared_file_is_found_by_build_id_then_by_path),
		cmocka_unit_test(of_our_root_there_is_debug_info_and_what_lies_beside_an_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
