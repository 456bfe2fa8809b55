#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "elf/inflate.h"

#define SEEDS "tests/fuzz/corpus/debug_link/"

static uint8_t bytes[1 << 16];
static size_t len;

static struct elf_file *open_seed(const char *name)
{
	struct elf_file *elf;
	FILE *f = fopen(name, "re");

	if (!f) {
		print_message("%s is not here: run from the top of the tree\n", name);
		skip();
	}
	len = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	assert_int_equal(elf_file_open_memory(bytes, len, name, &elf, NULL), 0);
	return elf;
}

/* .debug_info, or what it is called where it is packed in the old way. */
static const struct elf_section *info_of(struct elf_file *elf)
{
	const struct elf_section *sec;

	if (elf_file_find_section(elf, ".debug_info", &sec, NULL) < 0)
		assert_int_equal(elf_file_find_section(elf, ".zdebug_info", &sec, NULL), 0);
	assert_true(elf_section_is_packed(sec));
	return sec;
}

static void every_packing_gives_the_same_bytes(void **state)
{
	static const char *const seeds[] = { SEEDS "zlib", SEEDS "zstd", SEEDS "zlib-gnu" };
	uint8_t *first = NULL, *out;
	uint64_t first_len = 0, n;

	for (size_t i = 0; i < 3; i++) {
		struct elf_file *elf = open_seed(seeds[i]);

		assert_int_equal(elf_section_unpack(elf, info_of(elf), 1 << 20, &out, &n, NULL), 0);
		assert_true(n > 50);
		assert_int_equal(out[n], 0);
		if (!i) {
			first = out;
			first_len = n;
		} else {
			assert_int_equal(n, first_len);
			assert_memory_equal(out, first, n);
			free(out);
		}
		elf_file_close(elf);
	}
	free(first);
}

static void more_than_the_bound_is_refused(void **state)
{
	struct elf_file *elf = open_seed(SEEDS "zlib");
	struct err e = { 0 };
	uint8_t *out;
	uint64_t n;

	assert_int_equal(elf_section_unpack(elf, info_of(elf), 16, &out, &n, &e), -EFBIG);
	assert_non_null(strstr(e.msg, ".debug_info"));
	elf_file_close(elf);
}

/* Overwrites what the section's header says that it unpacks to. */
static int unpack_claiming(uint64_t size)
{
	struct elf_file *elf = open_seed(SEEDS "zstd");
	const struct elf_section *sec = info_of(elf);
	uint8_t *out;
	uint64_t n;
	int r;

	memcpy(bytes + sec->off + offsetof(Elf64_Chdr, ch_size), &size, sizeof(size));
	r = elf_section_unpack(elf, sec, UINT64_MAX, &out, &n, NULL);
	if (r == 0)
		free(out);
	elf_file_close(elf);
	return r;
}

static void a_length_that_is_a_lie_is_no_bytes(void **state)
{
	assert_int_equal(unpack_claiming(1), -EBADMSG);
	assert_int_equal(unpack_claiming(4000), -EBADMSG);
	assert_int_equal(unpack_claiming(1ull << 40), -EBADMSG);
	assert_int_equal(unpack_claiming(UINT64_MAX), -EBADMSG);
}

static void an_unknown_packing_is_told(void **state)
{
	struct elf_file *elf = open_seed(SEEDS "zlib");
	const struct elf_section *sec = info_of(elf);
	uint32_t type = 77;
	uint8_t *out;
	uint64_t n;

	memcpy(bytes + sec->off, &type, sizeof(type));
	assert_int_equal(elf_section_unpack(elf, sec, 1 << 20, &out, &n, NULL), -EOPNOTSUPP);
	elf_file_close(elf);
}

static size_t pack_zeros(size_t n, uint8_t *out, size_t cap)
{
	uint8_t *zeros = calloc(1, n);
	size_t pos = 0;

	assert_int_equal(
		lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, zeros, n, out, &pos, cap),
		LZMA_OK);
	free(zeros);
	return pos;
}

static void an_xz_bomb_stops_at_the_bound(void **state)
{
	size_t n = pack_zeros(16 << 20, bytes, sizeof(bytes));
	uint8_t *out;
	uint64_t out_len;

	assert_int_equal(xz_unpack(bytes, n, 1 << 20, "bomb", &out, &out_len, NULL), -EFBIG);
	assert_int_equal(xz_unpack(bytes, n, 16 << 20, "fits", &out, &out_len, NULL), 0);
	assert_int_equal(out_len, 16 << 20);
	assert_int_equal(out[out_len], 0);
	free(out);
}

static void xz_data_cut_off_is_damaged(void **state)
{
	size_t n = pack_zeros(1000, bytes, sizeof(bytes));
	uint8_t *out;
	uint64_t out_len;

	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(xz_unpack(bytes, cut, 1 << 20, "cut", &out, &out_len, NULL),
				 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packing_gives_the_same_bytes),
		cmocka_unit_test(more_than_the_bound_is_refused),
		cmocka_unit_test(a_length_that_is_a_lie_is_no_bytes),
		cmocka_unit_test(an_unknown_packing_is_told),
		cmocka_unit_test(an_xz_bomb_stops_at_the_bound),
		cmocka_unit_test(xz_data_cut_off_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
