#include "screen/processes_read.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "container/container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#define CONTAINERS_AGAIN_NS 5000000000ULL /* between two readings of what engines say */
#define COMMAND_MAX         4096
#define DESCRIPTORS_LEFT    256 /* for others, when processes have the rest */

struct processes_reader {
	DIR *proc;
	struct cgroup_mounts mounts;
	struct container_list containers;
	uint64_t containers_ns; /* when those were read */
	uint32_t fds, fds_max;
};

int processes_reader_new(struct processes_reader **ret_reader, struct err *e)
{
	struct processes_reader *r = calloc(1, sizeof(*r));
	struct rlimit limit = { 0 };

	if (!r)
		return err_set(e, -ENOMEM, "out of memory");
	r->proc = opendir("/proc");
	if (!r->proc) {
		free(r);
		return err_set(e, -errno, "/proc: %s", strerror(errno));
	}
	cgroup_mounts_read(&r->mounts, NULL); /* none: no containers */
	getrlimit(RLIMIT_NOFILE, &limit);
	r->fds_max = limit.rlim_cur > 2 * DESCRIPTORS_LEFT
			     ? (uint32_t)limit.rlim_cur - DESCRIPTORS_LEFT
			     : 0;
	*ret_reader = r;
	return 0;
}

void processes_reader_free(struct processes_reader *r)
{
	if (!r)
		return;
	closedir(r->proc);
	cgroup_mounts_fini(&r->mounts);
	containers_fini(&r->containers);
	free(r);
}

/* --- containers --- */

static const struct container *container_of(struct processes_reader *r, const char *path)
{
	const struct container *c = container_by_path(&r->containers, path);

	if (c || (r->containers_ns && now_ns() - r->containers_ns < CONTAINERS_AGAIN_NS))
		return c;
	containers_fini(&r->containers);
	containers_read(NULL, r->mounts.n ? &r->mounts : NULL, &r->containers, NULL);
	r->containers_ns = now_ns();
	return container_by_path(&r->containers, path);
}

static uint32_t row_of_container(struct processes *p, const char *id, const struct container *c)
{
	struct process_container *more, row;

	for (uint32_t i = 0; i < p->n_containers; i++)
		if (strcmp(p->containers[i].id, id) == 0)
			return i;
	more = reallocarray(p->containers, p->n_containers + 1, sizeof(*more));
	if (!more)
		return UINT32_MAX;
	p->containers = more;
	row = (struct process_container){
		.id = strdup(id),
		.name = c ? strdup(container_title(c)) : strndup(id, CONTAINER_ID_SHORT),
		.engine = strdup(c ? c->engine : ""),
	};
	if (!row.id || !row.name || !row.engine) {
		free(row.id);
		free(row.name);
		free(row.engine);
		return UINT32_MAX;
	}
	p->containers[p->n_containers] = row;
	return p->n_containers++;
}

static void place(struct processes_reader *r, struct processes *p, struct process *row)
{
	char path[PATH_MAX], id[CONTAINER_ID_HEX + 1];
	const struct container *c;
	uint32_t hierarchy;
	size_t len;

	row->placed = true;
	if (cgroup_of_process(row->pid, &hierarchy, path, sizeof(path)) < 0)
		return;
	if (container_id_in(path, id, &len)) {
		c = container_of(r, path);
		if (c || !container_by_id(&r->containers,
					  id)) /* or a user has called its own group so */
			row->container = row_of_container(p, id, c);
		return;
	}
	c = r->containers.n ? container_by_path(&r->containers, path) : NULL;
	if (c)
		row->container = row_of_container(p, c->id, c);
}

/* --- reading --- */

static int open_stat(const struct processes_reader *r, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%.20s/stat", name);
	return openat(dirfd(r->proc), path, O_RDONLY | O_CLOEXEC);
}

/* The file is kept open: opening and closing it takes as long as reading it. */
static void read_one(struct processes_reader *r, struct processes *p, const char *name)
{
	struct process *row = processes_find(p, atoi(name));
	int fd = row ? row->fd : -1;
	bool was_open = fd >= 0, bad;
	char line[1024];
	ssize_t n = -1;

	if (was_open)
		n = pread(fd, line, sizeof(line) - 1, 0);
	if (n <= 0) {
		if (was_open) {
			close(fd);
			row->fd = -1;
			r->fds--;
		}
		fd = open_stat(r, name);
		n = fd >= 0 ? pread(fd, line, sizeof(line) - 1, 0) : -1;
		was_open = false;
		p->lost += fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	}
	line[n > 0 ? n : 0] = '\0';
	row = n > 0 ? processes_stat(p, line, &bad) : NULL;
	if (row && !was_open && r->fds < r->fds_max) {
		row->fd = fd;
		r->fds++;
	} else if (fd >= 0 && !was_open) {
		close(fd);
	}
	if (row && !row->placed)
		place(r, p, row);
}

int processes_read(struct processes_reader *r, struct processes *p, struct err *e)
{
	struct dirent *d;
	uint32_t open = 0;

	processes_begin(p, now_ns());
	p->lost = 0;
	rewinddir(r->proc);
	while ((d = readdir(r->proc)))
		if (d->d_name[0] >= '0' && d->d_name[0] <= '9')
			read_one(r, p, d->d_name);
	processes_end(p);
	for (uint32_t i = 0; i < p->n; i++)
		open += p->rows[i].fd >= 0;
	r->fds = open;
	return p->n ? 0 : err_set(e, -ENOENT, "/proc shows no process");
}

const char *process_command(struct process *row)
{
	_cleanup_(closep) int fd = -1;
	struct strbuf b = { 0 };
	char path[32], buf[COMMAND_MAX];
	ssize_t n;

	if (row->command)
		return row->command;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)row->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, sizeof(buf)) : 0;
	while (n > 0 && !buf[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!buf[i] || buf[i] == '\n')
			buf[i] = ' ';
	if (n > 0) {
		strbuf_add_clean(&b, buf, (size_t)n);
	} else {
		strbuf_putc(&b, '[');
		strbuf_add_clean(&b, row->comm, strlen(row->comm));
		strbuf_putc(&b, ']');
	}
	row->command = strbuf_take(&b);
	return row->command ? row->command : row->comm;
}
