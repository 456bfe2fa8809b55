#include "proc/connections.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SOCKETS_MAX = 65536, /* of all processes: what is beyond is not looked at */
	PORTS = 65536,
};

int connections_init(struct connections *c)
{
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < CONNECTION_SPACES; i++)
		c->spaces[i].fd = -1;
	c->listens = calloc(PORTS / 8, 1);
	return c->listens ? 0 : -ENOMEM;
}

void connections_fini(struct connections *c)
{
	for (int i = 0; i < CONNECTION_SPACES; i++)
		if (c->spaces[i].ns && c->spaces[i].fd >= 0)
			close(c->spaces[i].fd);
	free(c->inodes);
	free(c->conns);
	free(c->listens);
}

void connections_begin(struct connections *c)
{
	c->n_inodes = c->n_conns = 0;
	for (int i = 0; i < CONNECTION_SPACES; i++) {
		/* Nobody had it the last time: its place is another's. */
		if (c->spaces[i].ns && !c->spaces[i].wanted) {
			if (c->spaces[i].fd >= 0)
				close(c->spaces[i].fd);
			c->spaces[i].fd = -1;
			c->spaces[i].ns = 0;
		}
		c->spaces[i].wanted = false;
	}
}

/* The array with room for one more; NULL: there is none, and it stays as it is. */
static void *with_room(struct connections *c, void *array, uint32_t n, uint32_t *max, size_t size)
{
	uint32_t more = *max ? 2 * *max : 64;
	void *grown;

	if (n < *max)
		return array;
	if (n >= SOCKETS_MAX)
		return NULL;
	grown = realloc(array, more * size);
	if (grown)
		*max = more;
	else
		c->oom = true;
	return grown;
}

static void add_inode(struct connections *c, uint64_t inode)
{
	uint64_t *inodes = with_room(c, c->inodes, c->n_inodes, &c->max_inodes, sizeof(*c->inodes));

	if (!inodes)
		return;
	c->inodes = inodes;
	c->inodes[c->n_inodes++] = inode;
}

static void add_conn(struct connections *c, const struct tcp_conn *conn)
{
	struct tcp_conn *conns =
		with_room(c, c->conns, c->n_conns, &c->max_conns, sizeof(*c->conns));

	if (!conns)
		return;
	c->conns = conns;
	c->conns[c->n_conns++] = *conn;
}

static bool add_space(struct connections *c, pid_t pid)
{
	char path[48];
	struct stat st;
	int i = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (stat(path, &st) < 0)
		return false;
	while (i < CONNECTION_SPACES && c->spaces[i].ns != st.st_ino)
		i++;
	if (i == CONNECTION_SPACES)
		for (i = 0; i < CONNECTION_SPACES && c->spaces[i].ns;)
			i++;
	if (i == CONNECTION_SPACES)
		return false;
	if (!c->spaces[i].ns) {
		c->spaces[i].fd = sock_diag_open(pid);
		c->spaces[i].ns = st.st_ino;
	}
	c->spaces[i].wanted = true;
	return c->spaces[i].fd >= 0;
}

void connections_add(struct connections *c, pid_t pid)
{
	char path[32], to[64];
	struct dirent *d;
	DIR *dir;

	if (!add_space(c, pid)) {
		c->failed++;
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir))) {
		ssize_t len;

		if (d->d_name[0] == '.')
			continue;
		len = readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1);
		if (len <= 0 || strncmp(to, "socket:[", 8) != 0)
			continue;
		to[len] = '\0';
		add_inode(c, strtoul(to + 8, NULL, 10));
	}
	if (dir)
		closedir(dir);
	else
		c->failed++;
}

static int by_inode(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void take(void *ctx, const struct tcp_conn *conn)
{
	struct connections *c = ctx;

	if (conn->listens)
		c->listens[conn->local_port / 8] |= (uint8_t)(1u << conn->local_port % 8);
	else if (conn->inode &&
		 bsearch(&conn->inode, c->inodes, c->n_inodes, sizeof(*c->inodes), by_inode))
		add_conn(c, conn);
}

void connections_read(struct connections *c)
{
	if (!c->n_inodes)
		return;
	qsort(c->inodes, c->n_inodes, sizeof(*c->inodes), by_inode);
	for (int i = 0; i < CONNECTION_SPACES; i++) {
		uint32_t first = c->n_conns;

		if (!c->spaces[i].wanted || c->spaces[i].fd < 0)
			continue;
		memset(c->listens, 0, PORTS / 8);
		if (sock_diag_tcp(c->spaces[i].fd, take, c) < 0)
			c->failed++;
		for (uint32_t k = first; k < c->n_conns; k++)
			c->conns[k].accepted = c->listens[c->conns[k].local_port / 8] >>
						       c->conns[k].local_port % 8 &
					       1;
	}
}
