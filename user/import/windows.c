#include "import/windows.h"

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/whole_file.h"
#include "model/pprof.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROFILE_EXT ".pb.gz"
#define NS          1000000000LL

enum { MAX_FILE_BYTES = 1 << 30 };

DEFINE_CLEANUP(DIR *, closedirp, closedir)

void windows_fini(struct windows *w)
{
	free(w->dir);
	free(w->all);
	*w = (struct windows){ 0 };
}

int windows_source(const struct windows *w, const char *name)
{
	for (uint32_t i = 0; i < w->n_sources; i++)
		if (strcmp(w->sources[i], name) == 0)
			return (int)i;
	return -1;
}

/* Sorted by name: the order of a directory is arbitrary. */
void windows_list_sources(const struct windows *w, uint32_t sources, char *out, size_t cap)
{
	size_t n = 0;

	*out = '\0';
	while (sources && n < cap) {
		int first = -1;

		for (uint32_t i = 0; i < w->n_sources; i++)
			if (sources & 1u << i &&
			    (first < 0 || strcmp(w->sources[i], w->sources[first]) < 0))
				first = (int)i;
		if (first < 0)
			return;
		sources &= ~(1u << first);
		n += (size_t)snprintf(out + n, cap - n, "%s%s", n ? ", " : "", w->sources[first]);
	}
}

/* --- which there are --- */

/* Its bit; 0: there are too many. */
static uint32_t source_bit(struct windows *w, const char *name)
{
	int found = windows_source(w, name);

	if (found < 0 && w->n_sources < WINDOWS_SOURCES) {
		found = (int)w->n_sources;
		snprintf(w->sources[w->n_sources++], sizeof(w->sources[0]), "%s", name);
	}
	return found < 0 ? 0 : 1u << found;
}

/* sites-STAMP.pb.gz is of a whole run. */
static bool is_of_window(const struct window_name *n)
{
	return strcmp(n->ext, PROFILE_EXT) == 0 && strcmp(n->source, "sites") != 0;
}

static int add_file(struct windows *w, const struct window_name *n)
{
	struct window *to;

	if (!GROW(w->all, w->n, w->cap))
		return -ENOMEM;
	to = &w->all[w->n++];
	*to = (struct window){ .begin_ns = stamp_time(n->stamp) * NS,
			       .sources = source_bit(w, n->source) };
	memcpy(to->stamp, n->stamp, sizeof(to->stamp));
	memcpy(to->word, n->word, sizeof(to->word));
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct window *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return strverscmp(x->stamp, y->stamp) ?: strcmp(x->word, y->word);
}

/* Files of one window become one. */
static void join_files(struct windows *w)
{
	uint32_t kept = 0;

	if (w->n)
		qsort(w->all, w->n, sizeof(*w->all), by_time);
	for (uint32_t i = 0; i < w->n; i++) {
		if (kept && by_time(&w->all[kept - 1], &w->all[i]) == 0)
			w->all[kept - 1].sources |= w->all[i].sources;
		else
			w->all[kept++] = w->all[i];
	}
	w->n = kept;
}

int windows_read(const char *dir, const char *folder, struct windows *ret_windows, struct err *e)
{
	struct windows *w = ret_windows;
	_cleanup_(closedirp) DIR *d = NULL;
	char path[4096];
	int r = 0;

	*w = (struct windows){ .dir = strdup(dir) };
	if (!w->dir)
		return err_set(e, -ENOMEM, "out of memory");
	snprintf(w->folder, sizeof(w->folder), "%s", folder ? folder : "");
	snprintf(path, sizeof(path), "%s%s%s", dir, *w->folder ? "/" : "", w->folder);
	d = opendir(path);
	if (!d)
		return err_set(e, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		struct window_name n;

		if (window_name_parse(entry->d_name, &n) && is_of_window(&n))
			r = add_file(w, &n);
	}
	if (r < 0)
		return err_set(e, r, "%s: out of memory", path);
	join_files(w);
	return 0;
}

/* --- sizes --- */

struct window *windows_of_file(const struct windows *w, const struct window_name *n)
{
	struct window key = { .begin_ns = stamp_time(n->stamp) * NS };

	memcpy(key.stamp, n->stamp, sizeof(key.stamp));
	memcpy(key.word, n->word, sizeof(key.word));
	return w->n && windows_source(w, n->source) >= 0
		       ? bsearch(&key, w->all, w->n, sizeof(*w->all), by_time)
		       : NULL;
}

static void add_size(struct windows *w, struct window *to, uint64_t bytes, bool in_folder,
		     struct windows_part *part)
{
	to->files++;
	to->bytes += bytes;
	part->bytes += bytes;
	if (to->last_folder == w->n_folders)
		return;
	to->last_folder = w->n_folders;
	to->folders += in_folder;
	part->windows++;
	if (to->begin_ns > part->last_ns)
		part->last_ns = to->begin_ns;
}

int windows_add_sizes(struct windows *w, const char *folder,
		      int (*on_file)(void *ctx, const char *path, uint64_t bytes), void *ctx,
		      struct windows_part *ret_part, struct err *e)
{
	_cleanup_(closedirp) DIR *d = NULL;
	struct windows_part part = { 0 };
	char path[4096];
	int r = 0;

	snprintf(path, sizeof(path), "%s%s%s", w->dir, *folder ? "/" : "", folder);
	d = opendir(path);
	if (!d)
		return err_set(e, -errno, "%s: cannot be opened: %s", path, strerror(errno));
	w->n_folders++;
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		struct window_name n;
		struct window *to =
			window_name_parse(entry->d_name, &n) ? windows_of_file(w, &n) : NULL;
		struct stat st;

		if (!to || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		add_size(w, to, (uint64_t)st.st_size, *folder && !folder_is_rest(folder), &part);
		snprintf(path, sizeof(path), "%s%s%s/%s", w->dir, *folder ? "/" : "", folder,
			 entry->d_name);
		r = on_file ? on_file(ctx, path, (uint64_t)st.st_size) : 0;
	}
	*ret_part = part;
	return r < 0 ? err_set(e, r, "%s: out of memory", path) : 0;
}

/* --- when each was --- */

int windows_path(const struct windows *w, uint32_t i, uint32_t source, const char *ext, char *out,
		 size_t cap)
{
	const struct window *window = &w->all[i];

	return snprintf(out, cap, "%s/%s%s%s%s%s-%s%s", w->dir, w->folder, *w->folder ? "/" : "",
			w->sources[source], *window->word ? "_" : "", window->word, window->stamp,
			ext);
}

static int read_times(const char *path, int64_t *ret_begin_ns, int64_t *ret_ns, struct err *e)
{
	_cleanup_(freep) char *data = NULL;
	size_t len;
	int r = whole_file_read(path, MAX_FILE_BYTES, "a profile", &data, &len, e);

	return r < 0 ? r : pprof_read_times(data, len, path, ret_begin_ns, ret_ns, e);
}

int windows_measure(struct windows *w, uint32_t i, struct err *e)
{
	struct window *window = &w->all[i];
	int64_t begin_ns = 0, ns = 0;
	char path[4096];
	int r = -ENOENT;

	if (window->measured)
		return 0;
	for (uint32_t s = 0; r < 0 && s < w->n_sources; s++) {
		if (!(window->sources & 1u << s))
			continue;
		windows_path(w, i, s, PROFILE_EXT, path, sizeof(path));
		r = read_times(path, &begin_ns, &ns, e);
	}
	if (r < 0)
		return r;
	window->begin_ns = begin_ns;
	window->end_ns = begin_ns + ns;
	window->measured = true;
	return 0;
}

int64_t windows_last_begun(const struct windows *w, int64_t ns)
{
	int64_t last = -1;

	for (uint32_t i = 0; i < w->n; i++)
		if (!*w->all[i].word && w->all[i].begin_ns <= ns)
			last = i;
	return last;
}
