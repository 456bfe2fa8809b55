/*
 * dpkg's list of a package's files, whoever wrote it: a file that is found to be of the package stands in the list on a line of its
 * own, and one that does so is found.
 */
#include "symbolize/debug_package.h"

#include "base/bytes.h"
#include "scratch_folder.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_line(struct bytes list, const char *path)
{
	struct bytes line;

	while (bytes_line(&list, &line))
		if (line.len == strlen(path) && memcmp(line.data, path, line.len) == 0)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = { "/usr/lib/libx.so.1", "/lib/libx.so.1", "/usr/bin/x",
					     "/x" };
	struct debug_package asked[4] = { { .path = paths[0] },
					  { .path = paths[1] },
					  { .path = paths[2] },
					  { .path = paths[3] } };
	struct bytes list = bytes_of(data, size);
	bool has[4];

	scratch_write("libx1:amd64.list", data, size);
	debug_packages_find(scratch_folder(), asked, 4);
	for (int i = 0; i < 4; i++)
		has[i] = has_line(list, paths[i]);
	/* Merged /usr. */
	has[0] |= has[1];
	has[2] |= has_line(list, "/bin/x");
	for (int i = 0; i < 4; i++) {
		if (strnlen(asked[i].name, sizeof(asked[i].name)) == sizeof(asked[i].name))
			abort();
		if (*asked[i].name && (strcmp(asked[i].name, "libx1-dbgsym") != 0 || !has[i]))
			abort();
		if (i >= 2 && has[i] && size < 4096 && !memchr(data, '\0', size) &&
		    !memchr(data, '\r', size) && !*asked[i].name)
			abort();
	}
	return 0;
}
