/*
 * proc_table_scan(): what /proc says about a process that was there before us.
 */
#include "base/small_file.h"
#include "proc/life.h"
#include "proc/no_process.h"
#include "proc/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/*
 * When the process began, on CLOCK_MONOTONIC; stat has it in ticks of CLOCK_BOOTTIME, which runs
 * on while the machine is suspended. 0: unknown.
 */
static uint64_t started_ns(int dir)
{
	struct timespec boot, mono;
	unsigned long long ticks;
	int64_t ahead, ns;
	char buf[1024];
	char *after;

	if (small_file_read(dir, "stat", buf, sizeof(buf)) < 0)
		return 0;
	/* The name in parentheses may hold anything; field 22 is the 20th after its end
	 * (proc(5)). */
	after = strrchr(buf, ')');
	if (!after || sscanf(after + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
			     "%*d %*d %*d %*d %llu",
			     &ticks) != 1)
		return 0;
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &mono);
	ahead = (int64_t)(boot.tv_sec - mono.tv_sec) * 1000000000 + boot.tv_nsec - mono.tv_nsec;
	ns = (int64_t)ticks * (1000000000 / sysconf(_SC_CLK_TCK));
	return ns > ahead ? (uint64_t)(ns - ahead) : 0;
}

/* Has another process the pid by now, although no record says that this one ended? */
static bool is_another(const struct life *l, int dir)
{
	uint64_t started = started_ns(dir);
	const uint64_t tick_ns = 1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK);

	return started > l->forked_ns + 2 * tick_ns;
}

static void scan_threads(struct life *l, int dir)
{
	DIR *tasks = NULL;
	struct dirent *ent;
	int fd = openat(dir, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;

	tasks = fd >= 0 ? fdopendir(fd) : NULL;
	if (!tasks) {
		closep(&fd);
		return;
	}
	while ((ent = readdir(tasks))) {
		char name[288], comm[64];
		pid_t tid = (pid_t)atoi(ent->d_name);

		if (tid <= 0)
			continue;
		n++;
		snprintf(name, sizeof(name), "%s/comm", ent->d_name);
		if (tid != l->pid && small_file_read(fd, name, comm, sizeof(comm)) >= 0)
			proc_set_comm(l->newest, tid, comm);
	}
	closedir(tasks);
	if (n > 0)
		l->threads = n;
}

struct fill {
	struct proc_table *t;
	struct proc *p;
};

static int add_map(void *ctx, const struct proc_map *map)
{
	struct fill *f = ctx;

	if (map->perms & PROC_MAP_EXEC)
		proc_map_add(f->t, f->p,
			     &(struct proc_mmap){ .addr = map->start,
						  .len = map->end - map->start,
						  .file_off = map->file_off,
						  .dev = map->dev,
						  .ino = map->ino,
						  .path = map->path });
	return 0;
}

static void scan_exe(struct proc *p, int dir)
{
	char path[4200];
	ssize_t n = readlinkat(dir, "exe", path, sizeof(path) - 1);

	if (n <= 0)
		return;
	path[n] = '\0';
	proc_path_undelete(path);
	proc_set_exe(p, path);
}

/* Everything that the records would have reported before we opened them. */
static int fill_in(struct proc_table *t, struct life *l, int dir)
{
	struct fill f = { t, l->newest };
	int root = ns_roots_add(&t->roots, l->pid);
	char comm[64];

	l->newest->root = root >= 0 ? root : root == -ENOSPC || root == -ENOMEM ? NS_NO_ROOT : -1;
	if (small_file_read(dir, "comm", comm, sizeof(comm)) >= 0)
		proc_set_comm(l->newest, l->pid, comm);
	scan_exe(l->newest, dir);
	scan_threads(l, dir);
	return proc_maps_each(l->pid, add_map, &f, NULL);
}

/* The image that a process had at `ns`. */
static const struct proc *image_at(const struct life *l, uint64_t ns)
{
	const struct proc *p = l->newest;

	while (p->older && p->older->end_ns > ns)
		p = p->older;
	return p;
}

int proc_table_scan(struct proc_table *t, pid_t pid, uint32_t exec_id, uint64_t now_ns,
		    struct err *e)
{
	_cleanup_(closep) int dir = -1;
	struct life *l;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	dir = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_no_process(e, pid);
	l = life_running(t, pid);
	if (l && !is_another(l, dir)) {
		if (exec_id && !l->lineage->known) {
			l->lineage->known = true;
			l->lineage->base = exec_id - l->offset - image_at(l, now_ns)->nth;
		}
		return 0;
	}
	l = life_begin(t, pid, now_ns, NULL);
	if (!l)
		return err_set(e, -ENOMEM, "out of memory for process %d", (int)pid);
	if (exec_id) {
		l->lineage->known = true;
		l->lineage->base = exec_id;
	}
	r = fill_in(t, l, dir);
	l->scanned_ns = now_ns;
	l->began = 0;
	/* Its mappings may be hidden from us; its name and its records are not. */
	if (r == -ESRCH) {
		life_end(l, now_ns);
		return err_set(e, r, "process %d is gone", (int)pid);
	}
	return 0;
}
