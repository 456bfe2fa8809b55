#include "cmd/input_archive.h"

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/strbuf.h"
#include "base/window_name.h"
#include "run/target.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

DEFINE_CLEANUP(DIR *, closedirp, closedir)

void input_names_fini(struct input_names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct input_names){ 0 };
}

static int add_name(struct input_names *names, const char *name)
{
	if (!GROW(names->list, names->n, names->cap))
		return -ENOMEM;
	names->list[names->n] = strdup(name);
	if (!names->list[names->n])
		return -ENOMEM;
	names->n++;
	return 0;
}

static bool ends(const char *name, const char *with)
{
	size_t len = strlen(name), n = strlen(with);

	return len > n && strcmp(name + len - n, with) == 0;
}

static bool has_ending(const char *dir, const char *const *endings)
{
	_cleanup_(closedirp) DIR *d = opendir(dir);

	for (struct dirent *entry; d && (entry = readdir(d));)
		for (int i = 0; *entry->d_name != '.' && endings[i]; i++)
			if (ends(entry->d_name, endings[i]))
				return true;
	return false;
}

bool input_has_profiles(const char *dir)
{
	return has_ending(dir, (const char *const[]){ ".pb.gz", ".folded", NULL });
}

static bool has_dumps(const char *dir)
{
	return has_ending(dir, (const char *const[]){ ".heap", NULL });
}

static bool has_windows(const char *dir)
{
	_cleanup_(closedirp) DIR *d = opendir(dir);
	struct window_name n;

	for (struct dirent *entry; d && (entry = readdir(d));)
		if (window_name_parse(entry->d_name, &n))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The directories in `dir` that have profiles; `listed`: only those with a list of what a run has left in them. */
static int find_below(const char *dir, bool listed, struct input_names *names, struct err *e)
{
	_cleanup_(closedirp) DIR *d = opendir(dir);
	int r = 0;

	if (!d)
		return err_set(e, -errno, "%s: cannot be opened: %s", dir, strerror(errno));
	for (struct dirent *entry; r == 0 && (entry = readdir(d));) {
		char path[4096], list[4096];
		struct stat st;

		if (*entry->d_name == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >=
			    (int)sizeof(path) - 16 ||
		    lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		snprintf(list, sizeof(list), "%.4080s/.memscope", path);
		if (listed ? access(list, F_OK) == 0 : input_has_profiles(path))
			r = add_name(names, entry->d_name);
	}
	if (names->n)
		qsort(names->list, names->n, sizeof(*names->list), by_name);
	return r < 0 ? err_set(e, r, "%s: out of memory", dir) : 0;
}

int input_targets(const char *dir, struct input_names *ret_names, struct err *e)
{
	return find_below(dir, true, ret_names, e);
}

int input_folders(const char *dir, struct input_names *ret_names, struct err *e)
{
	return find_below(dir, false, ret_names, e);
}

static bool is_directory_in(const char *dir, const char *name)
{
	char path[4096];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* What it is called, whatever way to it was named. */
static bool is_called(const char *dir, const char *name)
{
	_cleanup_(freep) char *real = realpath(dir, NULL);
	const char *slash = real ? strrchr(real, '/') : NULL;

	return slash && strcmp(slash + 1, name) == 0;
}

/* Has this directory of windows the container: as a folder, or is it all that it is of? */
static bool has_container(const char *dir, const char *word)
{
	return is_directory_in(dir, word) || is_called(dir, word);
}

static void join_names(const struct input_names *names, struct strbuf *out)
{
	for (uint32_t i = 0; i < names->n && i < 20; i++)
		strbuf_printf(out, "%s%s", i ? ", " : "", names->list[i]);
	if (names->n > 20)
		strbuf_printf(out, " and %u more", names->n - 20);
}

static int no_container(const char *dir, const char *container, struct err *e)
{
	_cleanup_(input_names_fini) struct input_names folders = { 0 };
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (input_folders(dir, &folders, e) < 0)
		return -EINVAL;
	join_names(&folders, &text);
	return err_set(e, -EINVAL, "%.200s: no container \"%.64s\" is in it%s%.400s", dir,
		       container, folders.n ? "; there are: " : "", folders.n ? text.s : "");
}

/* Of the targets in an archive, the one that is meant. */
static int choose_target(const char *dir, const struct input_names *targets, const char *container,
			 const char *word, char *ret_dir, size_t cap, struct err *e)
{
	_cleanup_(strbuf_free) struct strbuf text = { 0 };
	uint32_t fitting = 0;
	char path[4096];

	for (uint32_t i = 0; i < targets->n; i++) {
		if (snprintf(path, sizeof(path), "%s/%s", dir, targets->list[i]) >=
			    (int)sizeof(path) ||
		    (container && !has_container(path, word)))
			continue;
		if (!fitting++)
			snprintf(ret_dir, cap, "%s", path);
	}
	if (fitting == 1)
		return 0;
	join_names(targets, &text);
	if (!fitting)
		return err_set(e, -EINVAL,
			       "%.200s: no container \"%.64s\" is in it; it has runs of %.400s",
			       dir, container, text.s);
	return err_set(e, -EINVAL, "%.200s has runs of %.400s: name one of them, as in %.200s/%s",
		       dir, text.s, dir, targets->list[0]);
}

int input_place_find(const char *dir, const char *container, struct input_place *ret_place,
		     struct err *e)
{
	_cleanup_(input_names_fini) struct input_names targets = { 0 };
	struct input_place place = { 0 };
	char word[64] = "";
	int r = 0;

	if (container)
		target_file_word(container, word, sizeof(word));
	snprintf(place.dir, sizeof(place.dir), "%s", dir);
	if (!input_has_profiles(dir) && !has_dumps(dir))
		r = input_targets(dir, &targets, e);
	if (r == 0 && targets.n)
		r = choose_target(dir, &targets, container, word, place.dir, sizeof(place.dir), e);
	if (r < 0)
		return r;
	place.of_container = container && !has_dumps(place.dir);
	if (place.of_container && is_directory_in(place.dir, word))
		snprintf(place.folder, sizeof(place.folder), "%s", word);
	else if (place.of_container && !is_called(place.dir, word)) {
		if (has_windows(place.dir))
			return no_container(place.dir, container, e);
		place.of_container = false;
	}
	*ret_place = place;
	return 0;
}
