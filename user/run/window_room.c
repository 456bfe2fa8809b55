#include "run/window_room.h"

#include "base/archive.h"

#include <stdio.h>

bool window_room_make(const struct run_config *cfg, uint64_t n)
{
	struct pruned pruned = { 0 };

	return cfg->archive && cfg->every_s > 0 && !keep_is_all(&cfg->keep) &&
	       archive_make_room(cfg->dir, n, &pruned, NULL) == 0 && pruned.files;
}

void window_room_note(uint64_t *unwritten, const char *dir, bool full)
{
	if (full && !(*unwritten)++)
		fprintf(stderr,
			"memscope: %s: the disk is full, and no older window is there to make room: "
			"no windows are written until there is some\n",
			dir);
	if (full || !*unwritten)
		return;
	fprintf(stderr, "memscope: %s: windows are written again; %llu could not be\n", dir,
		(unsigned long long)*unwritten);
	*unwritten = 0;
}
