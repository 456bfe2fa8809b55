#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "table_image.h"
#include "unwind/row_cache.h"

enum { BYTES_MAX = 1 << 20 };

#define ENTRY "abcdef0102030405.rows"

static char dir[64], cache_dir[96];
static struct row_cache *cache;
static struct elf_file *elf;
static struct unwind_table *table;

static void in_dir(char path[160], const char *name)
{
	snprintf(path, 160, "%s/%s", cache_dir, name);
}

static void make_image(uint8_t first_offset)
{
	elf_file_close(elf);
	unwind_table_free(table);
	elf = NULL;
	table = NULL;
	code_init(&im);
	put_usual_cie(&im);
	put_fde(&im, F, 0x100,
		INSNS(DW_CFA_def_cfa_offset, first_offset, DW_CFA_advance_loc | 1,
		      DW_CFA_def_cfa_offset, 16));
	code_finish(&im);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(unwind_table_build(elf, &table, NULL), 0);
}

static int begin(void **state)
{
	struct err e = { 0 };

	strcpy(dir, "/tmp/memscope-rows-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(cache_dir, sizeof(cache_dir), "%s/a/rows", dir);
	if (row_cache_open(cache_dir, BYTES_MAX, &cache, &e) < 0)
		fail_msg("%s", e.msg);
	make_image(8);
	return 0;
}

static void empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	char name[400];

	while (d && (entry = readdir(d))) {
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlink(name);
	}
	if (d)
		closedir(d);
}

static int end(void **state)
{
	char path[128];

	row_cache_close(cache);
	elf_file_close(elf);
	unwind_table_free(table);
	cache = NULL;
	elf = NULL;
	table = NULL;
	chmod(cache_dir, 0700);
	empty(cache_dir);
	rmdir(cache_dir);
	snprintf(path, sizeof(path), "%s/a", dir);
	rmdir(path);
	return rmdir(dir);
}

static void store(void)
{
	struct err e = { 0 };

	if (row_cache_store(cache, elf, table, &e) < 0)
		fail_msg("%s", e.msg);
}

static bool is_there(void)
{
	_cleanup_(unwind_table_freep) struct unwind_table *got = NULL;

	return row_cache_load(cache, elf, &got) == 0;
}

static void what_was_stored_is_loaded(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *got = NULL;
	struct stat st;
	char path[160];

	assert_false(is_there());
	store();
	assert_int_equal(row_cache_load(cache, elf, &got), 0);
	assert_int_equal(got->n_rows, table->n_rows);
	assert_int_equal(got->n_rules, table->n_rules);
	assert_int_equal(got->first_page, table->first_page);
	assert_int_equal(got->kind, table->kind);
	assert_int_equal(got->machine, table->machine);
	assert_memory_equal(got->rows, table->rows, 4 * table->n_rows);
	assert_memory_equal(got->dir, table->dir, 4 * (table->n_pages + 1));
	assert_memory_equal(got->rules, table->rules, sizeof(struct ms_rule) * table->n_rules);
	assert_memory_equal(&got->counts, &table->counts, sizeof(got->counts));
	in_dir(path, ENTRY);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(cache_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

/* The next run has the same seed. */
static void it_is_there_for_the_next_run(void **state)
{
	store();
	row_cache_close(cache);
	assert_int_equal(row_cache_open(cache_dir, BYTES_MAX, &cache, NULL), 0);
	assert_true(is_there());
}

static void a_build_id_alone_is_not_believed(void **state)
{
	store();
	make_image(24);
	assert_false(is_there());
	make_image(8);
	assert_true(is_there());
}

static void a_file_without_build_id_is_not_kept(void **state)
{
	struct err e = { 0 };

	im.no_build_id = true;
	code_finish(&im);
	elf_file_close(elf);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(row_cache_store(cache, elf, table, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "build ID"));
	assert_false(is_there());
}

/* 65,536 times a quarter of a GiB, for one with more headers than this. */
static void a_file_that_names_its_bytes_again_and_again_is_not_read_so_often(void **state)
{
	static const int again[] = { 1, 4, 5 };
	Elf64_Shdr *sh;

	code_finish(&im);
	sh = (Elf64_Shdr *)(void *)(im.bytes + ((Elf64_Ehdr *)(void *)im.bytes)->e_shoff);
	for (size_t i = 0; i < 3; i++)
		sh[again[i]] = (Elf64_Shdr){ .sh_name = sh[2].sh_name,
					     .sh_type = SHT_PROGBITS,
					     .sh_size = im.len };
	elf_file_close(elf);
	assert_int_equal(elf_file_open_memory(im.bytes, im.len, "image", &elf, NULL), 0);
	assert_int_equal(row_cache_store(cache, elf, table, NULL), -EFBIG);
	assert_false(is_there());
}

static void any_changed_byte_is_noticed(void **state)
{
	char path[160];
	struct stat st;
	int fd;

	store();
	in_dir(path, ENTRY);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t i = 0; i < st.st_size; i++) {
		uint8_t was, now;

		assert_int_equal(pread(fd, &was, 1, i), 1);
		now = was ^ 0x10;
		assert_int_equal(pwrite(fd, &now, 1, i), 1);
		assert_false(is_there());
		assert_int_equal(pwrite(fd, &was, 1, i), 1);
	}
	assert_true(is_there());
	for (off_t i = 0; i < st.st_size; i += 7) {
		assert_int_equal(ftruncate(fd, i), 0);
		assert_false(is_there());
		store();
		close(fd);
		fd = open(path, O_RDWR);
	}
	assert_int_equal(pwrite(fd, "x", 1, st.st_size), 1);
	assert_false(is_there());
	close(fd);
}

static void only_a_plain_file_of_ours_is_believed(void **state)
{
	char path[160], other[160];

	store();
	in_dir(path, ENTRY);
	in_dir(other, "other");
	assert_int_equal(chmod(path, 0620), 0);
	assert_false(is_there());
	assert_int_equal(chmod(path, 0602), 0);
	assert_false(is_there());
	assert_int_equal(chmod(path, 0600), 0);
	assert_true(is_there());
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 0), 0);
		assert_false(is_there());
		assert_int_equal(chown(path, 0, 0), 0);
	}
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("other", path), 0);
	assert_false(is_there());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(is_there());
}

static void a_directory_that_others_may_write_is_refused(void **state)
{
	struct row_cache *again = NULL;
	struct err e = { 0 };

	assert_int_equal(chmod(cache_dir, 0770), 0);
	assert_int_equal(row_cache_open(cache_dir, BYTES_MAX, &again, &e), -EPERM);
	assert_non_null(strstr(e.msg, "0700"));
	assert_null(again);
}

static void what_was_not_used_for_longest_goes_first(void **state)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	char path[160], name[64];
	struct stat st;
	uint64_t each;
	int left = 0;

	store();
	in_dir(path, ENTRY);
	assert_int_equal(stat(path, &st), 0);
	each = (uint64_t)st.st_size;
	for (int i = 0; i < 10; i++) {
		char to[160];

		snprintf(name, sizeof(name), "%02d.rows", i);
		in_dir(to, name);
		assert_int_equal(link(path, to), 0);
	}
	/* Links share their times: make them files of their own. */
	for (int i = 0; i < 10; i++) {
		char to[160];
		int fd;

		snprintf(name, sizeof(name), "%02d.rows", i);
		in_dir(to, name);
		unlink(to);
		fd = open(to, O_CREAT | O_WRONLY, 0600);
		assert_int_equal(ftruncate(fd, (off_t)each), 0);
		assert_int_equal(futimens(fd, old), 0);
		close(fd);
	}
	row_cache_close(cache);
	assert_int_equal(row_cache_open(cache_dir, 8 * each, &cache, NULL), 0);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "%02d.rows", i);
		in_dir(path, name);
		left += access(path, F_OK) == 0;
	}
	/* Down to three quarters of 8, the one in use among them. */
	assert_int_equal(left, 5);
	assert_true(is_there());
}

static void what_cannot_be_within_bounds_is_not_believed(void **state)
{
	struct ms_rule *rule = &table->rules[MS_RULE_FIRST];
	struct ms_rule good = *rule;
	uint32_t row = table->rows[1];

	rule->reg = MS_N_REGS;
	store();
	assert_false(is_there());
	*rule = good;
	rule->kind = MS_N_RULE_KINDS;
	store();
	assert_false(is_there());
	*rule = good;
	rule->from_reg = 1 << MS_N_SAVED_X86;
	store();
	assert_false(is_there());
	*rule = good;
	table->rules[MS_RULE_IX_END].kind = MS_RULE_NONE;
	store();
	assert_false(is_there());
	table->rules[MS_RULE_IX_END].kind = MS_RULE_END;
	table->rows[1] = (row & ~MS_ROW_RULE_MASK) | table->n_rules;
	store();
	assert_false(is_there());
	table->rows[1] = table->rows[0];
	store();
	assert_false(is_there());
	table->rows[1] = row;
	table->dir[0] = 1;
	store();
	assert_false(is_there());
	table->dir[0] = 0;
	store();
	assert_true(is_there());
}

static void building_goes_through_the_cache(void **state)
{
	_cleanup_(unwind_table_freep) struct unwind_table *got = NULL, *again = NULL;

	assert_int_equal(row_cache_build(cache, elf, &got, NULL), 0);
	assert_true(is_there());
	assert_int_equal(row_cache_build(NULL, elf, &again, NULL), 0);
	assert_int_equal(again->n_rows, got->n_rows);
}

int main(void)
{
#define FACT(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		FACT(what_was_stored_is_loaded),
		FACT(it_is_there_for_the_next_run),
		FACT(a_build_id_alone_is_not_believed),
		FACT(a_file_without_build_id_is_not_kept),
		FACT(a_file_that_names_its_bytes_again_and_again_is_not_read_so_often),
		FACT(any_changed_byte_is_noticed),
		FACT(only_a_plain_file_of_ours_is_believed),
		FACT(a_directory_that_others_may_write_is_refused),
		FACT(what_was_not_used_for_longest_goes_first),
		FACT(what_cannot_be_within_bounds_is_not_believed),
		FACT(building_goes_through_the_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
