#include "run/archive_name.h"

#include "container/container.h"
#include "run/target.h"

#include <stdio.h>
#include <string.h>

/* What the path of its control group says; false: nothing. */
static bool name_in_path(const char *path, char *out, size_t cap)
{
	struct container_list all = { 0 };
	const struct container *c;
	char id[CONTAINER_ID_HEX + 1] = "";
	size_t len;

	if (containers_read(NULL, NULL, &all, NULL) < 0)
		return false;
	container_id_in(path, id, &len);
	c = container_by_path(&all, path);
	if (c)
		snprintf(out, cap, "%s", container_title(c));
	else if (*id)
		snprintf(out, cap, "%.*s", CONTAINER_ID_SHORT, id);
	containers_fini(&all);
	return c || *id || cgroup_unit_in(path, out, cap);
}

static bool name_of_group(pid_t pid, char *out, size_t cap)
{
	char path[PATH_MAX], own_path[PATH_MAX], own[NAME_MAX + 1];
	uint32_t hierarchy;

	if (cgroup_of_process(pid, &hierarchy, path, sizeof(path)) < 0 ||
	    !name_in_path(path, out, cap))
		return false;
	return cgroup_of_process(getpid(), &hierarchy, own_path, sizeof(own_path)) < 0 ||
	       !name_in_path(own_path, own, sizeof(own)) || strcmp(own, out) != 0;
}

/* "^redis-server$" → "redis-server" */
static void word_of_pattern(const char *pattern, char *out, size_t cap)
{
	size_t len;

	snprintf(out, cap, "%s", pattern + (*pattern == '^'));
	len = strlen(out);
	if (len && out[len - 1] == '$')
		out[len - 1] = '\0';
}

void archive_name_of(pid_t pid, const char *pattern, char *out, uint32_t cap)
{
	char name[NAME_MAX + 1];

	if (name_of_group(pid, name, sizeof(name)))
		; /* the best there is */
	else if (pattern)
		word_of_pattern(pattern, name, sizeof(name));
	else
		target_comm(pid, name, sizeof(name));
	target_file_word(name, out, cap);
}
