/*
 * Requests between processes, by looking at TCP connections from outside, some times a second.
 *
 * Of a program that waits in epoll the scheduler does not say for whom. Its connections do: one that it has made, where it
 * sent last and nothing has come since, has a request outstanding; one that it has accepted, where data came last and nothing
 * was sent since, has a request that waits in the program. What is outstanding is *for* a request that waits when it was sent
 * since that came: a long poll, a subscription or a heartbeat of its own accord was sent before. Both began since the first look:
of what has stood since before nobody knows whether it is asked for or only quiet.
 *
 * The kernel knows both times in jiffies only (4 ms with HZ=250), and who asks again as soon as an answer has come does both in
 * one. Then acknowledgements say which was last: what was sent last is either not acknowledged yet, or was so by
 * segments without data, which come no more than half as often otherwise.
 *
 * Left out: what is sent again and again without an answer (logs, statistics, heartbeats of replication: nobody waits for
 * those), and connections between the processes themselves. Not seen: unix sockets, whose times the kernel does not keep;
 * UDP; several requests at a time in one connection count as one.
 */
#ifndef MEMSCOPE_PROC_REQUESTS_H
#define MEMSCOPE_PROC_REQUESTS_H

#include "proc/sock_diag.h"

#define REQUEST_PEERS 64

struct request_peer {
	char name[TCP_NAME_MAX];
	uint32_t looks;     /* at which one was outstanding or more …                        */
	uint32_t for_inbound; /* … for a request that waited in the program                  */
	uint64_t requests;  /* outstanding, summed over looks                              */
	uint64_t age_ms;    /* of those, summed                                            */
	uint32_t oldest_ms;
	uint32_t answers;   /* seen to have come between looks: fewer than there were        */
	uint32_t last_look, last_inbound;
};

struct requests {
	uint64_t first_ms;
	uint32_t looks;
	uint32_t waiting;      /* looks at which requests waited in the program …             */
	uint32_t held;         /* … and one or more was outstanding for them               */
	uint64_t inbound;      /* requests that waited, summed over looks                  */
	uint16_t port;         /* where most of them came in: the first seen               */
	uint32_t left_out;     /* connections beyond what is kept, at the most               */
	struct request_peer peers[REQUEST_PEERS];
	uint32_t n_peers;
	struct request_conn *conns; /* by cookie                                              */
};

struct request_conn;

/* A look: the connections of the program, `accepted` set. Sorts them. `now_ms`: of any clock. */
void requests_look(struct requests *r, struct tcp_conn *conns, uint32_t n, uint64_t now_ms);
void requests_free(struct requests *r);

#endif
