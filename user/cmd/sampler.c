#include "cmd/sampler.h"

#include "elf/sdt.h"
#include "proc/proc_maps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

struct look {
	pid_t pid;
	struct sampler_facts facts;
	uint64_t last_dev, last_ino;
};

static bool has_sites(struct elf_file *elf)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *notes = NULL;

	if (sdt_notes_load(elf, &notes, NULL) < 0)
		return false;
	for (uint32_t i = 0; i < sdt_notes_count(notes); i++) {
		const struct sdt_note *note = sdt_notes_at(notes, i);

		if (strcmp(note->provider, "otel_memory") == 0 && strcmp(note->name, "alloc") == 0)
			return true;
	}
	return false;
}

static int look_at(void *ctx, const struct proc_map *map)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = -1;
	struct look *l = ctx;
	char path[96];

	if (!(map->perms & PROC_MAP_EXEC) || map->path[0] != '/' ||
	    (map->ino == l->last_ino && map->dev == l->last_dev))
		return 0;
	l->last_ino = map->ino;
	l->last_dev = map->dev;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)l->pid,
		 map->start, map->end);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || elf_file_open(fd, map->path, &elf, NULL) < 0)
		return 0;
	if (!l->facts.otel && has_sites(elf)) {
		l->facts.otel = true;
		snprintf(l->facts.where, sizeof(l->facts.where), "%s", map->path);
	}
	return 0;
}

void sampler_look(pid_t pid, struct sampler_facts *ret_facts)
{
	struct look l = { .pid = pid };

	proc_maps_each(pid, look_at, &l, NULL);
	*ret_facts = l.facts;
}
