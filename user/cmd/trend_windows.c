#include "cmd/trend_windows.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/strbuf.h"
#include "cmd/input_archive.h"
#include "cmd/inputs_list.h"
#include "import/mem_log.h"
#include "import/window_choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool trend_is_archive(const char *path)
{
	char inside[4096];

	return input_is_directory(path) &&
	       snprintf(inside, sizeof(inside), "%s/trend.csv", path) < (int)sizeof(inside) &&
	       access(inside, F_OK) < 0;
}

bool trend_is_choice(const char *word)
{
	return is_window_choice(word) || strncmp(word, "last:", 5) == 0;
}

/* All of --every, or those that are chosen, by time. */
static int choose(struct windows *w, const char *choice, uint32_t **ret_chosen, uint32_t *ret_n,
		  struct err *e)
{
	struct window_choice c;
	int r;

	if (choice) {
		r = window_choice_parse(choice, wall_ns(), &c, e);
		return r < 0 ? r : window_choose(w, &c, ret_chosen, ret_n, e);
	}
	*ret_chosen = calloc(w->n + 1ul, sizeof(**ret_chosen));
	if (!*ret_chosen)
		return err_set(e, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < w->n; i++)
		if (!*w->all[i].word)
			(*ret_chosen)[(*ret_n)++] = i;
	return 0;
}

/* Rows that are later than those before; a clock may have been set back. */
static int append(struct mem_log *to, const struct mem_log *from)
{
	to->of_memscope = true;
	if (from->skipped && !to->skipped)
		to->first_skipped = to->n + 1;
	to->skipped += from->skipped;
	for (uint32_t i = 0; i < from->n; i++) {
		if (to->n && from->rows[i].time_s < to->rows[to->n - 1].time_s) {
			if (!to->skipped++)
				to->first_skipped = to->n + 1;
			continue;
		}
		if (!GROW(to->rows, to->n, to->cap))
			return -ENOMEM;
		to->rows[to->n++] = from->rows[i];
	}
	return 0;
}

/* A window that has no rows, or a file that is damaged, is passed over. */
static int add_window(const struct input_place *place, const struct window *window,
		      struct mem_log *to, uint32_t *windows)
{
	_cleanup_(mem_log_freep) struct mem_log *log = NULL;
	char path[4096 + 128];

	snprintf(path, sizeof(path), "%s/%s%smemory-%s.csv", place->dir, place->folder,
		 *place->folder ? "/" : "", window->stamp);
	if (mem_log_read(path, &log, NULL) < 0)
		return 0;
	++*windows;
	return append(to, log);
}

/* Of all containers together there are none, as who is in two of them would be there twice. */
static int no_rows(const struct input_place *place, uint32_t windows, struct err *e)
{
	_cleanup_(input_names_fini) struct input_names folders = { 0 };
	_cleanup_(strbuf_free) struct strbuf text = { 0 };

	if (!*place->folder && input_folders(place->dir, &folders, NULL) == 0)
		for (uint32_t i = 0; i < folders.n && i < 20; i++)
			strbuf_printf(&text, "%s%s", i ? ", " : "", folders.list[i]);
	if (text.s && !text.oom)
		return err_set(e, -EINVAL,
			       "%.200s: has the memory of %.400s: name one with --container",
			       place->dir, text.s);
	if (!windows)
		return err_set(e, -ENOENT,
			       "%.200s: there is neither a trend.csv nor a window in it",
			       place->dir);
	return err_set(e, -ENODATA,
		       "%.200s%s%.64s: there are no rows of memory in these windows (memory-*.csv)",
		       place->dir, *place->folder ? "/" : "", place->folder);
}

int trend_read_windows(const char *dir, const char *choice, const char *container,
		       struct mem_log **ret_log, char *shown, size_t cap, struct err *e)
{
	_cleanup_(mem_log_freep) struct mem_log *log = calloc(1, sizeof(*log));
	_cleanup_(windows_fini) struct windows w = { 0 };
	_cleanup_(freep) uint32_t *chosen = NULL;
	uint32_t n = 0, windows = 0;
	struct input_place place;
	int r = log ? 0 : err_set(e, -ENOMEM, "out of memory");

	if (r == 0)
		r = input_place_find(dir, container, &place, e);
	/* Of all containers: one that did nothing in a window has its memory there, and no profile. */
	if (r == 0)
		r = windows_read(place.dir, "", &w, e);
	if (r == 0)
		r = choose(&w, choice, &chosen, &n, e);
	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < n; i++)
		r = add_window(&place, &w.all[chosen[i]], log, &windows);
	if (r < 0)
		return err_set(e, r, "out of memory");
	if (!log->n)
		return no_rows(&place, w.n, e);
	snprintf(shown, cap, "%s%s%s, %u window%s", place.dir, *place.folder ? "/" : "",
		 place.folder, windows, windows == 1 ? "" : "s");
	*ret_log = TAKE_PTR(log);
	return 0;
}
