/*
 * Names of functions and images against lists of patterns: equal, or a beginning where the pattern ends in *.
 */
#ifndef MEMSCOPE_ANALYSE_NAME_MATCH_H
#define MEMSCOPE_ANALYSE_NAME_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool name_matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return strncmp(pattern, name, len - 1) == 0;
	return strcmp(pattern, name) == 0;
}

static inline bool name_in_list(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (name_matches(list[i], name))
			return true;
	return false;
}

/* `list`: an array, not a pointer. */
#define NAME_IN(list, name) name_in_list(list, sizeof(list) / sizeof((list)[0]), name)

#endif
