/*
 * Which Debian package has the debug symbols of an installed file, by what dpkg keeps of each
 * package: the list of its files (/var/lib/dpkg/info/PACKAGE[:ARCH].list, one path a line).
 *
 * PACKAGE-dbgsym is what debhelper makes; a few packages have another, which are listed. Whether
 * an archive with it is configured here is not known.
 */
#ifndef MEMSCOPE_SYMBOLIZE_DEBUG_PACKAGE_H
#define MEMSCOPE_SYMBOLIZE_DEBUG_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

enum { DEBUG_PACKAGE_MAX = 96 };

struct debug_package {
	const char *path;              /* in: as the file's users see it            */
	char name[DEBUG_PACKAGE_MAX];  /* out: "" when no package has the file       */
};

/*
 * Looks up `n` paths in one pass over `info_dir` (NULL: dpkg's). Reads at most 256 MiB. A path in
 * /usr/lib is also found as /lib (merged /usr). Without dpkg nothing is found.
 */
void debug_packages_find(const char *info_dir, struct debug_package *p, uint32_t n);

#endif
