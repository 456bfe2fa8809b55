#include "proc/requests.h"

#include "base/hash.h"

#include <stdio.h>

enum {
	CONNS_MAX = 16384, /* remembered from look to look                                     */
	ONE_WAY = 3,       /* looks between which one side sent and the other never did        */
	CYCLES_MIN = 4,    /* segments with data, until acknowledgements are counted anew        */
	JIFFIES_MS = 10,   /* two times may be as far off (HZ=100: one each)                     */
};

/* What is remembered of a connection. */
struct request_conn {
	uint64_t cookie;
	uint32_t look;              /* the last that saw it                       */
	uint32_t data_in, data_out; /* then                                       */
	uint32_t bare_in, bare_out,
		cycles;             /* segments without data, and with, when their counting began */
	uint32_t only_in, only_out; /* looks in a row since which one side alone sent */
	int32_t peer;               /* a request was outstanding to that one; else -1 */
	bool acked, acked_out; /* what is sent, what comes is acknowledged by segments of its own */
	UT_hash_handle hh;
};

static struct request_conn *remember(struct requests *r, const struct tcp_conn *c, bool *ret_new)
{
	struct request_conn *k;

	HASH_FIND(hh, r->conns, &c->cookie, sizeof(c->cookie), k);
	*ret_new = !k;
	if (!k && HASH_COUNT(r->conns) < CONNS_MAX)
		k = hash_new(r->conns, cookie, &c->cookie);
	if (k && *ret_new) {
		k->peer = -1;
		k->data_in = c->data_in;
		k->data_out = c->data_out;
	}
	return k;
}

/* Segments without data since the counting began, against those with. */
static void count_bare(struct request_conn *k, const struct tcp_conn *c)
{
	uint32_t in = c->segs_in - c->data_in, out = c->segs_out - c->data_out;
	uint32_t cycles = (c->data_in > c->data_out ? c->data_in : c->data_out) - k->cycles;

	if (cycles < 1)
		return; /* nothing has come or was sent: what was known stays */
	k->acked = in - k->bare_in > out - k->bare_out && 2 * (in - k->bare_in) >= cycles;
	k->acked_out = out - k->bare_out > in - k->bare_in && 2 * (out - k->bare_out) >= cycles;
	if (cycles < CYCLES_MIN)
		return;
	k->bare_in = in;
	k->bare_out = out;
	k->cycles += cycles;
}

static bool sent_last(const struct tcp_conn *c, const struct request_conn *k)
{
	if (!c->data_out)
		return false;
	if (!c->data_in || c->sent_ms != c->recv_ms)
		return !c->data_in || c->sent_ms < c->recv_ms;
	return c->unacked || c->ack_ms < c->recv_ms || (k && k->acked && !k->acked_out);
}

static void count_turns(struct request_conn *k, const struct tcp_conn *c)
{
	bool in = c->data_in != k->data_in, out = c->data_out != k->data_out;

	k->only_in = in && !out ? k->only_in + 1 : out ? 0 : k->only_in;
	k->only_out = out && !in ? k->only_out + 1 : in ? 0 : k->only_out;
	k->data_in = c->data_in;
	k->data_out = c->data_out;
}

static struct request_peer *peer_of(struct requests *r, const struct tcp_conn *c)
{
	char name[TCP_NAME_MAX];
	uint32_t i = 0;

	tcp_conn_peer(c, name);
	while (i < r->n_peers && strcmp(r->peers[i].name, name) != 0)
		i++;
	if (i == REQUEST_PEERS)
		return NULL;
	if (i == r->n_peers) {
		memset(&r->peers[i], 0, sizeof(r->peers[i]));
		memcpy(r->peers[r->n_peers++].name, name, sizeof(name));
	}
	return &r->peers[i];
}

/* Accepted ones first, by their ports: so that the other end of a connection can be looked up. */
static int by_ends(const void *a, const void *b)
{
	const struct tcp_conn *x = a, *y = b;

	if (x->accepted != y->accepted)
		return x->accepted ? -1 : 1;
	if (x->local_port != y->local_port)
		return x->local_port < y->local_port ? -1 : 1;
	return (x->remote_port > y->remote_port) - (x->remote_port < y->remote_port);
}

/* The same machine's other end is the program's, too. */
static bool is_within(const struct tcp_conn *c, const struct tcp_conn *accepted, uint32_t n)
{
	const struct tcp_conn other = { .accepted = true,
					.local_port = c->remote_port,
					.remote_port = c->local_port };

	return n && bsearch(&other, accepted, n, sizeof(other), by_ends);
}

static void count_request(struct requests *r, struct request_conn *k, const struct tcp_conn *c,
			  bool for_inbound)
{
	struct request_peer *p = peer_of(r, c);
	uint32_t age = c->connecting ? 0 : c->sent_ms;

	if (!p)
		return;
	if (p->last_look != r->looks) {
		p->last_look = r->looks;
		p->looks++;
	}
	if (for_inbound && p->last_inbound != r->looks) {
		p->last_inbound = r->looks;
		p->for_inbound++;
	}
	p->requests++;
	p->age_ms += age;
	if (age > p->oldest_ms)
		p->oldest_ms = age;
	if (k)
		k->peer = (int32_t)(p - r->peers);
}

/* A request that waits in the program. */
static bool waits_here(const struct tcp_conn *c, const struct request_conn *k)
{
	return c->data_in && !sent_last(c, k) && !(k && k->only_in >= ONE_WAY);
}

static bool is_outstanding(const struct tcp_conn *c, const struct request_conn *k)
{
	return c->connecting || (!c->unread && sent_last(c, k) && !(k && k->only_out >= ONE_WAY));
}

static struct request_conn *know(struct requests *r, const struct tcp_conn *c)
{
	bool is_new;
	struct request_conn *k = remember(r, c, &is_new);

	if (!k)
		return NULL;
	k->look = r->looks;
	if (k->peer >= 0 && c->data_in != k->data_in) {
		r->peers[k->peer].answers++;
		k->peer = -1;
	}
	count_turns(k, c);
	count_bare(k, c);
	return k;
}

/* Connections that have ended: those to which a request was outstanding, with its answer. */
static void forget(struct requests *r)
{
	struct request_conn *k, *next;

	HASH_ITER (hh, r->conns, k, next) {
		if (k->look == r->looks)
			continue;
		if (k->peer >= 0)
			r->peers[k->peer].answers++;
		HASH_DEL(r->conns, k);
		free(k);
	}
}

void requests_look(struct requests *r, struct tcp_conn *conns, uint32_t n, uint64_t now_ms)
{
	uint32_t accepted = 0, oldest_ms = 0, waiting = 0;
	uint64_t since_ms;
	bool held = false;

	if (!r->looks++)
		r->first_ms = now_ms;
	since_ms = now_ms - r->first_ms;
	if (n)
		qsort(conns, n, sizeof(*conns), by_ends);
	while (accepted < n && conns[accepted].accepted) {
		const struct tcp_conn *c = &conns[accepted++];

		if (!waits_here(c, know(r, c)) || c->recv_ms > since_ms)
			continue;
		if (!r->port)
			r->port = c->local_port;
		waiting++;
		if (c->recv_ms > oldest_ms)
			oldest_ms = c->recv_ms;
	}
	for (uint32_t i = accepted; i < n; i++) {
		const struct tcp_conn *c = &conns[i];
		struct request_conn *k = know(r, c);
		bool for_inbound;

		if (!is_outstanding(c, k) || is_within(c, conns, accepted))
			continue;
		for_inbound = waiting && (c->connecting || (c->sent_ms <= oldest_ms + JIFFIES_MS &&
							    c->sent_ms <= since_ms));
		count_request(r, k, c, for_inbound);
		held = held || for_inbound;
	}
	forget(r);
	r->waiting += waiting > 0;
	r->inbound += waiting;
	r->held += held;
	if (n > CONNS_MAX && n - CONNS_MAX > r->left_out)
		r->left_out = n - CONNS_MAX;
}

void requests_free(struct requests *r)
{
	hash_free(r->conns);
}
