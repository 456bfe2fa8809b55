#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/elf_file.h"
#include "elf_image.h"

static struct image image;

static int setup(void **state)
{
	image_init(&image);
	image_sym(&image, "first", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT, 16);
	image_finish(&image);
	return 0;
}

static int open_image(struct elf_file **ret_elf, struct err *e)
{
	return elf_file_open_memory(image.bytes, image.len, "image", ret_elf, e);
}

static void the_build_id_is_lower_case_hex(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	assert_int_equal(open_image(&elf, NULL), 0);
	assert_string_equal(elf_file_build_id(elf), "deadbeef000102ff");
}

static void the_build_id_is_found_by_section_when_no_segment_has_it(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	Elf64_Shdr *sh = image_shdr(&image, SEC_HOT);

	sh->sh_type = SHT_NOTE;
	sh->sh_offset = image_phdr(&image, 2)->p_offset;
	sh->sh_size = 24;
	/* ".text.hot" becomes ".note.gnu.build-id" at the end of the name table. */
	sh->sh_name = (uint32_t)image_shdr(&image, 5)->sh_size;
	image_shdr(&image, 5)->sh_size += sizeof(".note.gnu.build-id");
	memmove(image.bytes + image.len, image.bytes + image_ehdr(&image)->e_shoff,
		IMAGE_SECTIONS * sizeof(Elf64_Shdr));
	memcpy(image.bytes + image_shdr(&image, 5)->sh_offset + sh->sh_name, ".note.gnu.build-id",
	       sizeof(".note.gnu.build-id"));
	image_ehdr(&image)->e_shoff = image.len;
	image.len += IMAGE_SECTIONS * sizeof(Elf64_Shdr);
	image_phdr(&image, 2)->p_type = PT_NULL;

	assert_int_equal(open_image(&elf, NULL), 0);
	assert_string_equal(elf_file_build_id(elf), "deadbeef000102ff");
}

static void a_note_that_lies_about_its_size_gives_no_build_id(void **state)
{
	uint32_t *note = (uint32_t *)(void *)(image.bytes + image_phdr(&image, 2)->p_offset);
	static const uint32_t sizes[] = { 9, 64, 65, 0x7fffffff, 0xffffffff, 0xfffffff4 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

		note[1] = sizes[i];
		assert_int_equal(open_image(&elf, NULL), 0);
		assert_string_equal(elf_file_build_id(elf), "");
	}
}

static void offsets_and_addresses_translate_through_the_segments(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_segment *segs;
	uint64_t vaddr, off;
	uint32_t n;

	image_phdr(&image, 1)->p_vaddr = 0x7651000;
	assert_int_equal(open_image(&elf, NULL), 0);
	segs = elf_file_segments(elf, &n);
	assert_int_equal(n, 2);
	assert_true(elf_segments_off_to_vaddr(segs, n, 0x1234, &vaddr));
	assert_int_equal(vaddr, 0x7651234);
	assert_true(elf_segments_vaddr_to_off(segs, n, 0x7651234, &off));
	assert_int_equal(off, 0x1234);
	assert_true(elf_segments_off_to_vaddr(segs, n, 0x10, &vaddr));
	assert_int_equal(vaddr, 0x400010);
	assert_false(elf_segments_off_to_vaddr(segs, n, 0x3000, &vaddr));
	assert_false(elf_segments_vaddr_to_off(segs, n, 0x7651000 + 0x1800, &off));
	assert_false(elf_segments_vaddr_to_off(segs, n, 0x400800, &off));
}

static void an_offset_in_a_shared_page_belongs_to_the_executable_segment(void **state)
{
	const struct elf_segment segs[] = {
		{ .vaddr = 0x400000, .off = 0, .filesz = 0x1800, .memsz = 0x1800, .flags = PF_R },
		{ .vaddr = 0x402400,
		  .off = 0x1400,
		  .filesz = 0x700,
		  .memsz = 0x700,
		  .flags = PF_R | PF_X },
	};
	uint64_t vaddr;

	assert_true(elf_segments_off_to_vaddr(segs, 2, 0x1500, &vaddr));
	assert_int_equal(vaddr, 0x402500);
	/* Behind the segment's last byte, in the page that is mapped with it. */
	assert_true(elf_segments_off_to_vaddr(segs, 2, 0x1f00, &vaddr));
	assert_int_equal(vaddr, 0x402f00);
}

static void sections_have_their_names_and_bytes(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(freep) uint8_t *bytes = NULL;
	const struct elf_section *sec;

	assert_int_equal(open_image(&elf, NULL), 0);
	assert_int_equal(elf_file_find_section(elf, ".strtab", &sec, NULL), 0);
	assert_int_equal(elf_file_read_section(elf, sec, &bytes, NULL), 0);
	assert_string_equal((char *)bytes + 1, "first");
	assert_int_equal(bytes[sec->size], 0);
	assert_int_equal(elf_file_find_section(elf, ".debug_info", &sec, NULL), -ENOENT);
}

static void a_file_without_sections_is_not_an_error(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_section *secs;
	uint32_t n = 7;

	image_ehdr(&image)->e_shoff = 0;
	image_ehdr(&image)->e_shnum = 0;
	assert_int_equal(open_image(&elf, NULL), 0);
	assert_int_equal(elf_file_sections(elf, &secs, &n, NULL), 0);
	assert_int_equal(n, 0);
}

static void a_section_count_kept_in_the_null_section_is_found_and_bounded(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL, *huge = NULL;
	const struct elf_section *secs;
	struct err e = { 0 };
	uint32_t n = 0;

	image_ehdr(&image)->e_shnum = 0;
	image_ehdr(&image)->e_shstrndx = SHN_XINDEX;
	image_shdr(&image, 0)->sh_size = IMAGE_SECTIONS;
	image_shdr(&image, 0)->sh_link = 5;
	assert_int_equal(open_image(&elf, NULL), 0);
	assert_int_equal(elf_file_sections(elf, &secs, &n, NULL), 0);
	assert_int_equal(n, IMAGE_SECTIONS);
	assert_string_equal(secs[SEC_TEXT].name, ".text");

	image_shdr(&image, 0)->sh_size = 1ull << 40;
	assert_int_equal(open_image(&huge, NULL), 0);
	assert_int_equal(elf_file_sections(huge, &secs, &n, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "1099511627776 sections"));
}

static void what_is_not_an_executable_is_refused_with_the_reason(void **state)
{
	struct {
		size_t at;
		uint8_t byte;
		const char *words;
	} cases[] = {
		{ 0, 'x', "not an ELF file" },
		{ EI_CLASS, 3, "ELF class 3" },
		{ EI_DATA, 0, "byte order" },
		{ offsetof(Elf64_Ehdr, e_type), ET_CORE, "ELF type 4" },
		{ offsetof(Elf64_Ehdr, e_phentsize), 1, "program headers of 1 bytes" },
		{ offsetof(Elf64_Ehdr, e_phnum) + 1, 0xff, "program headers, more than" },
		{ offsetof(Elf64_Ehdr, e_phnum), 0, "no program headers" },
		{ offsetof(Elf64_Ehdr, e_phoff) + 7, 0x80, "bytes wanted at offset" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct elf_file *elf = NULL;
		struct err e = { 0 };

		setup(state);
		image.bytes[cases[i].at] = cases[i].byte;
		assert_true(open_image(&elf, &e) < 0);
		assert_null(elf);
		if (!strstr(e.msg, cases[i].words))
			fail_msg("\"%s\" does not say \"%s\"", e.msg, cases[i].words);
	}
}

static void segments_whose_ends_overflow_are_left_out(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct elf_file *none = NULL;
	const struct elf_segment *segs;
	struct err e = { 0 };
	uint32_t n;

	image_phdr(&image, 0)->p_vaddr = UINT64_MAX - 0x10;
	assert_int_equal(open_image(&elf, NULL), 0);
	segs = elf_file_segments(elf, &n);
	assert_int_equal(n, 1);
	assert_int_equal(segs[0].vaddr, IMAGE_TEXT);

	image_phdr(&image, 1)->p_offset = UINT64_MAX - 0x10;
	assert_int_equal(open_image(&none, &e), -EBADMSG);
}

static void a_file_cut_anywhere_is_read_as_far_as_it_goes_or_refused(void **state)
{
	for (size_t len = 0; len < image.len; len += len < 512 ? 1 : 64) {
		_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
		/* On the heap at its exact size, for the address sanitizer. */
		_cleanup_(freep) uint8_t *cut = malloc(len ? len : 1);
		const struct elf_section *secs;
		struct err e = { 0 };
		uint32_t n;

		memcpy(cut, image.bytes, len);
		if (elf_file_open_memory(cut, len, "cut", &elf, &e) < 0) {
			assert_true(len < sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr));
			assert_true(e.msg[0] != '\0');
			continue;
		}
		assert_int_equal(elf_file_sections(elf, &secs, &n, &e), -ENODATA);
		assert_non_null(strstr(e.msg, "truncated?"));
	}
}

static void a_file_that_shrinks_while_it_is_read_is_an_error(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = memfd_create("shrinks", MFD_CLOEXEC);
	const struct elf_section *secs;
	struct err e = { 0 };
	uint32_t n;

	assert_int_equal(write(fd, image.bytes, image.len), image.len);
	assert_int_equal(elf_file_open(fd, "shrinks", &elf, NULL), 0);
	assert_int_equal(ftruncate(fd, 0x1000), 0);
	assert_int_equal(elf_file_sections(elf, &secs, &n, &e), -ENODATA);
	assert_string_equal(e.msg, "shrinks: became shorter while it was read");
}

static void only_regular_files_are_read(void **state)
{
	_cleanup_(closep) int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = NULL;

	assert_int_equal(elf_file_open(fd, "/dev/zero", &elf, NULL), -ENOEXEC);
}

static void a_section_larger_than_the_limit_is_not_read(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = memfd_create("sparse", MFD_CLOEXEC);
	const struct elf_section *sec;
	struct err e = { 0 };
	uint8_t *bytes = NULL;

	image_shdr(&image, 4)->sh_size = ELF_SECTION_BYTES_MAX + 1;
	assert_int_equal(write(fd, image.bytes, image.len), image.len);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(elf_file_open(fd, "sparse", &elf, NULL), 0);
	assert_int_equal(elf_file_find_section(elf, ".strtab", &sec, NULL), 0);
	assert_int_equal(elf_file_read_section(elf, sec, &bytes, &e), -EFBIG);
	assert_null(bytes);
}

static void our_own_executable_is_read(void **state)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const struct elf_section *sec;
	uint64_t vaddr, off;
	const struct elf_segment *segs;
	uint32_t n;

	assert_int_equal(elf_file_open(fd, "self", &elf, NULL), 0);
	assert_int_equal(elf_file_find_section(elf, ".text", &sec, NULL), 0);
	segs = elf_file_segments(elf, &n);
	assert_true(elf_segments_off_to_vaddr(segs, n, sec->off, &vaddr));
	assert_int_equal(vaddr, sec->vaddr);
	assert_true(elf_segments_vaddr_to_off(segs, n, sec->vaddr + 16, &off));
	assert_int_equal(off, sec->off + 16);
}

#define TEST(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_build_id_is_lower_case_hex),
		TEST(the_build_id_is_found_by_section_when_no_segment_has_it),
		TEST(a_note_that_lies_about_its_size_gives_no_build_id),
		TEST(offsets_and_addresses_translate_through_the_segments),
		TEST(an_offset_in_a_shared_page_belongs_to_the_executable_segment),
		TEST(sections_have_their_names_and_bytes),
		TEST(a_file_without_sections_is_not_an_error),
		TEST(a_section_count_kept_in_the_null_section_is_found_and_bounded),
		TEST(what_is_not_an_executable_is_refused_with_the_reason),
		TEST(segments_whose_ends_overflow_are_left_out),
		TEST(a_file_cut_anywhere_is_read_as_far_as_it_goes_or_refused),
		TEST(a_file_that_shrinks_while_it_is_read_is_an_error),
		TEST(only_regular_files_are_read),
		TEST(a_section_larger_than_the_limit_is_not_read),
		TEST(our_own_executable_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
