#include "proc/place.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool place_in_line(const char *line, uint64_t addr, char *out, size_t cap)
{
	uint64_t from, to;
	int name_at = 0;
	const char *name, *slash;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &from, &to, &name_at) != 2 ||
	    !name_at || addr < from || addr >= to)
		return false;
	name = line + name_at;
	slash = *name == '/' ? strrchr(name, '/') : NULL;
	snprintf(out, cap, "%.*s", (int)strcspn(slash ? slash + 1 : name, "\n"),
		 slash ? slash + 1 : name);
	if (!*out)
		snprintf(out, cap, "[anonymous]");
	return true;
}

bool place_of_address(pid_t pid, uint64_t addr, char *out, size_t cap)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[4096 + 128];
	bool found = false;

	*out = '\0';
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = place_in_line(line, addr, out, cap);
	return found;
}
