#include "collect/stream/lock_waits.h"
#include "base/cleanup.h"
#include "collect/wire.h"
#include "lock_words.h"
#include "proc/peek.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define ASKED_MAX 4096 /* threads that waited since before the run: some 20 us each */

struct lock_waits {
	const struct drain *drain;
	const uint64_t *end_ns;
	lock_event_fn fn;
	void *ctx;
	uint32_t asked;
};

const char *lock_waits_kind(uint64_t lock)
{
	static const char *const kinds[] = {
		[MS_LOCK_OTHER] = "",     [MS_LOCK_MUTEX] = "mutex", [MS_LOCK_RWLOCK] = "rwlock",
		[MS_LOCK_WORD] = "futex", [MS_LOCK_GIL] = "GIL",
	};

	return lock_kind(lock) < MS_N_LOCK_KINDS ? kinds[lock_kind(lock)] : "";
}

uint64_t lock_waits_address(uint64_t lock)
{
	return lock & MS_LOCK_ADDR_MASK;
}

/* `key`: user stack, process and thread; `lock` as bpf/lock_words.h has it. */
static void hand_on(const struct lock_waits *l, const struct ms_total_key *key, uint64_t lock,
		    uint32_t owner, struct lock_event event)
{
	struct ms_total_key at = *key;

	at.kernel = (struct ms_hash){ 0, 0 };
	at.tid = 0;
	at.source = MS_OFFCPU;
	at.state = MS_STATE_NONE;
	at.bucket = 0;
	event.at = wire_event(&at);
	event.proc = wire_id(&key->proc);
	event.lock = lock & MS_LOCK_ADDR_MASK;
	event.kind = lock_waits_kind(lock);
	event.tid = key->tid;
	event.owner = owner;
	l->fn(l->ctx, &event);
}

static enum drain_says on_total(void *ctx, const void *record, const void *more)
{
	const struct ms_total_key *key = more;
	const struct ms_total *total = record;

	if (key->source != MS_LOCKS)
		return DRAIN_NEXT;
	hand_on(ctx, key, key->kernel.lo, (uint32_t)key->kernel.hi,
		(struct lock_event){ .hold = key->state == MS_LOCK_HOLD,
				     .count = total->count,
				     .ns = total->value });
	return DRAIN_TAKEN;
}

bool futex_args_parse(const char *line, struct futex_args *ret_args)
{
	uint64_t arg[3];
	long nr;

	if (sscanf(line, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64, &nr, &arg[0], &arg[1], &arg[2]) !=
		    4 ||
	    (nr != SYS_futex && nr != NR_FUTEX_WAIT))
		return false;
	if (nr == NR_FUTEX_WAIT) {
		*ret_args = (struct futex_args){ arg[0], FUTEX_OP_WAIT, (uint32_t)arg[1] };
		return true;
	}
	*ret_args = (struct futex_args){ arg[0], (uint32_t)arg[1], (uint32_t)arg[2] };
	return true;
}

static bool read_args(const struct ms_thread *t, uint32_t tid, struct futex_args *ret_args)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/syscall", t->proc.tgid,
		 tid);
	f = fopen(path, "re");
	return f && fgets(line, sizeof(line), f) && futex_args_parse(line, ret_args);
}

/* What a thread that has been blocked since before the run waits for now. 0: nothing that is known. */
static uint64_t ask(struct lock_waits *l, const struct ms_thread *t, uint32_t tid,
		    uint32_t *ret_owner)
{
	uint32_t words[LOCK_WORDS];
	struct futex_args args;

	if (t->since_ns != t->first_ns || l->asked++ >= ASKED_MAX || !read_args(t, tid, &args) ||
	    !lock_is_wanted(args.op, args.expected))
		return 0;
	if (!peek((pid_t)t->proc.tgid, lock_words_of_futex(args.futex), words, sizeof(words)))
		return 0;
	return lock_recognize(args.futex, args.op, args.expected, words, ret_owner);
}

/* A wait that goes on when the run has ended is in no total. */
static enum drain_says on_thread(void *ctx, const void *record, const void *more)
{
	const struct ms_thread *t = record;
	const uint32_t *tid = more;
	struct lock_waits *l = ctx;
	uint64_t end_ns = drain_wait_clock(l->drain, *l->end_ns), lock = t->lock;
	uint32_t owner = t->owner;
	struct ms_total_key key = {
		.proc = t->proc, .user = t->user, .tid = *tid, .as_gen = t->as_gen
	};

	if (t->state != MS_RUN_BLOCKED || t->wake_ns || end_ns <= t->since_ns)
		return DRAIN_NEXT;
	if (!lock)
		lock = ask(l, t, *tid, &owner);
	if (lock)
		hand_on(l, &key, lock, owner,
			(struct lock_event){
				.open = true, .count = 1, .ns = end_ns - t->since_ns });
	if (t->owned)
		hand_on(l, &key, t->owned, t->ns_tid,
			(struct lock_event){ .hold = true,
					     .open = true,
					     .count = 1,
					     .ns = end_ns - (t->owned_ns > t->since_ns
								     ? t->owned_ns
								     : t->since_ns) });
	return DRAIN_NEXT;
}

struct lock_waits *lock_waits_new(struct drain *d, const uint64_t *end_ns, lock_event_fn fn,
				  void *ctx)
{
	struct lock_waits *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->drain = d;
	l->end_ns = end_ns;
	l->fn = fn;
	l->ctx = ctx;
	drain_on(d, DRAIN_TOTAL, on_total, l);
	drain_on(d, DRAIN_THREAD, on_thread, l);
	return l;
}

void lock_waits_free(struct lock_waits *l)
{
	free(l);
}
