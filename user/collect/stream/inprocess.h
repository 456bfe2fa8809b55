/*
 * Allocations that memscope's library records in the process itself (preload/exact_area.h): sizes
 * and fills the area that both share, reads it, and reports as alloc_table.h does.
 *
 * The process can write to the area, so nothing in it is trusted: it is copied first, and every
 * number that leads somewhere is checked. What a process could falsify is its own profile.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_INPROCESS_H
#define MEMSCOPE_COLLECT_STREAM_INPROCESS_H

#include "collect/session/bpf_session.h"
#include "collect/stream/alloc_table.h"
#include "collect/stream/drain.h"
#include "collect/stream/ingest.h"

struct inprocess;

/*
 * `area_fd`: the library's memfd, empty; borrowed. `bytes`: what the area may take, most of it for
 * live blocks. `s`: has the unwind tables; NULL: stacks are not walked. -EAGAIN: the process has no unwind tables. `fns` is
 * copied; what else is given must outlive it.
 */
int inprocess_new(struct session *s, struct ingest *in, pid_t pid, int area_fd, uint64_t bytes,
		  const struct alloc_table_fns *fns, struct inprocess **ret_ip, struct err *e);
void inprocess_free(struct inprocess *ip);
DEFINE_CLEANUP(struct inprocess *, inprocess_freep, inprocess_free)

/* Calls are recorded, or not, from now on. */
void inprocess_gate(struct inprocess *ip, bool open);
/* Hands on unwind tables that have changed, and makes room ahead. Now and then. */
void inprocess_tick(struct inprocess *ip, uint64_t now_ns);
/* All that was recorded since the last time. 0, or what a function returned other than -EAGAIN. */
int inprocess_read(struct inprocess *ip);
/* Blocks that are live now, as the table has them; `site` of a block is for inprocess_site(). */
typedef void (*inprocess_block_fn)(void *ctx, const struct drain_block *block);
void inprocess_blocks(const struct inprocess *ip, inprocess_block_fn fn, void *ctx);
/* The site of a block of that image; NULL: it is another's. */
const struct site_key *inprocess_site(const struct inprocess *ip, uint32_t site, const struct proc_id *proc);
/* Ends it, once nothing is recorded any more. `block` is called for what is live. */
int inprocess_finish(struct inprocess *ip,
		     int (*block)(void *ctx, const struct site_key *site, uint64_t size,
				  uint64_t born_ns),
		     void *ctx);

struct inprocess_stats {
	uint64_t failed, unknown_frees, reused;
	uint64_t full, full_bytes; /* blocks that found no room                                */
	uint64_t sites_full;       /* calls whose stack found none                             */
	uint64_t missed;           /* calls that a handler left or met, or of a thread too many */
	uint64_t timed, timed_ns;  /* some calls, and how long recording them took             */
	uint64_t calls;            /* recorded: allocations and frees                          */
	uint32_t room;             /* for blocks                                               */
	bool no_tables;            /* some unwind tables found no room                         */
	bool filtered;             /* the process has come under seccomp, or under more of it  */
	const char *unread;        /* a language whose frames are not in the stacks; NULL: there is none */
	uint64_t sizes[ALLOC_SIZES];
	uint64_t verdicts[N_STACK_VERDICTS]; /* allocations by how their stack ended */
};
void inprocess_stats(const struct inprocess *ip, struct inprocess_stats *ret_stats);

#endif
