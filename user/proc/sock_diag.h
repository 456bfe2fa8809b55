/*
 * TCP connections of a network namespace, by the kernel's sock_diag (man 7 sock_diag; linux/inet_diag.h): one dump of all
 * of them with the struct tcp_info of each. Whose a connection is, the kernel does not say: that is by the inode of
 * the socket (connections.h).
 */
#ifndef MEMSCOPE_PROC_SOCK_DIAG_H
#define MEMSCOPE_PROC_SOCK_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TCP_NAME_MAX = 64 };

struct tcp_conn {
	uint64_t inode, cookie;
	uint8_t remote[16];              /* in the order of the network; IPv4: the first four bytes */
	uint16_t local_port, remote_port;
	bool ipv6, listens, connecting;  /* connecting: nobody has answered yet                    */
	bool accepted;                   /* for who knows the ports that are listened at: false    */
	uint32_t unread;                 /* bytes that have come and were not read                  */
	uint32_t unacked;                /* segments sent that the other side's kernel has not seen */
	uint32_t sent_ms, recv_ms, ack_ms; /* since data was sent, data came, an acknowledgement came: in jiffies of 1 to 10 ms */
	uint32_t segs_in, segs_out;        /* all, those that only acknowledge too …                */
	uint32_t data_in, data_out;        /* … and those with data                                */
};

/* A netlink socket in the network namespace of a process. -errno. */
int sock_diag_open(pid_t pid);

/* Calls `fn` for each that listens, is open, is half closed by the other side or about to be made. -errno: what came till
 * then may be a part. */
int sock_diag_tcp(int fd, void (*fn)(void *ctx, const struct tcp_conn *c), void *ctx);

/* One message of the answer, after its struct nlmsghdr: `len` bytes. false: it is none. */
bool sock_diag_parse(const void *msg, size_t len, struct tcp_conn *ret_conn);

/* "127.0.0.1:5432", "[::1]:5432". */
void tcp_conn_peer(const struct tcp_conn *c, char name[TCP_NAME_MAX]);

#endif
