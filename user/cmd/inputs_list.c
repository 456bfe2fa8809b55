#include "cmd/inputs_list.h"

#include "analyse/archive_view.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/moment.h"
#include "base/units.h"
#include "cmd/input_archive.h"
#include "collect/session/sources.h"
#include "import/window_choice.h"
#include "run/named_kinds.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* A file of a directory. */
struct dump {
	char *name;
	char *series;    /* what its name begins with: program and process, or the source */
	uint64_t number; /* within the series, 0: none in its name */
	int64_t mtime_ns;
	int64_t series_ns; /* the latest of the series */
};

struct dumps {
	struct dump *all;
	uint32_t n, cap;
};

static void dumps_fini(struct dumps *d)
{
	for (uint32_t i = 0; i < d->n; i++) {
		free(d->all[i].name);
		free(d->all[i].series);
	}
	free(d->all);
}

void input_list_fini(struct input_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct input_list){ 0 };
}

static int add_path(struct input_list *list, const char *dir, const char *name)
{
	char *path;

	if (!GROW(list->paths, list->n, list->cap))
		return -ENOMEM;
	if (asprintf(&path, "%s%s%s", dir ? dir : "", dir ? "/" : "", name) < 0)
		return -ENOMEM;
	list->paths[list->n++] = path;
	return 0;
}

bool input_is_directory(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool input_is_choice(const char *word)
{
	return strcmp(word, "all") == 0 || strcmp(word, "latest") == 0 ||
	       strncmp(word, "last:", 5) == 0 || strchr(word, ',') ||
	       (strcmp(word, "-") != 0 && access(word, F_OK) < 0);
}

bool input_is_windows(char *const *operands, int n)
{
	return n > 1 && input_is_directory(operands[0]) && !input_is_directory(operands[1]) &&
	       is_window_choice(operands[1]) && access(operands[1], F_OK) < 0;
}

/* --- names --- */

static bool ends(const char *name, const char *with)
{
	size_t len = strlen(name), n = strlen(with);

	return len > n && strcmp(name + len - n, with) == 0;
}

static bool all_digits(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == 0;
}

/* Cuts ".TAIL" off `s`; NULL when there is none. */
static char *cut_tail(char *s)
{
	char *dot = strrchr(s, '.');

	if (!dot || dot == s)
		return NULL;
	*dot = 0;
	return dot + 1;
}

/*
 * jemalloc: PREFIX.PID.NUMBER.i12.heap (m, f, u); gperftools: PREFIX.0012.heap. The series is what
 * comes before the number.
 */
static void split_heap_name(struct dump *d)
{
	char *tail;

	d->series[strlen(d->series) - strlen(".heap")] = 0;
	tail = strrchr(d->series, '.');
	if (tail && isalpha((unsigned char)tail[1]) && !tail[2 + strspn(tail + 2, "0123456789")]) {
		*tail = 0;
		tail = strrchr(d->series, '.');
		if (!tail || !all_digits(tail + 1)) {
			/* No number before it: the letter was part of the name. */
			d->series[strlen(d->series)] = '.';
			return;
		}
	}
	if (tail && all_digits(tail + 1)) {
		d->number = strtoull(tail + 1, NULL, 10);
		cut_tail(d->series);
	}
}

/* memscope: SOURCE.pb.gz, SOURCE-YYYYMMDD-HHMMSS.pb.gz; a source that is an event may have a - in its name. */
static void split_name(struct dump *d)
{
	char *at = d->series;

	if (ends(d->name, ".heap")) {
		split_heap_name(d);
		return;
	}
	while (*at && *at != '.' && !(*at == '-' && isdigit((unsigned char)at[1])))
		at++;
	*at = 0;
}

static int add_dump(struct dumps *dumps, int dir_fd, const char *name)
{
	struct dump *d;
	struct stat st;

	if (fstatat(dir_fd, name, &st, 0) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (!GROW(dumps->all, dumps->n, dumps->cap))
		return -ENOMEM;
	d = &dumps->all[dumps->n];
	*d = (struct dump){ .name = strdup(name), .series = strdup(name) };
	if (!d->name || !d->series) {
		free(d->name);
		free(d->series);
		return -ENOMEM;
	}
	dumps->n++;
	d->mtime_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	split_name(d);
	return 0;
}

static int compare_series(const void *a, const void *b)
{
	const struct dump *x = a, *y = b;

	return strcmp(x->series, y->series);
}

/* Oldest first: series by their latest file, and in a series by number. */
static int compare_dumps(const void *a, const void *b)
{
	const struct dump *x = a, *y = b;

	if (x->series_ns != y->series_ns)
		return x->series_ns < y->series_ns ? -1 : 1;
	return compare_series(x, y) ?: (x->number > y->number) - (x->number < y->number)
					       ?: strverscmp(x->name, y->name);
}

static void sort_dumps(struct dumps *d)
{
	if (!d->n)
		return;
	qsort(d->all, d->n, sizeof(*d->all), compare_series);
	for (uint32_t i = 0, end; i < d->n; i = end) {
		int64_t latest = INT64_MIN;

		for (end = i; end < d->n && !compare_series(&d->all[i], &d->all[end]); end++)
			if (d->all[end].mtime_ns > latest)
				latest = d->all[end].mtime_ns;
		for (uint32_t k = i; k < end; k++)
			d->all[k].series_ns = latest;
	}
	qsort(d->all, d->n, sizeof(*d->all), compare_dumps);
}

static int list_ending(const char *dir, const char *ending, const char *source, struct dumps *dumps,
		       struct err *e)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;
	uint32_t kept = 0;
	int r = 0;

	if (!handle)
		return err_set(e, -errno, "%s: cannot be opened: %m", dir);
	while (r == 0 && (entry = readdir(handle)))
		if (entry->d_name[0] != '.' && ends(entry->d_name, ending))
			r = add_dump(dumps, dirfd(handle), entry->d_name);
	closedir(handle);
	if (r < 0)
		return err_set(e, r, "%s: out of memory", dir);
	for (uint32_t i = 0; source && i < dumps->n; i++) {
		if (strcmp(dumps->all[i].series, source) == 0) {
			struct dump swap = dumps->all[kept];

			dumps->all[kept++] = dumps->all[i];
			dumps->all[i] = swap;
		}
	}
	for (uint32_t i = kept; source && i < dumps->n; i++) {
		free(dumps->all[i].name);
		free(dumps->all[i].series);
	}
	if (source)
		dumps->n = kept;
	sort_dumps(dumps);
	return 0;
}

/* Profiles of ours that are of several sources cannot be added up. */
static int check_sources(const char *dir, const struct dumps *d, const char *ending, struct err *e)
{
	char names[256];
	size_t n = 0;
	uint32_t sources = 0;

	if (strcmp(ending, ".heap") == 0)
		return 0;
	for (uint32_t i = 0; i < d->n; i++) {
		bool seen = false;

		for (uint32_t k = 0; k < i && !seen; k++)
			seen = !compare_series(&d->all[k], &d->all[i]);
		if (seen)
			continue;
		if (n < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.40s",
					      sources ? ", " : "", d->all[i].series);
		sources++;
	}
	if (sources < 2)
		return 0;
	return err_set(e, -EINVAL, "%.200s: has profiles of %s; say which with --source", dir,
		       names);
}

static int list_dumps(const char *dir, const char *source, struct dumps *dumps, struct err *e)
{
	static const char *const endings[] = { ".heap", ".pb.gz", ".folded" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		/* A source is one of ours. */
		int r = source && i == 0 ? 0 : list_ending(dir, endings[i], source, dumps, e);

		if (r < 0)
			return r;
		if (dumps->n)
			return check_sources(dir, dumps, endings[i], e);
	}
	return err_set(e, -ENOENT, "%s: there is no profile%s%s in it (*.heap, *.pb.gz, *.folded)",
		       dir, source ? " of source " : "", source ? source : "");
}

/* --- choices --- */

static int take_from(struct input_list *list, const char *dir, const struct dumps *d,
		     uint32_t first)
{
	for (uint32_t i = first; i < d->n; i++) {
		if (add_path(list, dir, d->all[i].name) < 0)
			return -ENOMEM;
		/* The only series, or one of several: two dumps of it are of one process. */
		if (ends(d->all[i].name, ".heap") &&
		    ((i > first && !compare_series(&d->all[i - 1], &d->all[i])) ||
		     (i + 1 < d->n && !compare_series(&d->all[i + 1], &d->all[i]))))
			list->same_process++;
	}
	return 0;
}

static bool is_named(const struct dump *d, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(d->name, word, len) == 0 && (!d->name[len] || d->name[len] == '.') &&
	    (!d->name[len] || !strcmp(d->name + len, ".heap") || !strcmp(d->name + len, ".pb.gz") ||
	     !strcmp(d->name + len, ".folded")))
		return true;
	return all_digits(word) && d->number == strtoull(word, NULL, 10) && ends(d->name, ".heap");
}

static int take_named(struct input_list *list, const char *dir, const struct dumps *d,
		      const char *word, struct err *e)
{
	const struct dump *found = NULL;

	for (uint32_t i = 0; i < d->n; i++) {
		if (!is_named(&d->all[i], word))
			continue;
		if (found)
			return err_set(e, -EINVAL, "%.200s: \"%.80s\" is both %.80s and %.80s", dir,
				       word, found->name, d->all[i].name);
		found = &d->all[i];
	}
	if (!found)
		return err_set(e, -ENOENT,
			       "%.200s: there is no \"%.80s\" in it (%u from %.80s to %.80s)", dir,
			       word, d->n, d->all[0].name, d->all[d->n - 1].name);
	return add_path(list, dir, found->name) < 0 ? err_set(e, -ENOMEM, "out of memory") : 0;
}

static int take_list(struct input_list *list, const char *dir, const struct dumps *d,
		     const char *choice, struct err *e)
{
	_cleanup_(freep) char *words = strdup(choice);
	char *rest = words, *word;
	int r = words ? 0 : err_set(e, -ENOMEM, "out of memory");

	while (r == 0 && (word = strsep(&rest, ",")))
		if (*word)
			r = take_named(list, dir, d, word, e);
	return r;
}

static int take_dumps(struct input_list *list, const char *dir, const char *choice,
		      const char *source, struct err *e)
{
	_cleanup_(dumps_fini) struct dumps d = { 0 };
	uint64_t last = 1;
	int r = list_dumps(dir, source, &d, e);

	if (r < 0)
		return r;
	if (choice && strncmp(choice, "last:", 5) == 0) {
		last = all_digits(choice + 5) ? strtoull(choice + 5, NULL, 10) : 0;
		if (!last)
			return err_set(e, -EINVAL, "%.80s: how many? (last:3, last:30m)", choice);
	} else if (choice && strcmp(choice, "all") == 0) {
		last = d.n;
	} else if (choice && strcmp(choice, "latest") != 0) {
		return take_list(list, dir, &d, choice, e);
	}
	r = take_from(list, dir, &d, last < d.n ? d.n - (uint32_t)last : 0);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

/* --- windows --- */

/* Time between windows of --every in which nothing was gathered; of those that can be read. */
static int64_t sum_gaps(struct windows *w, const uint32_t *chosen, uint32_t n, uint32_t *ret_gaps)
{
	const struct window *before = NULL;
	int64_t sum_ns = 0;

	*ret_gaps = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct window *window = &w->all[chosen[i]];
		int64_t ns;

		if (windows_measure(w, chosen[i], NULL) < 0 || *window->word)
			continue;
		ns = before ? window->begin_ns - before->end_ns : 0;
		before = window;
		if (ns <= ARCHIVE_GAP_NS)
			continue;
		sum_ns += ns;
		++*ret_gaps;
	}
	return sum_ns;
}

/* "oncpu, 3 windows from 2026-11-22 19:48:02 to 19:54:02" */
static void describe(struct windows *w, const uint32_t *chosen, uint32_t n, const char *source,
		     struct input_list *list)
{
	const struct window *first = &w->all[chosen[0]], *last = &w->all[chosen[n - 1]];
	struct moment_text from, to;
	char number[32] = "the window";
	uint32_t gaps;
	int64_t gaps_ns = sum_gaps(w, chosen, n, &gaps);
	int len;

	if (n > 1)
		snprintf(number, sizeof(number), "%u windows", n);
	list->from_ns = first->begin_ns;
	list->to_ns = last->measured ? last->end_ns : last->begin_ns;
	from = moment_short(list->from_ns, 0);
	to = moment_short(list->to_ns, list->from_ns);
	snprintf(list->what, sizeof(list->what), "%.32s, %s from %s to %s", source, number, from.s,
		 to.s);
	list->chosen = (struct profile_windows){ n, gaps, list->from_ns, list->to_ns, gaps_ns };
	len = snprintf(list->windows_text, sizeof(list->windows_text), "%u, %s to %s", n, from.s,
		       to.s);
	if (gaps)
		snprintf(list->windows_text + len, sizeof(list->windows_text) - (size_t)len,
			 "; %u gap%s, %s in all in which nothing was gathered", gaps,
			 gaps > 1 ? "s" : "", unit_ns(gaps_ns).s);
}

/* Which of the sources that the windows have; -1 with a sentence in `e`. */
static int choose_source(const struct windows *w, const struct window_choice *c, uint32_t sources,
			 const char *source, struct err *e)
{
	int found = source ? windows_source(w, source) : -1;
	char names[256];

	windows_list_sources(w, sources, names, sizeof(names));
	if (source && (found < 0 || !(sources & 1u << found)))
		return err_set(e, -ENOENT, "%.200s: there is no %.32s in %.80s; it has %s", w->dir,
			       source, c->text, names);
	if (!source && (sources & (sources - 1)))
		return err_set(e, -EINVAL, "%.200s: has profiles of %s; say which with --source",
			       w->dir, names);
	return source ? found : __builtin_ctz(sources);
}

static int take_windows(struct input_list *list, const struct input_place *place,
			const char *choice, const char *source, struct err *e)
{
	_cleanup_(windows_fini) struct windows w = { 0 };
	_cleanup_(freep) uint32_t *chosen = NULL;
	struct window_choice c;
	uint32_t n, kept = 0, sources = 0;
	char path[4096];
	int which, r = window_choice_parse(choice, wall_ns(), &c, e);

	if (r == 0)
		r = windows_read(place->dir, place->folder, &w, e);
	if (r == 0)
		r = window_choose(&w, &c, &chosen, &n, e);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		sources |= w.all[chosen[i]].sources;
	which = choose_source(&w, &c, sources, source, e);
	for (uint32_t i = 0; which >= 0 && i < n; i++) {
		if (!(w.all[chosen[i]].sources & 1u << which))
			continue;
		windows_path(&w, chosen[i], (uint32_t)which, ".pb.gz", path, sizeof(path));
		if (add_path(list, NULL, path) < 0)
			return err_set(e, -ENOMEM, "out of memory");
		chosen[kept++] = chosen[i];
	}
	if (which < 0)
		return which;
	describe(&w, chosen, kept, w.sources[which], list);
	return 0;
}

static int take_choice(struct input_list *list, const char *dir, const char *choice,
		       const char *source, const char *container, struct err *e)
{
	struct input_place place;
	char path[4096 + 80];
	int r = input_place_find(dir, container, &place, e);

	if (r < 0)
		return r;
	list->of_container |= place.of_container;
	if (choice && is_window_choice(choice)) {
		r = take_windows(list, &place, choice, source, e);
		if (r != -ENXIO)
			return r;
	}
	snprintf(path, sizeof(path), "%s%s%s", place.dir, *place.folder ? "/" : "", place.folder);
	return take_dumps(list, path, choice, source, e);
}

/* Windows of one directory and one source, as it lists them. */
static bool are_windows(const struct input_list *list, char *const *operands, int n)
{
	if (list->n < 2 || n != 1 + input_is_choice(operands[n - 1]))
		return false;
	for (uint32_t i = 0; i < list->n; i++) {
		const char *slash = strrchr(list->paths[i], '/');
		struct window_name name;

		if (!slash || !window_name_parse(slash + 1, &name))
			return false;
	}
	return true;
}

int input_list_make(char *const *operands, int n, const char *source, const char *container,
		    struct input_list *list, struct err *e)
{
	int r = 0;

	for (int i = 0; i < n && r == 0; i++) {
		const char *choice = NULL;

		if (!input_is_directory(operands[i])) {
			if (add_path(list, NULL, operands[i]) < 0)
				r = err_set(e, -ENOMEM, "out of memory");
			continue;
		}
		if (i + 1 < n && !input_is_directory(operands[i + 1]) &&
		    input_is_choice(operands[i + 1]))
			choice = operands[i + 1];
		r = take_choice(list, operands[i], choice, source, container, e);
		i += choice != NULL;
	}
	list->windows = r == 0 && input_is_directory(operands[0]) && are_windows(list, operands, n);
	return r;
}

/* --- runs --- */

/* The first of its profiles, in the order in which commands choose: its place there, from 0; `n`: none. */
static size_t first_source(const char *dir, const char *const *sources, size_t n)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;
	size_t first = n;

	while (handle && (entry = readdir(handle))) {
		for (size_t i = 0; ends(entry->d_name, ".pb.gz") && i < first; i++) {
			size_t len = strlen(sources[i]);

			if (strncmp(entry->d_name, sources[i], len) == 0 &&
			    strchr(".-", entry->d_name[len]))
				first = i;
		}
	}
	if (handle)
		closedir(handle);
	return first;
}

const char *input_main_source(const char *dir, const char *container)
{
	static const char *const sources[] = { "oncpu",  "offcpu",  "alloc",    "heap",
					       "peak",   "growth",  "mappings", "goroutine",
					       "wakers", "syscalls" };
	const size_t n = sizeof(sources) / sizeof(*sources);
	struct input_place place;
	char path[4096 + 80];
	size_t first;

	if (input_place_find(dir, container, &place, NULL) < 0)
		return NULL;
	snprintf(path, sizeof(path), "%s%s%s", place.dir, *place.folder ? "/" : "", place.folder);
	first = first_source(path, sources, n);
	if (first < n)
		return sources[first];
	named_kinds_of(path);
	for (int i = PROFILE_NAMED; i < profile_kinds(); i++)
		if (first_source(path, &profile_rows[i].name, 1) == 0)
			return profile_rows[i].name;
	return NULL;
}

int input_summary(const char *dir, const char *ending, char *out, size_t cap)
{
	_cleanup_(freep) char *latest = NULL;
	struct input_place place;
	struct dirent *entry;
	DIR *handle;

	if (input_place_find(dir, NULL, &place, NULL) == 0)
		dir = place.dir;
	handle = opendir(dir);
	if (!handle)
		return -errno;
	/* Stamps are dates and times: the last by name is the latest. */
	while ((entry = readdir(handle))) {
		const char *name = entry->d_name;

		if (strncmp(name, "summary", 7) != 0 || !ends(name, ending))
			continue;
		if (name[7] != '-' && strcmp(name + 7, ending) != 0)
			continue;
		if (latest && (latest[7] == '.' || (name[7] != '.' && strcmp(name, latest) < 0)))
			continue;
		free(latest);
		latest = strdup(name);
	}
	closedir(handle);
	if (!latest)
		return -ENOENT;
	snprintf(out, cap, "%s/%s", dir, latest);
	return 0;
}

int input_run_suffix(const char *dir, int64_t when_ns, char *out, size_t cap)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;
	int64_t latest_s = -1;

	while (handle && (entry = readdir(handle))) {
		struct window_name n;
		int64_t s;

		if (!window_name_parse(entry->d_name, &n) || strcmp(n.source, "trend") != 0 ||
		    strcmp(n.ext, ".csv") != 0)
			continue;
		s = stamp_time(n.stamp);
		if (s <= when_ns / 1000000000 && s >= latest_s) {
			latest_s = s;
			snprintf(out, cap, "-%s", n.stamp);
		}
	}
	if (handle)
		closedir(handle);
	return latest_s < 0 ? -ENOENT : 0;
}
