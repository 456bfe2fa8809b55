#include "base/window_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool folder_is_rest(const char *folder)
{
	return strcmp(folder, FOLDER_HOST) == 0 || strcmp(folder, FOLDER_UNASSIGNED) == 0;
}

bool is_stamp(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (i == 8 || i == STAMP_LEN ? c != '-' : c < '0' || c > '9')
			return false;
	}
	return len >= STAMP_LEN && len != STAMP_LEN + 1;
}

bool is_part_name(const char *name)
{
	const char *slash = strchr(name, '/');

	for (const char *c = name; *c; c++)
		if ((unsigned char)*c < ' ')
			return false;
	if (!*name || *name == '.')
		return false;
	return !slash || (slash[1] && slash[1] != '.' && !strchr(slash + 1, '/'));
}

const char *window_stamp_in(const char *file, size_t *ret_len)
{
	for (const char *dash = strchr(file, '-'); dash; dash = strchr(dash + 1, '-')) {
		*ret_len = strcspn(dash + 1, ".");
		if (dash > file && dash[1 + *ret_len] && is_stamp(dash + 1, *ret_len))
			return dash + 1;
	}
	return NULL;
}

bool is_window_name(const char *name, char *ret_stamp, size_t cap)
{
	const char *slash = strchr(name, '/'), *file = slash ? slash + 1 : name;
	size_t len;
	const char *stamp = window_stamp_in(file, &len);

	if (!stamp || !is_part_name(name) || strchr(file, '/') || len >= cap)
		return false;
	memcpy(ret_stamp, stamp, len);
	ret_stamp[len] = '\0';
	return true;
}

/* A trigger's word stands behind one of these. */
static bool has_word(const char *file, size_t source)
{
	static const char *const sources[] = { "oncpu",  "offcpu",  "alloc",    "heap",
					       "peak",   "growth",  "mappings", "goroutine",
					       "wakers", "syscalls" };

	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		if (file[source] == '_' && strlen(sources[i]) == source &&
		    strncmp(file, sources[i], source) == 0)
			return true;
	return false;
}

/*
 * In the name of an event _ is a letter: how long it is, of `len` characters, before the word of a trigger (run/trigger.c), which
 * begins with what the trigger is of.
 */
static size_t event_len(const char *file, size_t len)
{
	static const char *const triggers[] = { "rss", "growth", "allocated", "cpu", "oom" };

	for (size_t at = len; at-- > 1;)
		for (size_t i = 0; file[at] == '_' && i < sizeof(triggers) / sizeof(*triggers);
		     i++) {
			size_t end = at + 1 + strlen(triggers[i]);
			bool has_bound = strcmp(triggers[i], "oom") != 0;

			if (end > len || strncmp(file + at + 1, triggers[i], end - at - 1) != 0)
				continue;
			if (has_bound ? file[end] == '_' && isdigit((unsigned char)file[end + 1])
				      : end == len)
				return at;
		}
	return len;
}

bool window_name_parse(const char *file, struct window_name *ret_name)
{
	struct window_name n = { .ext = NULL };
	size_t source = strcspn(file, "_"), word = 0, before, stamp;

	if (strchr(file, '/') || !is_window_name(file, n.stamp, sizeof(n.stamp)))
		return false;
	n.ext = window_stamp_in(file, &stamp);
	before = (size_t)(n.ext - 1 - file);
	n.ext += stamp;
	if (!has_word(file, source))
		source = event_len(file, before);
	if (source < before)
		word = before - source - 1;
	if (source >= sizeof(n.source) || word >= sizeof(n.word))
		return false;
	memcpy(n.source, file, source);
	memcpy(n.word, file + before - word, word);
	*ret_name = n;
	return true;
}

int64_t stamp_time(const char *stamp)
{
	struct tm tm = { .tm_isdst = -1 };
	char *end;

	if (!is_stamp(stamp, strlen(stamp)))
		return -1;
	end = strptime(stamp, "%Y%m%d-%H%M%S", &tm);
	tm.tm_isdst = -1;
	return end ? (int64_t)mktime(&tm) : -1;
}

void stamp_make(int64_t time_s, char *out, size_t cap)
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, cap, "%Y%m%d-%H%M%S", &tm))
		*out = '\0';
}
