#include "symbolize/debug_package.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

enum {
	LIST_BYTES_MAX = 32 << 20,
	ALL_BYTES_MAX = 256 << 20,
};

#define DPKG_INFO "/var/lib/dpkg/info"

/* Packages whose symbols are not in PACKAGE-dbgsym (Debian 12). `%` is what `*` stood for. */
static const struct rule {
	const char *package, *symbols;
} rules[] = {
	{ "libc6", "libc6-dbg" },
	{ "openjdk-*-jre-headless", "openjdk-%-dbg" },
};

/* What a pattern's one `*` matches; false when it does not match. */
static bool match(const char *pattern, const char *name, const char **ret_at, size_t *ret_len)
{
	size_t before = strcspn(pattern, "*"), len = strlen(name);
	size_t after = pattern[before] ? strlen(pattern + before + 1) : 0;

	if (!pattern[before])
		return !strcmp(pattern, name);
	if (len < before + after || strncmp(pattern, name, before) != 0 ||
	    strcmp(pattern + before + 1, name + len - after) != 0)
		return false;
	*ret_at = name + before;
	*ret_len = len - before - after;
	return true;
}

static void symbols_of(const char *package, char out[DEBUG_PACKAGE_MAX])
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const char *symbols = rules[i].symbols, *at = "";
		size_t before = strcspn(symbols, "%"), len = 0;

		if (!match(rules[i].package, package, &at, &len))
			continue;
		snprintf(out, DEBUG_PACKAGE_MAX, "%.*s%.*s%s", (int)before, symbols, (int)len, at,
			 symbols[before] ? symbols + before + 1 : "");
		return;
	}
	snprintf(out, DEBUG_PACKAGE_MAX, "%.*s-dbgsym", DEBUG_PACKAGE_MAX - 8, package);
}

/* The whole file with a newline before its first line; NULL when it cannot be read. */
static char *read_list(int dir, const char *name, uint64_t *budget)
{
	_cleanup_(closep) int fd =
		openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_(freep) char *text = NULL;
	size_t len = 1, size;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > LIST_BYTES_MAX ||
	    (uint64_t)st.st_size > *budget)
		return NULL;
	size = (size_t)st.st_size + 1;
	*budget -= (uint64_t)st.st_size;
	text = malloc(size + 2);
	if (!text)
		return NULL;
	text[0] = '\n';
	while (len < size) {
		ssize_t n = read(fd, text + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	if (text[len - 1] != '\n')
		text[len++] = '\n';
	text[len] = '\0';
	return TAKE_PTR(text);
}

static bool has_line(const char *text, const char *path)
{
	size_t len = strlen(path);

	for (const char *at = text; (at = strstr(at, path)); at += len)
		if (at[-1] == '\n' && at[len] == '\n')
			return true;
	return false;
}

static bool has_file(const char *text, const char *path)
{
	return has_line(text, path) || (!strncmp(path, "/usr/", 5) && has_line(text, path + 4));
}

void debug_packages_find(const char *info_dir, struct debug_package *p, uint32_t n)
{
	DIR *dir = opendir(info_dir ? info_dir : DPKG_INFO);
	uint64_t budget = ALL_BYTES_MAX;
	struct dirent *entry;
	uint32_t left = 0;

	for (uint32_t i = 0; i < n; i++) {
		p[i].name[0] = '\0';
		left += p[i].path[0] == '/';
	}
	while (dir && left && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		_cleanup_(freep) char *text = NULL;

		if (len <= 5 || strcmp(entry->d_name + len - 5, ".list") != 0)
			continue;
		text = read_list(dirfd(dir), entry->d_name, &budget);
		for (uint32_t i = 0; text && i < n; i++) {
			char package[NAME_MAX + 1];

			if (p[i].path[0] != '/' || p[i].name[0] || !has_file(text, p[i].path))
				continue;
			snprintf(package, sizeof(package), "%.*s", (int)strcspn(entry->d_name, ":"),
				 entry->d_name);
			if (!strchr(entry->d_name, ':'))
				package[len - 5] = '\0';
			symbols_of(package, p[i].name);
			left--;
		}
	}
	if (dir)
		closedir(dir);
}
