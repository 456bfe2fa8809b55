/*
 * import/, elf/, unwind/ and others: what others wrote, read without memory. Of readers of files the seeds of the fuzzers, of images
 * a program that every host has.
 */
#include "no_memory.h"

#include "elf/cfi.h"
#include "elf/elf_plt.h"
#include "elf/elf_syms.h"
#include "heap/snapshot/file.h"
#include "import/mem_log.h"
#include "import/readers.h"
#include "import/run_scalars.h"
#include "import/time_table.h"
#include "proc/cgroup.h"
#include "proc/smaps.h"
#include "symbolize/kallsyms.h"
#include "symbolize/perf_map.h"
#include "unwind/rows.h"

#include <dirent.h>
#include <fcntl.h>

#define CORPUS  "tests/fuzz/corpus"
#define PROGRAM "/bin/sh"

struct file {
	char name[64];
	void *data; /* aligned, as a mapped file's */
	size_t len;
};

static int no_memory_for(struct err *e, const char *what)
{
	return err_set(e, -ENOMEM, "out of memory for %s", what);
}

/* --- profiles --- */

static uint64_t digest_profile(const struct dict *d, const struct profile *p)
{
	uint64_t digest = digest_number(0, profile_n_samples(p));

	for (uint32_t i = 0; i < profile_n_samples(p); i++) {
		struct profile_sample s = profile_sample(p, i);

		for (stack_id at = s.stack; dict_stack_depth(d, at);
		     at = dict_stack_parent(d, at)) {
			const struct location *l = dict_location_get(d, dict_stack_leaf(d, at));

			digest = digest_number(digest, l->vaddr);
			for (uint32_t j = 0; j < l->n_lines; j++)
				digest = digest_text(digest, dict_str(d, l->lines[j].function));
		}
		digest = digest_add(digest, s.values, profile_n_types(p) * sizeof(*s.values));
	}
	return digest;
}

static int a_profile(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(dict_freep) struct dict *d = dict_new();
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct import_info info = { 0 };
	const struct file *f = arg;
	int r = d ? import_bytes(d, bytes_of(f->data, f->len), f->name, NULL, &p, &info, e)
		  : no_memory_for(e, "a dict");

	if (r == 0)
		*ret_digest = digest_number(digest_text(digest_profile(d, p), info.damage),
					    info.skipped_lines);
	return r;
}

/* --- tables --- */

static int a_log_of_memory(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(mem_log_freep) struct mem_log *log = NULL;
	const struct file *f = arg;
	bool armed = memory_pause();
	FILE *in = fmemopen(f->data, f->len, "r");
	int r;

	memory_resume(armed);
	r = in ? mem_log_parse(in, f->name, &log, e) : 1;
	if (r == 0)
		*ret_digest = digest_number(digest_add(0, log->rows, log->n * sizeof(*log->rows)),
					    log->skipped);
	if (in)
		fclose(in);
	return r;
}

static int a_table_over_time(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(time_table_freep) struct time_table *t = NULL;
	const struct file *f = arg;
	uint32_t skipped = 0;
	int r = time_table_parse(bytes_of(f->data, f->len), f->name, &t, &skipped, e);

	if (r < 0)
		return r;
	*ret_digest = digest_number(digest_add(0, t->times_s, t->n_rows * sizeof(double)), skipped);
	for (uint32_t c = 0; c < t->n_columns; c++)
		*ret_digest = digest_add(digest_text(*ret_digest, t->columns[c].name),
					 t->columns[c].values, t->n_rows * sizeof(double));
	return 0;
}

static int a_summary(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct run_scalars s = { 0 };
	const struct file *f = arg;
	int r = run_scalars_parse(bytes_of(f->data, f->len), f->name, &s, e);

	if (r == 0)
		*ret_digest = digest_add(0, s.value, sizeof(s.value));
	return r;
}

static int a_snapshot(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct snapshot *s = NULL;
	const struct file *f = arg;
	int r = snapshot_file_read(f->data, f->len, f->name, "/tmp", &s, e);

	if (r == 0)
		*ret_digest = digest_number(digest_number(0, s->blocks.n), s->n_roots);
	snapshot_free(s);
	return r;
}

/* Answers borrow from the bytes. */
static int a_perf_map(const void *arg, uint64_t *ret_digest, struct err *e)
{
	static const uint64_t asked[] = { 0x1000, 0x3ef414c0, 0x3ef41500 };
	const struct file *f = arg;
	struct perf_map *m = NULL;
	int r = perf_map_parse(f->data, f->len, asked, 3, &m);

	(void)e;
	*ret_digest = 0;
	for (int i = 0; r == 0 && i < 3; i++) {
		size_t len = 0;
		const char *name = perf_map_find(m, asked[i], &len);

		*ret_digest = digest_add(*ret_digest, name, name ? len : 0);
	}
	if (r == 0)
		perf_map_free(m);
	return r;
}

static int symbols_of_a_kernel(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	const struct file *f = arg;
	int r = kallsyms_parse(f->data, f->len, &k);

	(void)e;
	*ret_digest = r == 0;
	return r;
}

/* --- what the kernel says --- */

static int add_mapping(void *ctx, const struct smaps_entry *entry)
{
	uint64_t *digest = ctx;

	*digest = digest_number(digest_text(*digest, entry->map.path), (uint64_t)entry->rss_kb);
	return 0;
}

/* The second line takes more room than the first got, and the last more than both. */
static int mappings(const void *arg, uint64_t *ret_digest, struct err *e)
{
	static char text[2000];
	bool armed = memory_pause();
	FILE *in;
	int r;

	(void)arg, (void)e;
	snprintf(
		text, sizeof(text),
		"55d000000000-55d000001000 r-xp 00000000 fe:01 10 /usr/bin/a\nRss: 4 kB\nPss: 4 kB\n"
		"55d000002000-55d000003000 r-xp 00000000 fe:01 11 /usr/lib/%0*d\nRss: 8 kB\n"
		"55d000004000-55d000005000 rw-p 00000000 00:00 0 /usr/lib/%0*d\nRss: 16 kB\n",
		300, 1, 900, 2);
	in = fmemopen(text, strlen(text), "r");
	memory_resume(armed);
	*ret_digest = 0;
	r = in ? smaps_read(in, add_mapping, ret_digest) : 1;
	if (in)
		fclose(in);
	return r;
}

static int control_groups(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct cgroup_mounts m = { 0 };
	int r = cgroup_mounts_read(&m, e);

	(void)arg;
	if (r == 0)
		*ret_digest = m.n;
	/* On some machines there are none. */
	if (r == -ENOENT)
		r = 0;
	cgroup_mounts_fini(&m);
	return r;
}

/* --- images --- */

static int elf_of(const void *arg, struct elf_file **ret_elf, int *ret_fd, struct err *e)
{
	(void)arg;
	*ret_fd = open(PROGRAM, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return 1;
	return elf_file_open(*ret_fd, PROGRAM, ret_elf, e);
}

static int sections(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	const struct elf_section *secs;
	uint64_t digest = 0;
	uint32_t n;
	int r = elf_of(arg, &elf, &fd, e);

	if (r == 0)
		r = elf_file_sections(elf, &secs, &n, e);
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		_cleanup_(freep) uint8_t *bytes = NULL;

		digest = digest_text(digest, secs[i].name);
		if (secs[i].type != 1) /* SHT_PROGBITS */
			continue;
		r = elf_file_read_section(elf, &secs[i], &bytes, e);
		if (r == 0)
			digest = digest_add(digest, bytes, secs[i].size);
	}
	*ret_digest = digest;
	return r;
}

static int symbols(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(elf_plt_freep) struct elf_plt *plt = NULL;
	_cleanup_(closep) int fd = -1;
	struct elf_sym found[4];
	uint64_t digest = 0;
	int r = elf_of(arg, &elf, &fd, e), n = 0;

	if (r == 0)
		r = elf_syms_load(elf, &syms, e);
	/* A program without functions of its own has none. */
	if (r == -ENOENT)
		r = 0;
	for (uint32_t i = 0; r == 0 && syms && i < elf_syms_count(syms); i++) {
		struct elf_sym s = elf_syms_at(syms, i);

		digest = digest_number(digest_add(digest, s.name, s.name_len), s.vaddr);
	}
	if (r == 0 && syms)
		n = elf_syms_find_name(syms, "main", found, 4);
	if (n < 0)
		r = err_set(e, n, "no memory for an index of names");
	if (r == 0)
		r = elf_plt_load(elf, &plt, e);
	if (r == -ENOENT)
		r = 0;
	*ret_digest = digest_number(digest, (uint64_t)n);
	return r;
}

static int frames(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	_cleanup_(closep) int fd = -1;
	uint64_t digest = 0;
	int r = elf_of(arg, &elf, &fd, e);

	if (r == 0)
		r = cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &cfi, e);
	for (uint32_t i = 0; r == 0 && i < cfi_n_fdes(cfi); i++)
		digest = digest_number(digest, cfi_fde_at(cfi, i).start);
	*ret_digest = digest;
	return r;
}

static int a_table(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(unwind_table_freep) struct unwind_table *table = NULL;
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	int r = elf_of(arg, &elf, &fd, e);

	if (r == 0)
		r = unwind_table_build(elf, &table, e);
	if (r == 0)
		*ret_digest =
			digest_add(digest_add(0, table->rows, table->n_rows * sizeof(*table->rows)),
				   table->rules, table->n_rules * sizeof(*table->rules));
	return r;
}

static const struct scenario images[] = {
	{ "sections of an image", sections },
	{ "symbols of an image", symbols },
	{ "call frame information", frames },
	{ "an unwind table", a_table },
	{ "mappings of a process", mappings, .silent = true },
	{ "hierarchies of control groups", control_groups },
};

/* --- all of them --- */

enum { IMAGES = sizeof(images) / sizeof(images[0]), FILES_MAX = 96, BYTES_MAX = 64 << 10 };

static struct file files[FILES_MAX];
static struct scenario all[IMAGES + FILES_MAX + 1];

static bool read_whole(const char *path, struct file *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	f->data = aligned_alloc(64, BYTES_MAX);
	if (fd >= 0 && f->data)
		n = read(fd, f->data, BYTES_MAX);
	if (fd >= 0)
		close(fd);
	if (n > 0 && n < BYTES_MAX) {
		f->len = (size_t)n;
		return true;
	}
	free(f->data);
	return false;
}

/* What is read by `reader` of the seeds in a folder becomes scenarios, from the nth on. */
static uint32_t take_seeds(const struct scenario *reader, uint32_t n)
{
	char path[600];
	struct dirent **found;
	int count;

	snprintf(path, sizeof(path), CORPUS "/%s", reader->name);
	count = scandir(path, &found, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		struct file *f = &files[n];
		uint64_t digest;
		struct err e;

		snprintf(path, sizeof(path), CORPUS "/%s/%s", reader->name, found[i]->d_name);
		snprintf(f->name, sizeof(f->name), "%.20s: %.30s", reader->name, found[i]->d_name);
		if (n < FILES_MAX - 1 && found[i]->d_name[0] != '.' && read_whole(path, f)) {
			if (reader->run(f, &digest, &e) == 0)
				all[IMAGES + n++] = (struct scenario){ f->name, reader->run, f,
								       reader->silent };
			else
				free(f->data);
		}
		free(found[i]);
	}
	if (count >= 0)
		free(found);
	return n;
}

int main(int argc, char **argv)
{
	/* By the folders of their seeds. */
	static const struct scenario readers_of[] = {
		{ "callgrind", a_profile },
		{ "dhat", a_profile },
		{ "firefox", a_profile },
		{ "folded", a_profile },
		{ "ghc_eventlog", a_profile },
		{ "ghc_hp", a_profile },
		{ "heap_dump", a_profile },
		{ "heap_file", a_snapshot },
		{ "heaptrack", a_profile },
		{ "kallsyms", symbols_of_a_kernel, .silent = true },
		{ "massif", a_profile },
		{ "mem_log", a_log_of_memory },
		{ "perf_map", a_perf_map, .silent = true },
		{ "perf_script", a_profile },
		{ "pprof", a_profile },
		{ "run_scalars", a_summary },
		{ "speedscope", a_profile },
		{ "time_table", a_table_over_time },
		{ 0 },
	};
	bool all_there = true;
	uint32_t n = 0;
	int r;

	memcpy(all, images, sizeof(images));
	for (const struct scenario *reader = readers_of; reader->name; reader++) {
		uint32_t before = n;

		n = take_seeds(reader, n);
		if (n == before)
			fprintf(stderr, "there is no seed in " CORPUS "/%s\n", reader->name);
		all_there &= n > before;
	}
	r = no_memory_main(all, argc, argv);
	return all_there ? r : 2;
}
