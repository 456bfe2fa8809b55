#include "base/window_name.h"

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

bool is_window_name(const char *name, char *ret_stamp, size_t cap)
{
	const char *slash = strchr(name, '/'), *file = slash ? slash + 1 : name;
	const char *dash = strchr(file, '-'), *dot = dash ? strchr(dash, '.') : NULL;
	size_t len = dot ? (size_t)(dot - dash - 1) : 0;

	if (!dot || dash == file || !is_part_name(name) || strchr(file, '/') || len >= cap ||
	    !is_stamp(dash + 1, len))
		return false;
	memcpy(ret_stamp, dash + 1, len);
	ret_stamp[len] = '\0';
	return true;
}

bool window_name_parse(const char *file, struct window_name *ret_name)
{
	struct window_name n = { .ext = NULL };
	size_t source = strcspn(file, "_-"), word = 0;

	if (strchr(file, '/') || !is_window_name(file, n.stamp, sizeof(n.stamp)))
		return false;
	if (file[source] == '_')
		word = strcspn(file + source + 1, "-");
	if (source >= sizeof(n.source) || word >= sizeof(n.word))
		return false;
	memcpy(n.source, file, source);
	memcpy(n.word, file + source + 1, word);
	n.ext = file + strcspn(file, "-");
	n.ext += strcspn(n.ext, ".");
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
