#include "run/named_kinds.h"

#include "base/window_name.h"
#include "collect/session/sources.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static bool is_of_run(DIR *d)
{
	const struct dirent *entry;
	bool found = false;

	while (!found && (entry = readdir(d)))
		found = begins(entry->d_name, "summary") || begins(entry->d_name, "trend");
	rewinddir(d);
	return found;
}

/* What is before the date of a window, or the end; "": the file is no profile of a kind. */
static void kind_of(const char *file, char name[64])
{
	size_t len = strlen(file), end = strlen(".pb.gz");
	struct window_name window;

	*name = '\0';
	if (len <= end || strcmp(file + len - end, ".pb.gz") != 0 || *file == '.')
		return;
	len = window_name_parse(file, &window) ? strlen(window.source) : strcspn(file, ".");
	if (len < 64 && !(len == 5 && begins(file, "sites")))
		snprintf(name, 64, "%.*s", (int)len, file);
}

void named_kinds_of(const char *dir)
{
	const struct dirent *entry;
	DIR *d = opendir(dir);

	if (d && is_of_run(d))
		while ((entry = readdir(d))) {
			struct profile_row row = { .n_types = 1 };
			char name[64], type[64];

			kind_of(entry->d_name, name);
			profile_type_name(name, type);
			row.name = name;
			row.types[0] = (struct value_type){ type, "count" };
			if (*name)
				profile_kind_add(&row);
		}
	if (d)
		closedir(d);
}
