/*
 * Windows of runs in a directory, as base/archive.h has them there: what each has, and when it was.
 *
 * Names of files say which there are; no file is opened for that. A name has the second of a window's begin (of a
 * trigger's window: of the trigger); the exact begin and the end are in its profiles, windows_measure().
 *
 * Windows of --every follow each other. Those of triggers lie across them, so no moment may be counted in both.
 */
#ifndef MEMSCOPE_IMPORT_WINDOWS_H
#define MEMSCOPE_IMPORT_WINDOWS_H

#include "base/err.h"
#include "base/window_name.h"

#include <stdbool.h>
#include <stdint.h>

enum { WINDOWS_SOURCES = 32 };

struct window {
	char stamp[32];
	char word[64];            /* of the trigger that asked for it; "": a window of --every */
	int64_t begin_ns, end_ns; /* since the Epoch; before it was measured begin_ns is what the stamp says, and end_ns is 0 */
	uint32_t sources;         /* bits: of the table below */
	bool measured;
	/* By windows_add_sizes(), of what was added up. */
	uint64_t bytes;
	uint32_t files, folders, last_folder; /* folders: of containers */
};

struct windows {
	char *dir;
	char folder[64]; /* of a container, in `dir`; "": those of all */
	struct window *all; /* by time */
	uint32_t n, cap;
	char sources[WINDOWS_SOURCES][64];
	uint32_t n_sources;
	uint32_t n_folders; /* of which sizes were added up */
};

/* What is in DIR[/FOLDER]; that may be nothing. `folder`: NULL or "": none. windows_fini() in any case. */
int windows_read(const char *dir, const char *folder, struct windows *ret_windows, struct err *e);
void windows_fini(struct windows *w);

/* The number of a source, -1: no window has it. */
int windows_source(const struct windows *w, const char *name);
/* "oncpu, offcpu", of the bits `sources`. */
void windows_list_sources(const struct windows *w, uint32_t sources, char *out, size_t cap);

/*
 * DIR/[FOLDER/]SOURCE[_WORD]-STAMP`ext`, of the window `i` and the source `source`. Its length; as snprintf().
 */
int windows_path(const struct windows *w, uint32_t i, uint32_t source, const char *ext, char *out,
		 size_t cap);

/*
 * Begin and end, as one of the window's profiles says. -errno with a sentence: none can be read. Windows stay in the
 * order in which they are.
 */
int windows_measure(struct windows *w, uint32_t i, struct err *e);

/* What a folder has of the windows. */
struct windows_part {
	uint32_t windows;
	uint64_t bytes;
	int64_t last_ns; /* when the last of them began, by its stamp */
};

/*
 * Adds up the files of DIR[/FOLDER], of profiles and all that has their names, by window; before any was measured. `on_file`
 * is called for each of them.
 */
int windows_add_sizes(struct windows *w, const char *folder,
		      int (*on_file)(void *ctx, const char *path, uint64_t bytes), void *ctx,
		      struct windows_part *ret_part, struct err *e);

/* The window that a file of this name is of; NULL: no profile has its stamp. */
struct window *windows_of_file(const struct windows *w, const struct window_name *file);

/* The last window of --every that began at `ns` or before, -1: there is none. */
int64_t windows_last_begun(const struct windows *w, int64_t ns);

#endif
