#include "run/output/profile_ring.h"

#include "base/clock.h"
#include "model/merge.h"
#include "run/run.h"

#include <errno.h>
#include <string.h>

#define PARTS        6  /* of the time before a trigger: by a part it may be longer       */
#define SLOTS        64 /* each trigger ends a part, too                                  */
#define PART_LEAST_S 0.5
#define SAMPLE_BYTES 64 /* of a profile: what it is known by, and its place in the table  */

struct slot {
	struct profile_now now;
	struct profile_begin begin; /* what there was when it began */
	uint64_t bytes;
};

struct profile_ring {
	struct slot slots[SLOTS]; /* oldest first */
	uint32_t n;
	struct profile_since since;
	uint64_t part_ns, due_ns, before_ns, bytes;
	struct profile_ring_stats stats;
};

struct profile_ring *profile_ring_new(double before_s, uint64_t max_bytes)
{
	struct profile_ring *ring = calloc(1, sizeof(*ring));
	double part_s = before_s / PARTS;

	if (!ring)
		return NULL;
	if (part_s < PART_LEAST_S)
		part_s = PART_LEAST_S;
	ring->before_ns = (uint64_t)(before_s * 1e9);
	ring->part_ns = (uint64_t)(part_s * 1e9);
	ring->due_ns = now_ns() + ring->part_ns;
	ring->stats.max_bytes = max_bytes;
	return ring;
}

static void drop_oldest(struct profile_ring *ring)
{
	profile_now_fini(&ring->slots[0].now);
	ring->bytes -= ring->slots[0].bytes;
	memmove(ring->slots, ring->slots + 1, --ring->n * sizeof(*ring->slots));
}

void profile_ring_free(struct profile_ring *ring)
{
	while (ring && ring->n)
		drop_oldest(ring);
	if (ring)
		profile_since_fini(&ring->since);
	free(ring);
}

uint64_t profile_ring_due(const struct profile_ring *ring)
{
	return ring->due_ns;
}

static uint64_t bytes_of(const struct profile_now *now)
{
	uint64_t sum = 0;

	for (int i = 0; i < profile_kinds(); i++)
		if (now->profiles[i])
			sum += profile_error_bytes(now->profiles[i]) +
			       profile_n_samples(now->profiles[i]) *
				       (SAMPLE_BYTES +
					sizeof(int64_t) * profile_n_types(now->profiles[i]));
	return sum;
}

/* Those that ended before what is to be kept; and the oldest, as long as there is no room. */
static void make_room(struct profile_ring *ring, uint64_t ns)
{
	while (ring->n && ring->slots[0].now.end_ns + ring->before_ns < ns)
		drop_oldest(ring);
	if (ring->n == SLOTS || ring->bytes > ring->stats.max_bytes)
		ring->stats.cut_short++;
	while (ring->n && (ring->n == SLOTS || ring->bytes > ring->stats.max_bytes))
		drop_oldest(ring);
}

/* The slot is the ring's from now on. */
static void put(struct profile_ring *ring, struct slot *slot)
{
	uint64_t end_ns = slot->now.end_ns;

	slot->bytes = bytes_of(&slot->now);
	make_room(ring, end_ns);
	ring->slots[ring->n++] = *slot;
	ring->bytes += slot->bytes;
	if (ring->bytes > ring->stats.peak_bytes)
		ring->stats.peak_bytes = ring->bytes;
	make_room(ring, end_ns);
}

int profile_ring_turn(struct profile_ring *ring, struct run *r, struct err *e)
{
	struct slot slot = { .begin = ring->since.begin };
	int rc;

	ring->since.no_live = true;
	rc = pipeline_now(r, &ring->since, &slot.now, e);
	ring->due_ns = now_ns() + ring->part_ns;
	if (rc == 0)
		put(ring, &slot);
	return rc;
}

/* Without what is live: that is of its moment alone. */
static int copy_profile(enum profile_kind kind, const struct profile *from, struct profile **ret)
{
	_cleanup_(profile_freep) struct profile *copy =
		profile_new(profile_dict(from), profile_type(from, 0), profile_n_types(from));

	for (uint32_t i = 0; copy && i < profile_n_samples(from); i++) {
		struct profile_sample s = profile_sample(from, i);
		int64_t values[PROFILE_MAX_TYPES] = { 0 };
		uint32_t n = kind == PROFILE_HEAP ? 2 : profile_n_types(from);

		memcpy(values, s.values, n * sizeof(*values));
		if (profile_add(copy, s.stack, s.labels, values) < 0)
			return -ENOMEM;
		for (uint32_t k = 0; k < n; k++) {
			struct value_error error;

			if (profile_error(&s, k, &error) &&
			    profile_add_error(copy, s.stack, s.labels, k, &error) < 0)
				return -ENOMEM;
		}
	}
	*ret = TAKE_PTR(copy);
	return *ret ? 0 : -ENOMEM;
}

static int copy_now(const struct profile_now *from, struct profile_now *ret)
{
	int rc = 0;

	*ret = *from;
	memset(ret->profiles, 0, sizeof(ret->profiles));
	for (int i = 0; rc == 0 && i < profile_kinds(); i++)
		if (from->profiles[i])
			rc = copy_profile((enum profile_kind)i, from->profiles[i],
					  &ret->profiles[i]);
	return rc;
}

/* What came before to what came since. */
static int add_slots(const struct profile_ring *ring, struct profile_now *now)
{
	int rc = 0;

	for (uint32_t k = 0; k < ring->n; k++)
		for (int i = 0; rc == 0 && i < profile_kinds(); i++)
			if (now->profiles[i] && ring->slots[k].now.profiles[i])
				rc = profile_add_all(now->profiles[i],
						     ring->slots[k].now.profiles[i], NULL, 1);
	return rc;
}

int profile_ring_take(struct profile_ring *ring, struct run *r, struct profile_now *ret_now,
		      struct err *e)
{
	struct slot fresh = { .begin = ring->since.begin };
	struct profile_now now;
	int rc;

	make_room(ring, r->clock.end_ns ? r->clock.end_ns : now_ns());
	if (ring->n) /* what it says of itself is of all */
		ring->since.begin = ring->slots[0].begin;
	ring->since.no_live = false;
	rc = pipeline_now(r, &ring->since, &now, e);
	if (rc < 0)
		return rc;
	ring->due_ns = now_ns() + ring->part_ns;
	rc = copy_now(&now, &fresh.now); /* another trigger may want it, too */
	if (rc == 0)
		rc = add_slots(ring, &now);
	if (rc == 0 && r->cfg->every_s <= 0)
		rc = pipeline_times(r, &now);
	if (rc < 0) {
		profile_now_fini(&fresh.now);
		profile_now_fini(&now);
		return err_set(e, rc, "out of memory for a window");
	}
	put(ring, &fresh);
	*ret_now = now;
	return 0;
}

void profile_ring_stats(const struct profile_ring *ring, struct profile_ring_stats *ret_stats)
{
	*ret_stats = ring->stats;
}
