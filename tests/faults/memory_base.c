/* base/: strings, files, archives and spools, without memory. */
#include "no_memory.h"

#include "base/archive.h"
#include "base/archive_files.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/chunks.h"
#include "base/new_file.h"
#include "base/sink.h"
#include "base/spool.h"
#include "base/strbuf.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define RUN "20260101-000000"

/* In memory where there is such a directory: what is written is put on the disk each time. */
static char top[64];

static const char *path(const char *name)
{
	static char buf[512];

	snprintf(buf, sizeof(buf), "%s/%s", top, name);
	return buf;
}

static int remove_one(const char *name, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(name);
}

/* The directory `name` below it, with nothing in it. */
static void make_empty(const char *name)
{
	nftw(path(name), remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(path(name), 0700) < 0)
		abort();
}

static void write_to(const char *name, const char *text)
{
	FILE *f = fopen(path(name), "w");

	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		abort();
}

/* --- in memory --- */

static int strings(const void *arg, uint64_t *ret_digest, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf b = { 0 };
	_cleanup_(freep) char *s = NULL;

	(void)arg, (void)e;
	for (int i = 0; i < 200; i++) {
		strbuf_printf(&b, "%d of %s;", i, "two hundred");
		strbuf_hex(&b, (uint64_t)i << 40);
		strbuf_add_clean(&b, "a\x01\xff", 3);
	}
	if (strbuf_oom(&b))
		return -ENOMEM;
	*ret_digest = digest_add(0, b.s, b.len);
	s = strbuf_take(&b);
	return s ? 0 : -ENOMEM;
}

static int arenas_and_chunks(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct chunks c = CHUNKS_OF(uint64_t);
	struct arena a = { 0 };
	uint64_t digest = 0;
	int r = 0;

	(void)arg, (void)e;
	for (uint64_t i = 0; r == 0 && i < 3000; i++) {
		uint64_t *at = chunks_add(&c);
		char *text = arena_strndup(&a, "two hundred characters are not enough", i % 38);

		if (at)
			*at = i;
		if (!at || !text)
			r = -ENOMEM;
		else
			digest = digest_text(digest, text);
	}
	for (uint32_t i = 0; i < c.n; i++)
		digest = digest_add(digest, chunks_at(&c, i), sizeof(uint64_t));
	chunks_free(&c);
	arena_free(&a);
	*ret_digest = digest;
	return r;
}

static int add_name(void *ctx, const char *name)
{
	uint64_t *digest = ctx;

	*digest = digest_text(*digest, name);
	return 0;
}

static int names_of_a_window(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct archive_folders folders = { 0 };
	struct window_files files = { 0 };
	struct strbuf out = { 0 };
	uint64_t digest = 0;
	char name[64];
	int r = 0;

	(void)arg, (void)e;
	for (int i = 1; r == 0 && i <= 100; i++) {
		snprintf(name, sizeof(name), "web-%d/%s-" RUN ".pb.gz", i / 2,
			 i % 2 ? "offcpu" : "oncpu");
		r = window_files_add(&files, &folders, name);
	}
	if (r == 0)
		window_files_print(&files, &out);
	if (strbuf_oom(&out))
		r = -ENOMEM;
	if (r == 0)
		r = window_groups_each(out.s, &folders, RUN, add_name, &digest);
	strbuf_free(&out);
	window_files_fini(&files);
	archive_folders_fini(&folders);
	*ret_digest = digest;
	return r;
}

/* --- files --- */

/* The file by that name is whole, or not there; *digest is of what is in it. */
static int look_at(const char *name, bool there, size_t len, uint64_t *digest)
{
	static char buf[1 << 20];
	bool armed = memory_pause();
	int fd = open(path(name), O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf));

	if ((fd >= 0) != there || (there && len && (size_t)n != len))
		r = 1;
	else
		*digest = digest_add(*digest, buf, (size_t)n);
	if (fd >= 0)
		close(fd);
	memory_resume(armed);
	return r;
}

static int files_that_are_written(const void *arg, uint64_t *ret_digest, struct err *e)
{
	const bool *gzip = arg;
	struct sink *s = NULL;
	bool armed = memory_pause();
	int r, wrong_file;

	make_empty("sink");
	memory_resume(armed);
	r = sink_open_file(path("sink/file"), &s, e);
	if (r == 0 && *gzip)
		r = sink_gzip(s, e);
	for (int i = 0; r == 0 && i < 4000; i++)
		sink_printf(s, "line %d of %0*d\n", i, i == 2000 ? 1000 : 4, 4000);
	if (r == 0)
		r = sink_commit(s, e);
	if (s)
		sink_close(s);
	*ret_digest = 0;
	wrong_file = look_at("sink/file", r == 0, 0, ret_digest);
	return wrong_file ? wrong_file : r;
}

static int files_without_a_name(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct new_file f = { .fd = -1 };
	bool armed = memory_pause();
	int r, wrong_file;

	(void)arg;
	make_empty("new");
	memory_resume(armed);
	r = new_file_open(path("new/file"), &f, e);
	if (r == 0)
		r = new_file_put(&f, 0, "all of it", 9);
	if (r == 0)
		r = new_file_commit(&f, e);
	new_file_close(&f);
	*ret_digest = 0;
	wrong_file = look_at("new/file", r == 0, 9, ret_digest);
	return wrong_file ? wrong_file : r;
}

/* --- archives --- */

enum { LISTED = 60 };

static void list_windows(void)
{
	FILE *f;

	make_empty("listed");
	f = fopen(path("listed/.memscope"), "w");
	if (!f)
		abort();
	for (int i = 1; i <= 5; i++)
		fprintf(f, "#%d web-%d\n", i, i);
	for (int i = 0; i < LISTED; i++)
		fprintf(f, "*20260101-0000%02d %d 4096 12 offcpu-.pb.gz,oncpu-.pb.gz:0-5;\n", i,
			1767225600 + i);
	fclose(f);
}

static int add_window(void *ctx, const struct archive_listed *w)
{
	uint64_t *digest = ctx;

	*digest = digest_number(digest_text(digest_text(*digest, w->stamp), w->file), w->files);
	for (uint32_t i = 0; i < w->n_folders; i++)
		if (w->has[i] && w->folders[i])
			*digest = digest_text(*digest, w->folders[i]);
	return 0;
}

static int a_list_of_windows(const void *arg, uint64_t *ret_digest, struct err *e)
{
	uint64_t digest = 0;
	int r = archive_each_listed(path("listed"), add_window, &digest);

	(void)arg, (void)e;
	if (r == 0)
		r = archive_each_missing(path("listed"), add_name, &digest);
	*ret_digest = digest;
	return r;
}

static int count_name(void *ctx, const char *name)
{
	uint64_t *n = ctx;

	(void)name;
	++*n;
	return 0;
}

/* After the next start every window that is listed is there; *digest is of their names. `whole`: before it, too. */
static int look_at_windows(const char *dir, bool whole, uint64_t *digest)
{
	static const struct keep all = { 0 };
	bool armed = memory_pause();
	uint64_t missing = 0;
	int r = whole ? 0 : archive_check(path(dir), &all, NULL);

	*digest = 0;
	if (r == 0)
		r = archive_each_missing(path(dir), count_name, &missing);
	if (r == 0)
		r = archive_each_listed(path(dir), add_window, digest);
	memory_resume(armed);
	/* Nothing was listed where not even the run was. */
	return r == -ENOENT ? 0 : r || missing ? 1 : 0;
}

static void make_window(const struct archive *t, const char *stamp)
{
	bool armed = memory_pause();
	char name[256];

	snprintf(name, sizeof(name), "%s/web", archive_making(t));
	mkdir(name, 0700);
	for (int i = 0; i < 3; i++) {
		int fd;

		snprintf(name, sizeof(name), "%s/%s-%s.pb.gz", archive_making(t),
			 (const char *[]){ "oncpu", "offcpu", "web/oncpu" }[i], stamp);
		fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || write(fd, "window", 6) != 6)
			abort();
		close(fd);
	}
	memory_resume(armed);
}

static int windows_that_come_and_go(const void *arg, uint64_t *ret_digest, struct err *e)
{
	static const char *const run_files[] = { "trend.csv", NULL };
	static const struct keep keep = { .count = 2 };
	static const struct keep all = { 0 };
	_cleanup_(archive_closep) struct archive *t = NULL;
	bool armed = memory_pause();
	int r, wrong_list;
	char stamp[32];

	(void)arg;
	make_empty("windows");
	memory_resume(armed);
	r = archive_open(path("windows"), RUN, run_files, &all, &t, e);
	for (int i = 1; r == 0 && i <= 4; i++) {
		snprintf(stamp, sizeof(stamp), "20260101-0000%02d", i);
		make_window(t, stamp);
		r = archive_commit(t, stamp, &keep, e);
	}
	wrong_list = look_at_windows("windows", r == 0, ret_digest);
	return wrong_list ? wrong_list : r;
}

/* Of windows that are there already. */
static int old_windows_that_go(const void *arg, uint64_t *ret_digest, struct err *e)
{
	static const char *const no_files[] = { NULL };
	static const struct keep all = { 0 }, keep = { .count = 3 };
	struct archive *t = NULL;
	struct pruned pruned = { 0 };
	bool armed = memory_pause();
	char stamp[32];
	int r, wrong_list;

	(void)arg;
	make_empty("old");
	if (archive_open(path("old"), RUN, no_files, &all, &t, NULL) < 0)
		abort();
	for (int i = 1; i <= 8; i++) {
		snprintf(stamp, sizeof(stamp), "20260101-0000%02d", i);
		make_window(t, stamp);
		if (archive_commit(t, stamp, &all, NULL) < 0)
			abort();
	}
	archive_close(t);
	unlink(path("old/oncpu-20260101-000003.pb.gz"));
	memory_resume(armed);
	r = archive_check(path("old"), &all, e);
	if (r == 0)
		r = archive_prune(path("old"), &keep, &pruned, e);
	wrong_list = look_at_windows("old", r == 0, ret_digest);
	return wrong_list ? wrong_list : r;
}

static int entries_that_wait(const void *arg, uint64_t *ret_digest, struct err *e)
{
	struct spool_use use = { 0 };
	struct spool_names names = { 0 };
	struct spool_gone gone = { 0 };
	bool armed = memory_pause();
	struct spool spool = { path("spool"), 1 << 20, &use };
	char dir[512];
	int r;

	(void)arg;
	make_empty("spool");
	snprintf(dir, sizeof(dir), "%s", path("spool"));
	spool.dir = dir;
	memory_resume(armed);
	*ret_digest = 0;
	r = spool_open(&spool, e);
	for (int i = 1; r == 0 && i <= 4; i++)
		r = spool_put(&spool, i, "a window", bytes_of("what is in it", 13), &gone, e);
	if (r == 0)
		r = spool_list(&spool, &names, e);
	for (uint32_t i = 0; r == 0 && i < names.n; i++) {
		struct spool_entry entry;

		r = spool_hold(&spool, names.names[i], &entry, e);
		if (r < 0)
			break;
		*ret_digest = digest_add(digest_text(*ret_digest, entry.title), entry.body.data,
					 entry.body.len);
		spool_let_go(&entry);
		spool_remove(&spool, names.names[i]);
	}
	spool_names_fini(&names);
	return r;
}

static const bool plain = false, packed = true;
static const struct scenario scenarios[] = {
	{ "strings", strings, .silent = true },
	{ "arenas and chunks", arenas_and_chunks, .silent = true },
	{ "names of a window's files", names_of_a_window, .silent = true },
	{ "a file that is written", files_that_are_written, &plain },
	{ "a file that is written and packed", files_that_are_written, &packed },
	{ "a file without a name", files_without_a_name },
	{ "a list of windows", a_list_of_windows, .silent = true },
	{ "windows that come and go", windows_that_come_and_go },
	{ "old windows that go", old_windows_that_go },
	{ "entries of a spool", entries_that_wait },
	{ 0 },
};

int main(int argc, char **argv)
{
	int r;

	snprintf(top, sizeof(top), "%s/memscope-faults-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(top))
		return 2;
	list_windows();
	write_to("listed/unlisted", "");
	r = no_memory_main(scenarios, argc, argv);
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return r;
}
