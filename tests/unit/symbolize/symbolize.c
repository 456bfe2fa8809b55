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
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "elf/elf_syms.h"
#include "symbolize/symbolize.h"
#include "unit/elf/elf_image.h"

/* An image with known symbols, given to symbolize() as the file of every module. */
struct fixture {
	struct dict *d;
	struct image image;
	struct symbolize_opts opts;
	struct symbolize_stats st;
	int answer; /* what open_module returns instead, when negative */
	int opens;
};

static int open_module(void *ctx, module_id m, struct err *e)
{
	struct fixture *f = ctx;
	int fd;

	f->opens++;
	if (f->answer < 0)
		return f->answer;
	fd = memfd_create("image", MFD_CLOEXEC);
	assert_int_equal(write(fd, f->image.bytes, f->image.len), f->image.len);
	return fd;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->opts = (struct symbolize_opts){ .open_module = open_module, .ctx = f };
	image_init(&f->image);
	image_sym(&f->image, "hot_loop", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x100, 0x40);
	image_sym(&f->image, "_ZN3app3runEi", STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x200,
		  0x40);
	image_sym(&f->image, "memcpy@@GLIBC_2.14", STB_GLOBAL, STT_FUNC, SEC_TEXT,
		  IMAGE_TEXT + 0x300, 8);
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

static module_id module(struct fixture *f, enum module_kind kind, const char *path)
{
	return dict_module(f->d, &(struct module){ .kind = kind, .path = dict_string(f->d, path) });
}

static location_id at(struct fixture *f, module_id m, uint64_t vaddr)
{
	return dict_location(f->d, m, vaddr);
}

static void run(struct fixture *f)
{
	assert_int_equal(symbolize(f->d, &f->opts, &f->st), 0);
	assert_int_equal(f->st.locations,
			 f->st.named + f->st.ranges + f->st.offset_only + f->st.no_module);
}

static void assert_named(struct fixture *f, location_id id, const char *function,
			 const char *system)
{
	const struct location *l = dict_location_get(f->d, id);

	assert_true(l->named);
	assert_int_equal(l->n_lines, 1);
	assert_string_equal(dict_str(f->d, l->lines[0].function), function);
	assert_string_equal(dict_str(f->d, l->lines[0].system_name), system);
}

static void a_function_names_its_locations(void **state)
{
	struct fixture *f = *state;
	module_id m = module(f, MODULE_ELF, "/opt/app");
	location_id a = at(f, m, IMAGE_TEXT + 0x13f), b = at(f, m, IMAGE_TEXT + 0x100),
		    c = at(f, m, IMAGE_TEXT + 0x210), d = at(f, m, IMAGE_TEXT + 0x300);

	run(f);
	assert_named(f, a, "hot_loop", "hot_loop");
	assert_named(f, b, "hot_loop", "hot_loop");
	assert_named(f, c, "app::run(int)", "_ZN3app3runEi");
	assert_named(f, d, "memcpy", "memcpy");
	assert_int_equal(f->st.named, 4);
	assert_int_equal(f->opens, 1);
	assert_int_equal(f->st.n_worst, 0);
}

static void names_stay_mangled_when_asked_to(void **state)
{
	struct fixture *f = *state;
	location_id a = at(f, module(f, MODULE_ELF, "/opt/app"), IMAGE_TEXT + 0x210);

	f->opts.no_demangle = true;
	run(f);
	assert_named(f, a, "_ZN3app3runEi", "_ZN3app3runEi");
}

static void a_plt_stub_is_named_after_the_function_it_calls(void **state)
{
	struct fixture *f = *state;
	Elf64_Rela rela = { 0x404018, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0 };
	const uint8_t jump[] = { 0xff, 0x25, 0x12, 0x20, 0x00, 0x00 }; /* 0x402000 + 6 + 0x2012 */
	Elf64_Shdr *sh;
	location_id a;

	image_init(&f->image);
	image_sym(&f->image, "_Znwm", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	image_finish(&f->image);
	memcpy(f->image.bytes + IMAGE_HOT_OFF, jump, sizeof(jump));
	memcpy(f->image.bytes + IMAGE_TEXT_OFF, &rela, sizeof(rela));
	sh = image_shdr(&f->image, SEC_TEXT);
	sh->sh_type = SHT_RELA;
	sh->sh_size = sizeof(rela);
	image_shdr(&f->image, 3)->sh_type = SHT_DYNSYM;
	memcpy(f->image.bytes + image_shdr(&f->image, 5)->sh_offset + 7, ".plt", 5);
	a = at(f, module(f, MODULE_ELF, "/opt/app"), IMAGE_HOT + 3);
	run(f);
	assert_named(f, a, "operator new(unsigned long)@plt", "_Znwm@plt");
}

static void an_address_outside_every_function_keeps_its_offset(void **state)
{
	struct fixture *f = *state;
	module_id m = module(f, MODULE_ELF, "/opt/lib/app.so.1");
	location_id a = at(f, m, IMAGE_TEXT + 0x140);

	run(f);
	assert_named(f, a, "app.so.1+0x401140", "");
	assert_int_equal(f->st.offset_only, 1);
	assert_int_equal(f->st.n_worst, 1);
	assert_int_equal(f->st.worst[0].module.ix, m.ix);
	assert_string_equal(f->st.worst[0].reason, "not covered by the symbol table");
}

static void a_location_without_image_is_unknown(void **state)
{
	struct fixture *f = *state;
	location_id a = at(f, (module_id){ 0 }, 0xdead),
		    b = at(f, module(f, MODULE_ANON, "//anon"), 0x7f00);

	run(f);
	assert_named(f, a, "[unknown]", "");
	assert_named(f, b, "[anon]", "");
	assert_int_equal(f->st.no_module, 1);
	assert_int_equal(f->st.offset_only, 1);
	assert_int_equal(f->opens, 0);
}

static void an_image_that_fails_costs_only_its_own_names_and_says_why(void **state)
{
	static const struct {
		int code;
		const char *reason;
	} cases[] = {
		{ -ENOENT, "file is gone" },
		{ -ESTALE, "file changed" },
		{ -EACCES, "not permitted to read the file" },
		{ -EIO, "file cannot be read" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char path[32];
		location_id a;

		snprintf(path, sizeof(path), "/lib/gone%zu.so", i);
		a = at(f, module(f, MODULE_ELF, path), 0x1234);
		f->answer = cases[i].code;
		run(f);
		assert_int_equal(f->st.locations, 1);
		assert_string_equal(f->st.worst[0].reason, cases[i].reason);
		snprintf(path, sizeof(path), "gone%zu.so+0x1234", i);
		assert_named(f, a, path, "");
	}
	f->answer = 0;
	at(f, module(f, MODULE_ELF, "/lib/good.so"), IMAGE_TEXT + 0x100);
	run(f);
	assert_int_equal(f->st.named, 1);
}

static void a_file_with_another_build_id_is_not_used(void **state)
{
	struct fixture *f = *state;
	module_id m = module(f, MODULE_ELF, "/opt/app");
	location_id a = at(f, m, IMAGE_TEXT + 0x100);

	dict_module_learn(f->d, m, &(struct module){ .build_id = dict_string(f->d, "0badc0de") });
	run(f);
	assert_named(f, a, "app+0x401100", "");
	assert_string_equal(f->st.worst[0].reason, "file changed");
}

static void the_right_build_id_is_accepted(void **state)
{
	struct fixture *f = *state;
	module_id m = module(f, MODULE_ELF, "/opt/app");
	location_id a = at(f, m, IMAGE_TEXT + 0x100);

	dict_module_learn(f->d, m,
			  &(struct module){ .build_id = dict_string(f->d, "deadbeef000102ff") });
	run(f);
	assert_named(f, a, "hot_loop", "hot_loop");
}

static void a_damaged_file_is_called_damaged(void **state)
{
	struct fixture *f = *state;
	location_id a = at(f, module(f, MODULE_ELF, "/opt/app"), IMAGE_TEXT + 0x100);

	f->image.len -= 64;
	run(f);
	assert_named(f, a, "app+0x401100", "");
	assert_string_equal(f->st.worst[0].reason, "file is damaged");
}

static void what_was_named_before_is_left_alone(void **state)
{
	struct fixture *f = *state;
	module_id m = module(f, MODULE_ELF, "/opt/app");
	location_id a = at(f, m, IMAGE_TEXT + 0x100);
	struct line line = { .function = dict_string(f->d, "from_the_file") };

	dict_location_name(f->d, a, &line, 1);
	run(f);
	assert_named(f, a, "from_the_file", "");
	assert_int_equal(f->st.locations, 0);
	assert_int_equal(f->opens, 0);
}

static void the_worst_images_come_first(void **state)
{
	struct fixture *f = *state;

	f->answer = -ENOENT;
	for (unsigned i = 0; i < 12; i++) {
		char path[32];
		module_id m;

		snprintf(path, sizeof(path), "/lib/%u.so", i);
		m = module(f, MODULE_ELF, path);
		for (unsigned k = 0; k < 1 + i * 7 % 12; k++)
			at(f, m, 0x1000 + k);
	}
	run(f);
	assert_int_equal(f->st.n_worst, 8);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(f->st.worst[i].locations, 12 - i);
}

static void the_vdso_is_named_from_our_own(void **state)
{
	struct fixture *f = *state;
	const ElfW(Ehdr) *hdr = (const void *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	struct elf_sym sym;
	location_id a, b;

	if (!hdr)
		skip(); /* a kernel without one, or valgrind, which hides it */
	assert_int_equal(elf_file_open_memory(hdr, 8192, "vdso", &elf, NULL), 0);
	assert_int_equal(elf_syms_load(elf, &syms, NULL), 0);
	if (elf_syms_find_name(syms, "clock_gettime", &sym, 1) != 1)
		skip(); /* another architecture's names */
	a = at(f, module(f, MODULE_VDSO, "[vdso]"), sym.vaddr + 1);
	b = at(f, module(f, MODULE_VDSO, "[vdso32]"), sym.vaddr + 1);
	run(f);
	assert_named(f, a, "clock_gettime", "clock_gettime");
	assert_int_equal(dict_location_get(f->d, b)->lines[0].system_name.ix, 0);
	assert_string_equal(f->st.worst[0].reason, "no such vDSO in this process");
}

static void kernel_locations_are_named_or_say_why_not(void **state)
{
	struct fixture *f = *state;
	_cleanup_(fclosep) FILE *syms = fopen("/proc/kallsyms", "re");
	char line[512], name[256], type;
	unsigned long addr = 0;
	location_id a, b;

	while (syms && fgets(line, sizeof(line), syms))
		if (sscanf(line, "%lx %c %255s", &addr, &type, name) == 3 &&
		    !strcmp(name, "schedule"))
			break;
	a = at(f, module(f, MODULE_KERNEL, "[kernel]"), addr ? addr + 8 : 0xffffffff81234560);
	b = at(f, module(f, MODULE_KERNEL, "[kernel]"), 0xfff);
	run(f);
	assert_named(f, b, "[kernel]+0xfff", "");
	if (addr) {
		assert_named(f, a, "schedule", "schedule");
	} else {
		assert_named(f, a, "[kernel]+0xffffffff81234560", "");
		assert_true(strstr(f->st.worst[0].reason, "kptr_restrict") ||
			    strstr(f->st.worst[0].reason, "/proc/kallsyms"));
	}
}

static void a_name_of_any_bytes_and_length_is_taken(void **state)
{
	struct fixture *f = *state;
	location_id a = at(f, module(f, MODULE_ELF, "/opt/app"), IMAGE_TEXT + 0x408);
	static char name[6000];

	memset(name, '\x1b', sizeof(name) - 1);
	image_sym(&f->image, name, STB_GLOBAL, STT_FUNC, SEC_TEXT, IMAGE_TEXT + 0x400, 0x40);
	image_finish(&f->image);
	run(f);
	assert_int_equal(strlen(dict_str(f->d, dict_location_get(f->d, a)->lines[0].function)),
			 4096);
}

/* This program, which has debug info. */
static int open_self(void *ctx, module_id m, struct err *e)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static int fail_to_open(void *ctx, module_id m, struct err *e)
{
	return -ENOENT;
}

static uint64_t entry_vaddr(void)
{
	Elf64_Ehdr head = { 0 };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, &head, sizeof(head)), sizeof(head));
	close(fd);
	return head.e_entry;
}

static void without_lines_debug_info_is_left_alone(void **state)
{
	struct fixture *f = *state;
	location_id with = at(f, module(f, MODULE_ELF, "/opt/one"),
			      (uintptr_t)open_self - getauxval(AT_ENTRY) + entry_vaddr()),
		    without;

	f->opts.open_module = open_self;
	run(f);
	assert_string_equal(dict_str(f->d, dict_location_get(f->d, with)->lines[0].function),
			    "open_self");
	assert_true(dict_location_get(f->d, with)->lines[0].line > 0);
	without = at(f, module(f, MODULE_ELF, "/opt/another"),
		     (uintptr_t)open_self - getauxval(AT_ENTRY) + entry_vaddr());
	f->opts.no_lines = true;
	run(f);
	assert_named(f, without, "open_self", "open_self");
	assert_int_equal(dict_location_get(f->d, without)->lines[0].line, 0);
}

static void what_the_budget_of_debug_info_leaves_out_is_named_by_symbols_and_marked(void **state)
{
	struct fixture *f = *state;
	const uint64_t vaddr = (uintptr_t)open_self - getauxval(AT_ENTRY) + entry_vaddr();
	location_id here = at(f, module(f, MODULE_ELF, "/opt/one"), vaddr), later;
	struct dwarf_budget budget = { 0 };

	f->opts.open_module = open_self;
	f->opts.lines_within = &budget;
	run(f);
	assert_named(f, here, "open_self", "open_self");
	assert_int_equal(dict_location_get(f->d, here)->lines[0].line, 0);
	assert_true(dict_location_get(f->d, here)->lines_unread && budget.ran_out);
	f->opts.no_lines = true; /* it may not be read now, either */
	run(f);
	assert_true(dict_location_get(f->d, here)->lines_unread);
	f->opts.no_lines = false;
	budget = (struct dwarf_budget){ .cpu_ns = 60000000000 };
	f->opts.open_module = fail_to_open; /* or its file is gone by then */
	run(f);
	assert_named(f, here, "open_self", "open_self");
	assert_true(dict_location_get(f->d, here)->lines_unread);
	f->opts.open_module = open_self;

	budget = (struct dwarf_budget){ .cpu_ns = 60000000000 };
	later = at(f, module(f, MODULE_ELF, "/opt/another"), vaddr);
	run(f);
	assert_true(dict_location_get(f->d, later)->lines[0].line > 0);
	assert_false(dict_location_get(f->d, later)->lines_unread || budget.ran_out);
	/* And what was left unread is read. */
	assert_true(dict_location_get(f->d, here)->lines[0].line > 0);
	assert_false(dict_location_get(f->d, here)->lines_unread);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_function_names_its_locations),
		TEST(names_stay_mangled_when_asked_to),
		TEST(a_plt_stub_is_named_after_the_function_it_calls),
		TEST(an_address_outside_every_function_keeps_its_offset),
		TEST(a_location_without_image_is_unknown),
		TEST(an_image_that_fails_costs_only_its_own_names_and_says_why),
		TEST(a_file_with_another_build_id_is_not_used),
		TEST(the_right_build_id_is_accepted),
		TEST(a_damaged_file_is_called_damaged),
		TEST(what_was_named_before_is_left_alone),
		TEST(the_worst_images_come_first),
		TEST(the_vdso_is_named_from_our_own),
		TEST(kernel_locations_are_named_or_say_why_not),
		TEST(a_name_of_any_bytes_and_length_is_taken),
		TEST(without_lines_debug_info_is_left_alone),
		TEST(what_the_budget_of_debug_info_leaves_out_is_named_by_symbols_and_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
