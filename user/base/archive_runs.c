/* Directories of single runs: listing them, holding them while the run is at work, taking them away. */
#include "base/archive.h"
#include "base/archive_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* --- while a run is at work, and when its files are in place --- */

int archive_hold_run(const char *dir, int *ret_fd, struct err *e)
{
	_cleanup_(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_SH) < 0)
		return err_set(e, -errno, "%s: %s", dir, strerror(errno));
	*ret_fd = TAKE_FD(fd);
	return 0;
}

bool run_dir_is_held(int dir_fd)
{
	/* Opened anew: a lock belongs to what open() made, and goes with it. */
	_cleanup_(closep) int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* Directories of containers in that of a run, when they are empty. */
static void remove_dirs_of_parts(const struct list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const char *slash = strchr(l->entries[i].name, '/');
		char dir[sizeof(l->entries[i].name)];

		if (l->entries[i].kind != RUN_PART || !slash)
			continue;
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - l->entries[i].name),
			 l->entries[i].name);
		unlinkat(l->dir_fd, dir, AT_REMOVEDIR);
	}
}

static bool is_among(const char *name, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/*
 * Takes the files of the run before off the list, but for dated ones; those of its folders that are not
 * among `names` go. The list is another file afterwards.
 */
static int unlist_run(const char *dir, const char *const *names, uint32_t n, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	int r = list_open(dir, true, &l, e);
	char stamp[32];

	if (r == 0)
		r = list_read(&l, dir, e);
	if (r < 0)
		return r;
	list_find_runs(&l);
	for (size_t i = 0; i < l.n; i++) {
		struct entry *part = &l.entries[i];

		if (part->kind != RUN_PART || is_window_name(part->name, stamp, sizeof(stamp)))
			continue;
		if (part->there && strchr(part->name, '/') && !is_among(part->name, names, n))
			list_unlink(&l, part->name);
		part->there = part->held = false;
	}
	remove_dirs_of_parts(&l);
	return list_save(&l, dir, e);
}

int archive_list_run(const char *dir, const char *const *names, uint32_t n, struct err *e)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	_cleanup_(strbuf_free) struct strbuf lines = { 0 };
	int r = unlist_run(dir, names, n, e);

	for (uint32_t i = 0; i < n; i++)
		strbuf_printf(&lines, ":%s\n", names[i]);
	if (r == 0)
		r = list_open(dir, true, &l, e);
	return r < 0 ? r : list_append(&l, dir, &lines, e);
}

/* --- by a cleaner --- */

/* The files of the run in the directory `name`, as one entry. false: there is no run. */
static bool sum_run(const struct list *above, const char *name, struct entry *ret_run)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	struct entry run = { .kind = RUN_DIR };

	if (strlen(name) >= sizeof(run.name) || list_open_below(above, name, &l) < 0 ||
	    list_read(&l, name, NULL) < 0)
		return false;
	for (size_t i = 0; i < l.n; i++) {
		const struct entry *part = &l.entries[i];

		if (part->kind != RUN_PART || !part->there)
			continue;
		run.there = true;
		run.bytes += part->bytes;
		if (part->time_s > run.time_s ||
		    (part->time_s == run.time_s && part->time_ns > run.time_ns)) {
			run.time_s = part->time_s;
			run.time_ns = part->time_ns;
		}
	}
	run.held = run_dir_is_held(l.dir_fd);
	memcpy(run.name, name, strlen(name) + 1);
	*ret_run = run;
	return run.there;
}

void list_find_run_dirs(struct list *l)
{
	_cleanup_(closedirp) DIR *d = list_open_dir(l->dir_fd, ".");
	struct entry run;

	for (struct dirent *entry; d && (entry = readdir(d));)
		if (entry->d_name[0] != '.' &&
		    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    sum_run(l, entry->d_name, &run))
			list_add(l, &run);
}

static void remove_parts(struct list *l, struct pruned *pruned)
{
	for (size_t i = 0; i < l->n; i++) {
		struct entry *part = &l->entries[i];
		int r;

		if (part->kind != RUN_PART || !part->there)
			continue;
		r = list_unlink(l, part->name);
		if (r < 0) {
			pruned->failed++;
			pruned->error = r;
			continue;
		}
		part->there = false;
		pruned->files++;
		pruned->bytes += part->bytes;
	}
	remove_dirs_of_parts(l);
}

static void remove_listed(const struct list *above, const char *name, struct pruned *pruned)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;

	/* Held: a run has begun since it was looked at. */
	if (list_open_below(above, name, &l) < 0 || list_read(&l, name, NULL) < 0 ||
	    run_dir_is_held(l.dir_fd))
		return;
	list_find_runs(&l);
	remove_parts(&l, pruned);
	list_save(&l, name, NULL);
}

bool run_dir_remove(const struct list *above, const struct entry *run, struct pruned *pruned)
{
	_cleanup_(list_fini) struct list l = LIST_INIT;
	uint64_t files = pruned->files;

	remove_listed(above, run->name, pruned);
	if (list_open_below(above, run->name, &l) == 0)
		list_remove_empty(&l);
	unlinkat(above->dir_fd, run->name, AT_REMOVEDIR);
	return pruned->files == files;
}
