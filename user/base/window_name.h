/*
 * Names of files that have a time: [FOLDER/]SOURCE[_WORD]-YYYYMMDD-HHMMSS[-N].EXT.
 *
 * The stamp is in local time: when a window began or, of a trigger's window, which has the trigger's WORD, when the
 * trigger was. N numbers those of one second, from 2 on. Files of whole runs have the stamp of the run's begin.
 */
#ifndef MEMSCOPE_BASE_WINDOW_NAME_H
#define MEMSCOPE_BASE_WINDOW_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAMP_LEN 15 /* YYYYMMDD-HHMMSS */

struct window_name {
	char source[64], word[64]; /* word: "" of a window that no trigger asked for */
	char stamp[32];
	const char *ext; /* in the name: ".pb.gz" */
};

/* Folders of what is in no container: with -a, else. */
#define FOLDER_HOST	  "host"
#define FOLDER_UNASSIGNED "unassigned"
bool folder_is_rest(const char *folder);

/* YYYYMMDD-HHMMSS[-N] of `len` characters. */
bool is_stamp(const char *text, size_t len);
/* "oncpu.pb.gz", "web/oncpu.pb.gz": one folder at most, nothing hidden, no control characters. */
bool is_part_name(const char *name);
/* *ret_stamp: what is between a '-' of the file's name and its ending, and has the form of one. */
/* Where the stamp of a file's name begins, before its ending; NULL: it has none. What is before it may have dashes: page-faults-STAMP. */
const char *window_stamp_in(const char *file, size_t *ret_len);
bool is_window_name(const char *name, char *ret_stamp, size_t cap);
/* The same in its parts; `file` has no folder. */
bool window_name_parse(const char *file, struct window_name *ret_name);
/* When that was, in seconds since the Epoch; -1: there is no such time. Of an hour that came twice, the first. */
int64_t stamp_time(const char *stamp);
/* "20260101-000000" */
void stamp_make(int64_t time_s, char *out, size_t cap);

#endif
