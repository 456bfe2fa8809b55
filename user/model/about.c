#include "model/about.h"

#include <string.h>

const char *about_prefix(enum about what)
{
	static const char *const prefixes[] = {
		[ABOUT_TARGET] = "Target: ",     [ABOUT_TITLE] = "Title: ",
		[ABOUT_LABEL] = "Label: ",       [ABOUT_END] = "End: ",
		[ABOUT_ESTIMATE] = "Estimate: ", [ABOUT_PEAK] = "Peak: ",
		[ABOUT_SELECTED] = "Selected: ", [ABOUT_TIMES] = "Times are ",
	};

	return prefixes[what];
}

const char *profile_about(const struct profile *p, enum about what, uint32_t i)
{
	const char *const *c = profile_get_meta(p)->comments;
	size_t len = strlen(about_prefix(what));

	for (; c && *c; c++)
		if (strncmp(*c, about_prefix(what), len) == 0 && !i--)
			return *c + len;
	return NULL;
}
