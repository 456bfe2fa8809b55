#include "collect/events/pmu.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of DIR/PMU/FOLDER/NAME. */
static bool read_line(const char *dir, const char *pmu, const char *folder, const char *name,
		      char *line, size_t size)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[512];

	if (strchr(pmu, '/') || strchr(name, '/') || *name == '.' || *pmu == '.')
		return false;
	snprintf(path, sizeof(path), "%s/%s/%s/%s", dir, pmu, folder, name);
	f = fopen(path, "re");
	if (!f || !fgets(line, (int)size, f))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

bool pmu_type(const char *dir, const char *pmu, uint32_t *ret_type)
{
	char line[32];

	if (!read_line(dir, pmu, ".", "type", line, sizeof(line)))
		return false;
	*ret_type = (uint32_t)strtoul(line, NULL, 10);
	return true;
}

/* "0-3,8" */
static bool in_list(const char *at, uint32_t cpu)
{
	while (*at) {
		unsigned from, to;
		int len = 0;

		if (sscanf(at, "%u%n", &from, &len) != 1)
			return false;
		at += len;
		to = from;
		if (*at == '-' && sscanf(at + 1, "%u%n", &to, &len) == 1)
			at += 1 + len;
		if (cpu >= from && cpu <= to)
			return true;
		at += *at == ',';
	}
	return false;
}

bool pmu_has_cpu(const char *dir, const char *pmu, uint32_t cpu)
{
	char line[1024];

	if (!read_line(dir, pmu, ".", "cpus", line, sizeof(line)) &&
	    !read_line(dir, pmu, ".", "cpumask", line, sizeof(line)))
		return true;
	return in_list(line, cpu);
}

int pmu_set_bits(const char *format, uint64_t value, uint64_t config[3])
{
	size_t word = strcspn(format, ":");
	const char *at = format + word;
	int i = word > 6 ? format[6] - '0' : 0;

	if (strncmp(format, "config", 6) != 0 || word > 7 || i < 0 || i > 2 || *at != ':')
		return -EINVAL;
	while (*at) {
		unsigned from, to;
		int len = 0;

		if (sscanf(at + 1, "%u%n", &from, &len) != 1)
			return -EINVAL;
		at += 1 + len;
		to = from;
		if (*at == '-') {
			if (sscanf(at + 1, "%u%n", &to, &len) != 1)
				return -EINVAL;
			at += 1 + len;
		}
		if (to < from || to > 63 || (*at && *at != ','))
			return -EINVAL;
		for (unsigned bit = from; bit <= to; bit++, value >>= 1)
			config[i] = (config[i] & ~(1ULL << bit)) | (value & 1) << bit;
	}
	return value ? -ERANGE : 0;
}

/* "event=0x3c,umask=0x1,any" */
static int set_named(const char *dir, const char *pmu, char *terms, struct pmu_event *event)
{
	char *save = NULL;
	int r = 0;

	for (char *t = strtok_r(terms, ",", &save); t && r == 0; t = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(t, '=');
		uint64_t value = eq ? strtoull(eq + 1, NULL, 0) : 1;

		if (eq)
			*eq = '\0';
		r = pmu_term(dir, pmu, t, &value, event);
	}
	return r;
}

int pmu_term(const char *dir, const char *pmu, const char *term, const uint64_t *value,
	     struct pmu_event *event)
{
	static const char *const words[] = { "config", "config1", "config2" };
	uint64_t one = 1;
	char line[256];

	for (int i = 0; i < 3; i++)
		if (value && strcmp(term, words[i]) == 0) {
			event->config[i] = *value;
			return 0;
		}
	if (read_line(dir, pmu, "format", term, line, sizeof(line)))
		return pmu_set_bits(line, value ? *value : one, event->config);
	if (!value && read_line(dir, pmu, "events", term, line, sizeof(line)))
		return set_named(dir, pmu, line, event);
	return -ENOENT;
}

void pmu_events(const char *dir, void (*each)(void *ctx, const char *name), void *ctx)
{
	DIR *d = opendir(dir), *events;
	const struct dirent *pmu, *event;
	char path[1024];

	while (d && (pmu = readdir(d))) {
		if (*pmu->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/events", dir, pmu->d_name);
		events = opendir(path);
		while (events && (event = readdir(events)))
			if (*event->d_name != '.' && !strchr(event->d_name, '.')) {
				snprintf(path, sizeof(path), "%s/%s/", pmu->d_name, event->d_name);
				each(ctx, path);
			}
		if (events)
			closedir(events);
	}
	if (d)
		closedir(d);
}
