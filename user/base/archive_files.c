#include "base/archive_files.h"

#include "base/grow.h"
#include "base/window_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDERS_MAX = 1 << 20, NAME_MAX_LEN = 255, FILES_MAX = 1 << 24 };

/* --- folders --- */

void archive_folders_fini(struct archive_folders *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		free(f->names[i]);
	free(f->names);
	*f = (struct archive_folders){ 0 };
}

static bool is_folder_name(const char *name)
{
	return is_part_name(name) && !strchr(name, '/') && strlen(name) <= NAME_MAX_LEN;
}

/* Room for a folder of that number. */
static bool make_room(struct archive_folders *f, uint32_t number)
{
	uint32_t n = f->n ?: 64;
	char **more;

	if (number < f->n)
		return true;
	while (n <= number)
		n *= 2;
	more = reallocarray(f->names, n, sizeof(*more));
	if (!more)
		return false;
	memset(more + f->n, 0, (n - f->n) * sizeof(*more));
	f->names = more;
	f->n = n;
	return true;
}

int archive_folders_set(struct archive_folders *f, uint64_t number, const char *name)
{
	if (!number || number >= FOLDERS_MAX || !is_folder_name(name))
		return -EINVAL;
	if (!make_room(f, (uint32_t)number))
		return -ENOMEM;
	if (f->names[number])
		return strcmp(f->names[number], name) == 0 ? 0 : -EINVAL;
	f->names[number] = strdup(name);
	f->count += f->names[number] != NULL;
	return f->names[number] ? 0 : -ENOMEM;
}

int64_t archive_folders_find(const struct archive_folders *f, const char *name)
{
	for (uint32_t i = 1; i < f->n; i++)
		if (f->names[i] && strcmp(f->names[i], name) == 0)
			return i;
	return -ENOENT;
}

int64_t archive_folders_add(struct archive_folders *f, const char *name)
{
	int64_t found = archive_folders_find(f, name);
	uint32_t free_number = 1;
	int r;

	if (found >= 0)
		return found;
	while (free_number < f->n && f->names[free_number])
		free_number++;
	if (free_number >= FOLDERS_MAX)
		return -ENOSPC;
	r = archive_folders_set(f, free_number, name);
	return r < 0 ? r : (int64_t)free_number;
}

/* --- names --- */

static bool separates(char c)
{
	return c == ',' || c == ':' || c == ';' || c == '%';
}

/* Without its stamp, and what separates as %XX. false: it has none, or is too long. */
static bool name_pack(const char *file, char *out, size_t cap)
{
	size_t n = 0, len;
	char stamp[32];

	if (strchr(file, '/') || !is_window_name(file, stamp, sizeof(stamp)))
		return false;
	for (const char *at = window_stamp_in(file, &len), *c = file; *c; c++) {
		if (c == at)
			c += len;
		if (n + 4 > cap)
			return false;
		n += (size_t)(separates(*c) ? sprintf(out + n, "%%%02X", *c)
					    : sprintf(out + n, "%c", *c));
	}
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The `len` bytes at `packed` with the stamp. false: it is no file of a window. */
static bool name_unpack(const char *packed, size_t len, const char *stamp, char *out, size_t cap)
{
	bool stamped = false;
	char found[32];
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = packed[i];

		if (n + strlen(stamp) + 2 > cap)
			return false;
		if (c == '%') {
			if (i + 2 >= len || hex(packed[i + 1]) < 0 || hex(packed[i + 2]) < 0)
				return false;
			c = (char)(hex(packed[i + 1]) << 4 | hex(packed[i + 2]));
			i += 2;
		}
		out[n++] = c;
		if (c != '-' || stamped || i + 1 == len || packed[i + 1] != '.')
			continue;
		n += (size_t)sprintf(out + n, "%s", stamp);
		stamped = true;
	}
	out[n] = '\0';
	return stamped && !strchr(out, '/') && is_window_name(out, found, sizeof(found)) &&
	       strcmp(found, stamp) == 0;
}

/* --- writing --- */

void window_files_fini(struct window_files *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->list[i].name);
	free(w->list);
	*w = (struct window_files){ 0 };
}

int window_files_add(struct window_files *w, struct archive_folders *f, const char *name)
{
	const char *slash = strchr(name, '/');
	char folder[NAME_MAX_LEN + 1] = "", packed[3 * NAME_MAX_LEN];
	uint32_t before = w->n ? w->list[w->n - 1].folder : 0;
	int64_t number = 0;

	if (strlen(name) > NAME_MAX_LEN ||
	    !name_pack(slash ? slash + 1 : name, packed, sizeof(packed)))
		return -EINVAL;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - name) : 0, name);
	if (slash && !is_folder_name(folder))
		return -EINVAL;
	if (slash)
		number = before && strcmp(f->names[before], folder) == 0
				 ? before
				 : archive_folders_add(f, folder);
	if (number < 0)
		return (int)number;
	if (!GROW(w->list, w->n, w->cap))
		return -ENOMEM;
	w->list[w->n].folder = (uint32_t)number;
	w->list[w->n].name = strdup(packed);
	if (!w->list[w->n].name)
		return -ENOMEM;
	w->n++;
	return 0;
}

static int by_folder(const void *a, const void *b)
{
	const struct window_file *x = a, *y = b;

	return x->folder != y->folder ? (x->folder < y->folder ? -1 : 1) : strcmp(x->name, y->name);
}

/* The files of a folder: [begin, end) of a list. */
struct span {
	const struct window_file *begin, *end;
};

static int by_names(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	const struct window_file *i = x->begin, *j = y->begin;

	for (; i < x->end && j < y->end; i++, j++) {
		int order = strcmp(i->name, j->name);

		if (order)
			return order;
	}
	return i < x->end ? 1 : j < y->end ? -1 : 0;
}

static int by_names_and_folder(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return by_names(a, b) ?: x->begin->folder < y->begin->folder ? -1 : 1;
}

static void take_out_doubles(struct window_files *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (kept && by_folder(&w->list[kept - 1], &w->list[i]) == 0)
			free(w->list[i].name);
		else
			w->list[kept++] = w->list[i];
	}
	w->n = kept;
}

/* One group: folders [first, last) of `spans`, which have the same names. */
static void print_group(const struct span *first, const struct span *last, struct strbuf *out)
{
	for (const struct window_file *i = first->begin; i < first->end; i++)
		strbuf_printf(out, "%s%s", i > first->begin ? "," : "", i->name);
	strbuf_putc(out, ':');
	for (const struct span *s = first, *end; s < last; s = end) {
		for (end = s + 1; end < last && end->begin->folder == end[-1].begin->folder + 1;)
			end++;
		strbuf_printf(out, "%s%u", s > first ? "," : "", s->begin->folder);
		if (end > s + 1)
			strbuf_printf(out, "-%u", end[-1].begin->folder);
	}
	strbuf_putc(out, ';');
}

size_t window_files_print(struct window_files *w, struct strbuf *out)
{
	_cleanup_(freep) struct span *spans = calloc(w->n + 1, sizeof(*spans));
	size_t n = 0;

	if (!spans) {
		out->oom = true;
		return 0;
	}
	if (w->n)
		qsort(w->list, w->n, sizeof(*w->list), by_folder);
	take_out_doubles(w);
	for (size_t i = 0, end; i < w->n; i = end) {
		for (end = i; end < w->n && w->list[end].folder == w->list[i].folder;)
			end++;
		spans[n++] = (struct span){ w->list + i, w->list + end };
	}
	if (n)
		qsort(spans, n, sizeof(*spans), by_names_and_folder);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && by_names(&spans[i], &spans[end]) == 0;)
			end++;
		print_group(spans + i, spans + end, out);
	}
	return w->n;
}

/* --- reading --- */

struct view {
	const char *s;
	size_t len;
};

/* Up to `stop`, which is passed; false: there is nothing more, or no `stop`. */
static bool next_part(const char **at, const char *end, char stop, const char **ret_part,
		      size_t *ret_len)
{
	const char *found = memchr(*at, stop, (size_t)(end - *at));

	if (*at >= end)
		return false;
	*ret_part = *at;
	*ret_len = (size_t)((found ?: end) - *at);
	*at = found ? found + 1 : end;
	return true;
}

/* The next group: its names and its folders. -EINVAL: it is not whole; 0: there is none. */
static int next_group(const char **at, struct view *ret_names, struct view *ret_folders)
{
	const char *colon, *end;

	if (!**at)
		return 0;
	end = strchr(*at, ';');
	colon = end ? memchr(*at, ':', (size_t)(end - *at)) : NULL;
	if (!colon)
		return -EINVAL;
	*ret_names = (struct view){ *at, (size_t)(colon - *at) };
	*ret_folders = (struct view){ colon + 1, (size_t)(end - colon - 1) };
	*at = end + 1;
	return 1;
}

static bool next_range(const char **at, const char *end, uint32_t *ret_first, uint32_t *ret_last)
{
	unsigned long first, last;
	const char *part;
	size_t len;
	char *rest;

	if (!next_part(at, end, ',', &part, &len) || *part < '0' || *part > '9')
		return false;
	first = last = strtoul(part, &rest, 10);
	if (rest < part + len && *rest == '-' && rest[1] >= '0' && rest[1] <= '9')
		last = strtoul(rest + 1, &rest, 10);
	if (rest != part + len || first > last || last >= FOLDERS_MAX)
		return false;
	*ret_first = (uint32_t)first;
	*ret_last = (uint32_t)last;
	return true;
}

/* How many files; -EINVAL. */
static int64_t count_names(const struct view *names, const char *stamp)
{
	const char *at = names->s, *part;
	char name[NAME_MAX_LEN + 1];
	int64_t n = 0;
	size_t len;

	for (; next_part(&at, names->s + names->len, ',', &part, &len); n++)
		if (!name_unpack(part, len, stamp, name, sizeof(name)))
			return -EINVAL;
	return n ?: -EINVAL;
}

static int64_t count_folders(const struct view *folders, const struct archive_folders *f)
{
	const char *at = folders->s, *end = folders->s + folders->len;
	uint32_t first, last;
	int64_t n = 0;

	while (at < end) {
		if (!next_range(&at, end, &first, &last))
			return -EINVAL;
		for (uint32_t i = first; i <= last; i++, n++)
			if (i && (i >= f->n || !f->names[i]))
				return -EINVAL;
		if (n > FILES_MAX)
			return -EINVAL;
	}
	return n ?: -EINVAL;
}

int64_t window_groups_count(const char *text, const struct archive_folders *f, const char *stamp)
{
	struct view names, folders;
	int64_t files = 0;
	int r;

	while ((r = next_group(&text, &names, &folders)) > 0) {
		int64_t n = count_names(&names, stamp), in = count_folders(&folders, f);

		if (n < 0 || in < 0 || n * in > FILES_MAX)
			return -EINVAL;
		files += n * in;
		if (files > FILES_MAX)
			return -EINVAL;
	}
	return r < 0 || !files ? -EINVAL : files;
}

/* Each of the names in one folder. */
static int each_name(const struct view *names, const char *folder, const char *stamp,
		     int (*fn)(void *ctx, const char *name), void *ctx)
{
	char name[2 * (NAME_MAX_LEN + 1)];
	const char *at = names->s, *part;
	size_t len;
	int r = 0;

	while (r == 0 && next_part(&at, names->s + names->len, ',', &part, &len)) {
		int n = snprintf(name, sizeof(name), "%s%s", folder, *folder ? "/" : "");

		if (name_unpack(part, len, stamp, name + n, sizeof(name) - (size_t)n))
			r = fn(ctx, name);
	}
	return r;
}

int window_groups_each(const char *text, const struct archive_folders *f, const char *stamp,
		       int (*fn)(void *ctx, const char *name), void *ctx)
{
	struct view names, folders;
	uint32_t first, last;
	int r = 0;

	while (r == 0 && next_group(&text, &names, &folders) > 0)
		for (const char *at = folders.s, *end = folders.s + folders.len;
		     r == 0 && at < end && next_range(&at, end, &first, &last);)
			for (uint32_t i = first; r == 0 && i <= last; i++)
				r = each_name(&names, i ? f->names[i] : "", stamp, fn, ctx);
	return r;
}

static bool has_name(const struct view *names, const char *packed)
{
	const char *at = names->s, *part;
	size_t len;

	while (next_part(&at, names->s + names->len, ',', &part, &len))
		if (len == strlen(packed) && memcmp(part, packed, len) == 0)
			return true;
	return false;
}

static bool has_folder(const struct view *folders, uint32_t number)
{
	const char *at = folders->s, *end = folders->s + folders->len;
	uint32_t first, last;

	while (at < end && next_range(&at, end, &first, &last))
		if (number >= first && number <= last)
			return true;
	return false;
}

bool window_groups_have(const char *text, uint32_t folder, const char *file)
{
	struct view names, folders;
	char packed[3 * NAME_MAX_LEN];

	if (!name_pack(file, packed, sizeof(packed)))
		return false;
	while (next_group(&text, &names, &folders) > 0)
		if (has_folder(&folders, folder) && has_name(&names, packed))
			return true;
	return false;
}

void window_groups_mark(const char *text, bool *used)
{
	struct view names, folders;
	uint32_t first, last;

	while (next_group(&text, &names, &folders) > 0)
		for (const char *at = folders.s, *end = folders.s + folders.len;
		     at < end && next_range(&at, end, &first, &last);)
			for (uint32_t i = first; i <= last; i++)
				used[i] = true;
}
