#include "cmd/ls_read.h"

#include "base/archive.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/input.h"
#include "import/readers.h"
#include "import/window_choice.h"
#include "model/about.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOKED_AT_MOST = 20000 }; /* files: half a second, where each takes 25 us */

struct reading {
	const struct ls_opts *opts;
	const struct input_place *place;
	struct archive_view *v;
	struct windows w;
};

static int add_text(char ***list, uint32_t *n, const char *text)
{
	char **more = reallocarray(*list, *n + 1ul, sizeof(*more)), *copy = strdup(text);

	if (more)
		*list = more;
	if (!more || !copy) {
		free(copy);
		return -ENOMEM;
	}
	more[(*n)++] = copy;
	return 0;
}

/* --- what is damaged or missing --- */

static int note_damaged(struct reading *rd, const char *sentence)
{
	return add_text(&rd->v->damaged, &rd->v->n_damaged, sentence);
}

/* Reads it to its end. */
static int check_packing(struct reading *rd, const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(input_freep) struct input *in = fd < 0 ? NULL : input_of_fd(fd);
	const char *what = "cannot be read";
	char sentence[4300];
	struct bytes piece;

	while (in && input_piece(in, &piece))
		;
	if (in && input_fault(in, &what) == 0)
		return 0;
	snprintf(sentence, sizeof(sentence), "%s: %s", path, what);
	return note_damaged(rd, sentence);
}

/* Folded text of no samples is. */
static bool may_be_empty(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && strcmp(dot, ".folded") == 0;
}

static int look_at(void *ctx, const char *path, uint64_t bytes)
{
	struct reading *rd = ctx;
	char sentence[4300];

	if (!bytes && !may_be_empty(path)) {
		snprintf(sentence, sizeof(sentence), "%s: is empty", path);
		return note_damaged(rd, sentence);
	}
	return rd->opts->check ? check_packing(rd, path) : 0;
}

static int note_missing(void *ctx, const char *name)
{
	struct reading *rd = ctx;
	size_t folder = strlen(rd->place->folder);

	if (folder && (strncmp(name, rd->place->folder, folder) != 0 || name[folder] != '/'))
		return 0;
	return add_text(&rd->v->missing, &rd->v->n_missing, name);
}

/* --- sizes, by container --- */

static int add_folder(struct archive_view *v, const char *name, const struct windows_part *part)
{
	struct archive_folder *more = reallocarray(v->folders, v->n_folders + 1ul, sizeof(*more));

	if (!more)
		return -ENOMEM;
	v->folders = more;
	more += v->n_folders++;
	*more = (struct archive_folder){ .windows = part->windows,
					 .bytes = part->bytes,
					 .last_ns = part->last_ns };
	snprintf(more->name, sizeof(more->name), "%s", name);
	return 0;
}

/* What the list says, of archives with so many files that to look at each would take long. */
struct listing {
	struct reading *rd;
	struct windows_part *parts; /* by number of the folder */
	uint32_t n_parts;
	char (*names)[64];
	uint64_t files;
};

static int count_listed(void *ctx, const struct archive_listed *w)
{
	struct listing *l = ctx;

	l->files += w->files;
	if (w->n_folders > l->n_parts)
		l->n_parts = w->n_folders;
	return 0;
}

static void add_to_folders(struct listing *l, const struct archive_listed *w, struct window *to)
{
	for (uint32_t i = 1; i < w->n_folders && i < l->n_parts; i++) {
		if (!w->has[i])
			continue;
		if (!l->parts[i].windows++)
			snprintf(l->names[i], sizeof(*l->names), "%.63s", w->folders[i]);
		if (to->begin_ns > l->parts[i].last_ns)
			l->parts[i].last_ns = to->begin_ns;
		to->folders += !folder_is_rest(w->folders[i]);
	}
}

static int add_listed(void *ctx, const struct archive_listed *w)
{
	struct listing *l = ctx;
	struct window_name n;
	struct window *to = window_name_parse(w->file, &n) ? windows_of_file(&l->rd->w, &n) : NULL;

	if (!to)
		return 0;
	to->bytes += w->bytes;
	to->files += w->files;
	add_to_folders(l, w, to);
	return 0;
}

static bool all_listed(const struct windows *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (!w->all[i].files)
			return false;
	return true;
}

static int add_parts(struct listing *l)
{
	int r = 0;

	for (uint32_t i = 1; r == 0 && i < l->n_parts; i++) {
		l->parts[i].bytes = ARCHIVE_BYTES_UNKNOWN;
		if (l->parts[i].windows)
			r = add_folder(l->rd->v, l->names[i], &l->parts[i]);
	}
	return r;
}

/* 1; 0: files are to be looked at; -ENOMEM. */
static int take_listed(struct reading *rd)
{
	_cleanup_(freep) struct windows_part *parts = NULL;
	_cleanup_(freep) char(*names)[64] = NULL;
	struct listing l = { .rd = rd };
	int r;

	if (rd->opts->check || *rd->place->folder ||
	    archive_each_listed(rd->place->dir, count_listed, &l) < 0 || l.files <= LOOKED_AT_MOST)
		return 0;
	l.parts = parts = calloc(l.n_parts + 1ul, sizeof(*parts));
	l.names = names = calloc(l.n_parts + 1ul, sizeof(*names));
	if (!parts || !names)
		return -ENOMEM;
	r = archive_each_listed(rd->place->dir, add_listed, &l);
	if (r == 0 && all_listed(&rd->w))
		return add_parts(&l) ?: 1;
	for (uint32_t i = 0; i < rd->w.n; i++)
		rd->w.all[i].bytes = rd->w.all[i].files = rd->w.all[i].folders = 0;
	return r == -ENOMEM ? r : 0;
}

static int read_sizes(struct reading *rd, struct err *e)
{
	_cleanup_(input_names_fini) struct input_names folders = { 0 };
	struct windows_part part;
	int r = take_listed(rd);

	if (r)
		return r < 0 ? err_set(e, r, "out of memory") : 0;
	r = windows_add_sizes(&rd->w, rd->place->folder, look_at, rd, &part, e);
	if (r == 0 && !*rd->place->folder)
		r = input_folders(rd->place->dir, &folders, e);
	for (uint32_t i = 0; r == 0 && i < folders.n; i++) {
		r = windows_add_sizes(&rd->w, folders.list[i], look_at, rd, &part, e);
		if (r == 0 && part.windows && add_folder(rd->v, folders.list[i], &part) < 0)
			r = err_set(e, -ENOMEM, "out of memory");
	}
	return r;
}

/* --- rows --- */

static int add_rows(struct reading *rd, struct err *e)
{
	struct archive_view *v = rd->v;
	struct windows *w = &rd->w;

	v->rows = calloc(w->n + 1ul, sizeof(*v->rows));
	if (!v->rows)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w->n; i++) {
		struct archive_row *row = &v->rows[v->n_rows++];
		struct err why = { 0 };
		int r = windows_measure(w, i, &why);

		if (r == -ENOMEM || (r < 0 && note_damaged(rd, why.msg) < 0))
			return err_set(e, -ENOMEM, "out of memory");
		snprintf(row->name, sizeof(row->name), "%s%s%s", w->all[i].word,
			 *w->all[i].word ? "-" : "", w->all[i].stamp);
		snprintf(row->trigger, sizeof(row->trigger), "%s", w->all[i].word);
		row->begin_ns = w->all[i].begin_ns;
		row->end_ns = w->all[i].end_ns;
		row->bytes = w->all[i].bytes;
		row->files = w->all[i].files;
		row->containers = *rd->place->folder ? 0 : w->all[i].folders;
		windows_list_sources(w, w->all[i].sources, row->sources, sizeof(row->sources));
	}
	return 0;
}

static int choose_rows(struct reading *rd, struct err *e)
{
	_cleanup_(freep) uint32_t *chosen = NULL;
	uint32_t n = rd->w.n, rows = rd->opts->rows;
	struct window_choice c;
	int r;

	if (!rd->opts->choice) {
		for (uint32_t i = rows && rows < n ? n - rows : 0; i < n; i++)
			rd->v->rows[i].shown = true;
		return 0;
	}
	r = window_choice_parse(rd->opts->choice, wall_ns(), &c, e);
	if (r == 0)
		r = window_choose(&rd->w, &c, &chosen, &n, e);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		rd->v->rows[chosen[i]].shown = true;
	/* Those of triggers lie across a range. */
	for (uint32_t i = 0; r == 0 && c.kind == CHOOSE_RANGE && i < rd->w.n; i++)
		rd->v->rows[i].shown |= *rd->w.all[i].word && rd->w.all[i].end_ns > c.from_ns &&
					rd->w.all[i].begin_ns < c.to_ns;
	return r;
}

/* --- labels --- */

/* They are comments of each profile: the last one's are read. */
static int read_labels(struct reading *rd)
{
	struct window *last = rd->w.n ? &rd->w.all[rd->w.n - 1] : NULL;
	struct dict *d = last ? dict_new() : NULL;
	struct profile *p = NULL;
	char path[4096], **labels = NULL;
	uint32_t n = 0;
	int r = 0;

	if (!d)
		return 0;
	windows_path(&rd->w, rd->w.n - 1, (uint32_t)__builtin_ctz(last->sources), ".pb.gz", path,
		     sizeof(path));
	if (import_read(d, path, NULL, &p, NULL, NULL) == 0)
		for (uint32_t i = 0; r == 0 && profile_about(p, ABOUT_LABEL, i); i++)
			r = add_text(&labels, &n, profile_about(p, ABOUT_LABEL, i));
	if (n && r == 0) {
		char **more = reallocarray(labels, n + 1ul, sizeof(*more));

		labels = more ? more : labels;
		labels[n - !more] = NULL;
		rd->v->labels = (const char *const *)labels;
	}
	profile_free(p);
	dict_free(d);
	return r;
}

void ls_labels_free(struct archive_view *v)
{
	for (size_t i = 0; v->labels && v->labels[i]; i++)
		free((char *)v->labels[i]);
	free((char **)v->labels);
	v->labels = NULL;
}

int ls_read(const struct input_place *place, const struct ls_opts *opts,
	    struct archive_view *ret_view, struct err *e)
{
	struct reading rd = { .opts = opts, .place = place, .v = ret_view };
	int r;

	*ret_view = (struct archive_view){ .dir = place->dir,
					   .container = opts->container,
					   .checked = opts->check,
					   .at_work = archive_is_at_work(place->dir) };
	r = windows_read(place->dir, place->folder, &rd.w, e);
	if (r == 0)
		r = read_sizes(&rd, e);
	if (r == 0)
		r = add_rows(&rd, e);
	if (r == 0)
		r = choose_rows(&rd, e);
	if (r == 0 && (archive_each_missing(place->dir, note_missing, &rd) == -ENOMEM ||
		       read_labels(&rd) < 0 || archive_view_complete(ret_view) < 0))
		r = err_set(e, -ENOMEM, "out of memory");
	windows_fini(&rd.w);
	return r;
}
