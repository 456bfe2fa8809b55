/*
 * The TCP connections of a few processes: by the inodes of their sockets, and sock_diag in each of their network namespaces.
 */
#ifndef MEMSCOPE_PROC_CONNECTIONS_H
#define MEMSCOPE_PROC_CONNECTIONS_H

#include "proc/sock_diag.h"

#include "base/err.h"

enum { CONNECTION_SPACES = 8 };

/* Zeroed but for `spaces[].fd`: connections_init(). */
struct connections {
	struct connection_space {
		uint64_t ns;  /* its inode; 0: none               */
		int fd;
		bool wanted;  /* one of the processes is in there */
	} spaces[CONNECTION_SPACES];
	uint64_t *inodes; /* of sockets of the processes, sorted for the dump */
	uint32_t n_inodes, max_inodes;
	struct tcp_conn *conns;
	uint32_t n_conns, max_conns;
	uint8_t *listens; /* a bit for each port               */
	bool oom;
	uint32_t failed; /* processes and namespaces that could not be read: times */
};

int connections_init(struct connections *c);
void connections_fini(struct connections *c);

/* A look: begin, each process, then the dump, after which `conns` are those of the processes. */
void connections_begin(struct connections *c);
void connections_add(struct connections *c, pid_t pid);
void connections_read(struct connections *c);

#endif
