#include "heap/snapshot/room.h"

#include "base/new_file.h"
#include "heap/in_use.h"
#include "heap/snapshot/copy.h"
#include "heap/snapshot/file.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
	/* A block's row, its type, where its object begins, where its references begin each way round … */
	BLOCK_BYTES = sizeof(struct heap_block) + 4 + 1 + 2 * 8,
	/* … and what is in use has a reference to it, noted twice. */
	EDGE_BYTES = 2 * sizeof(struct graph_edge),
	/* Of a heap of blocks of 32 bytes with four references each a snapshot has three times the bytes. */
	MOST = 4,
};

static bool same_disk(const struct new_file *f, const char *folder)
{
	struct stat a, b;

	return fstat(f->fd, &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev;
}

static bool has_plenty(const struct new_file *f, uint64_t bytes)
{
	struct statvfs fs;

	return fstatvfs(f->fd, &fs) < 0 ||
	       (uint64_t)fs.f_bavail * fs.f_frsize / (MOST + 2) >= bytes;
}

/* Blocks are counted only where that may matter: it takes 0.1 s per 10^6. */
static uint64_t least_of_snapshot(pid_t pid)
{
	struct heap_wanted wanted = { .max = 1, .objects = true };
	struct heap_in_use use;
	uint64_t bytes;

	if (heap_in_use_take(pid, INT64_MAX / 2, &wanted, &use, NULL) < 0)
		return 0;
	bytes = use.blocks.all.blocks * (BLOCK_BYTES + EDGE_BYTES);
	heap_in_use_fini(&use);
	return bytes;
}

int room_check(pid_t pid, const struct room_plan *plan, struct err *e)
{
	_cleanup_(new_file_close) struct new_file f = { .fd = -1 };
	const char *what = plan->core ? "a core" : "a snapshot";
	uint64_t copied, bytes;
	int r = new_file_open(plan->path, &f, e);

	if (r == 0)
		r = copy_predict(pid, &copied, e);
	if (r < 0 || has_plenty(&f, copied))
		return r;
	bytes = plan->core ? copied : least_of_snapshot(pid);
	if (same_disk(&f, plan->scratch)) {
		what = plan->core ? "a core, with the copy that it is made of,"
				  : "a snapshot, with the copy that it is made of,";
		bytes += copied;
	}
	return new_file_check_room(&f, what, bytes, e);
}
