#include "collect/stream/alloc_table.h"

#include "base/hash.h"
#include "collect/wire.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(ALLOC_LIVES == MS_LIFE_CLASSES, "one list of lifetimes");
_Static_assert(ALLOC_SIZES == MS_SIZE_CLASSES, "one list of sizes");

/* So many free records in a row end a reading: there are no used ones behind them. The kernel takes
 * free records in order; freed ones go to the end of its queue. */
#define HOLE 256

enum record_state {
	RECORD_FREE,
	RECORD_USED,
	RECORD_CLOSED, /* not found by its key any more */
	RECORD_ENDED,  /* neither, and fully reported */
};

/* What has been reported of a record. */
struct reported {
	uint64_t values[SITE_PEAK_OBJECTS], untracked, untracked_bytes;
	uint8_t state; /* enum record_state */
	bool idle;     /* had nothing to report at the last reading */
	/* Of a root: */
	bool late; /* a site of its image waits for its stack               */
	bool gone; /* its image had gone before this sweep                  */
	bool lost; /* it had gone before the last one, and a site still waited*/
};

/* Of a site whose record was reused while its process lived: it held nothing then. */
struct past_peak {
	struct ms_alloc_key key;
	uint32_t root;
	uint64_t cgroup_id, peaks_seen;
	int64_t objects, bytes;
};

struct alloc_table {
	struct alloc_table_fns fns;
	struct ms_alloc_site *sites;
	size_t mapped;   /* bytes; 0: not ours */
	uint32_t n, end; /* records; one past the last ever seen in use */
	uint32_t n_used;
	int index_fd, free_fd, sizes_fd, n_cpus;
	struct reported *reported;
	struct past_peak *past;
	uint32_t n_past, cap_past;
};

struct alloc_table *alloc_table_over(void *records, uint32_t n, const struct alloc_table_fns *fns)
{
	struct alloc_table *t = calloc(1, sizeof(*t));
	struct reported *reported = calloc(n, sizeof(*reported));

	if (!t || !reported) {
		free(t);
		free(reported);
		return NULL;
	}
	*t = (struct alloc_table){
		.fns = *fns,
		.sites = records,
		.n = n,
		.end = 1,
		.index_fd = -1,
		.free_fd = -1,
		.sizes_fd = -1,
		.reported = reported,
	};
	return t;
}

int alloc_table_open(const struct session *s, const struct alloc_table_fns *fns,
		     struct alloc_table **ret_table, struct err *e)
{
	uint32_t n = session_map_max(s, SESSION_ALLOC_SITES);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (n * sizeof(struct ms_alloc_site) + page - 1) & ~(page - 1);
	_cleanup_(alloc_table_closep) struct alloc_table *t = alloc_table_over(NULL, n, fns);
	void *at;

	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->index_fd = session_map_fd(s, SESSION_ALLOC_INDEX);
	t->free_fd = session_map_fd(s, SESSION_ALLOC_FREE);
	t->sizes_fd = session_map_fd(s, SESSION_ALLOC_SIZES);
	t->n_cpus = libbpf_num_possible_cpus();
	if (t->n_cpus <= 0)
		return err_set(e, -EINVAL, "the number of CPUs is not known");
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		  session_map_fd(s, SESSION_ALLOC_SITES), 0);
	if (at == MAP_FAILED)
		return err_set(e, -errno, "cannot map the table of allocation sites: %s",
			       strerror(errno));
	t->sites = at;
	t->mapped = bytes;
	for (uint32_t i = 1; i < t->n; i++)
		if (bpf_map_update_elem(t->free_fd, NULL, &i, BPF_ANY) < 0)
			return err_set(e, -errno, "cannot fill the list of free sites: %s",
				       strerror(errno));
	*ret_table = TAKE_PTR(t);
	return 0;
}

void alloc_table_close(struct alloc_table *t)
{
	if (!t)
		return;
	if (t->mapped)
		munmap(t->sites, t->mapped);
	free(t->reported);
	free(t->past);
	free(t);
}

/* Programs may be writing: each number is read whole, and none is older than those read before it. */
static uint64_t now(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static bool is_root(const struct ms_alloc_site *site)
{
	return !site->key.user.lo && site->key.user.hi == MS_ROOT_STACK.hi;
}

static uint64_t live_objects(const struct ms_alloc_site *site)
{
	uint64_t gone = now(&site->frees) + now(&site->cross_frees) + now(&site->untracked);

	return now(&site->allocs) - gone;
}

/* A record's values, as in reported.values; for a root, frees by any thread are cross frees. */
static void read_values(const struct ms_alloc_site *site, uint64_t *v, uint64_t *ret_untracked,
			uint64_t *ret_untracked_bytes)
{
	uint64_t cross = now(&site->cross_frees);

	for (int i = 0; i < ALLOC_LIVES; i++)
		v[SITE_LIVES + i] = now(&site->lives[i]);
	v[SITE_TEMPORARY] = now(&site->temporary);
	v[SITE_LIFE_NS] = now(&site->life_ns);
	v[SITE_CROSS] = is_root(site) ? 0 : cross;
	v[SITE_FREED] = now(&site->frees) + cross;
	v[SITE_FREED_BYTES] = now(&site->freed_bytes) + now(&site->cross_bytes);
	*ret_untracked = now(&site->untracked);
	*ret_untracked_bytes = now(&site->untracked_bytes);
	v[SITE_OBJECTS] = now(&site->allocs);
	v[SITE_BYTES] = now(&site->bytes);
}

#define LATE 1

/* LATE: it has to be reported again. */
static int report(struct alloc_table *t, uint32_t ix)
{
	const struct ms_alloc_site *site = &t->sites[ix];
	struct reported *reported = &t->reported[ix];
	uint64_t v[SITE_PEAK_OBJECTS], untracked, untracked_bytes;
	int64_t more[N_SITE_VALUES] = {};
	bool changed;
	int r;

	if (!now(&site->allocs)) {
		reported->idle = true;
		return 0;
	}
	read_values(site, v, &untracked, &untracked_bytes);
	changed = untracked != reported->untracked;
	for (int i = 0; i < SITE_PEAK_OBJECTS; i++) {
		more[i] = (int64_t)(v[i] - reported->values[i]);
		changed |= more[i] != 0;
	}
	reported->idle = !changed;
	if (!changed)
		return 0;
	r = t->fns.site(t->fns.ctx, wire_site_key(&site->key), site->cgroup_id, more,
			(int64_t)(untracked - reported->untracked),
			(int64_t)(untracked_bytes - reported->untracked_bytes),
			t->reported[site->root].lost);
	if (r < 0)
		return r == -EAGAIN ? LATE : r;
	memcpy(reported->values, v, sizeof(v));
	reported->untracked = untracked;
	reported->untracked_bytes = untracked_bytes;
	return 0;
}

static int end_site(struct alloc_table *t, uint32_t ix)
{
	const struct ms_alloc_site *site = &t->sites[ix], *root = &t->sites[site->root];
	int64_t v[N_SITE_VALUES] = {};
	bool noted = site->peaks_seen == root->peaks;

	v[SITE_LIVE_OBJECTS] = (int64_t)live_objects(site);
	v[SITE_LIVE_BYTES] = (int64_t)(site->bytes - site->freed_bytes - site->cross_bytes -
				       site->untracked_bytes);
	v[SITE_PEAK_OBJECTS] = noted ? (int64_t)site->peak_objects : v[SITE_LIVE_OBJECTS];
	v[SITE_PEAK_BYTES] = noted ? (int64_t)site->peak_bytes : v[SITE_LIVE_BYTES];
	if (!v[SITE_LIVE_OBJECTS] && !v[SITE_PEAK_OBJECTS])
		return 0;
	return t->fns.end(t->fns.ctx, wire_site_key(&site->key), site->cgroup_id, v);
}

/* --- records that are reused --- */

static void prune_past(struct alloc_table *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_past; i++)
		if (t->past[i].peaks_seen == now(&t->sites[t->past[i].root].peaks))
			t->past[n++] = t->past[i];
	t->n_past = n;
}

static int keep_peak(struct alloc_table *t, uint32_t ix)
{
	const struct ms_alloc_site *site = &t->sites[ix];

	if (!site->peak_objects || site->peaks_seen != now(&t->sites[site->root].peaks))
		return 0;
	if (t->n_past == t->cap_past)
		prune_past(t);
	if (t->n_past >= t->cap_past / 2) {
		uint32_t cap = t->cap_past ? t->cap_past * 2 : 64;
		struct past_peak *more = realloc(t->past, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->past = more;
		t->cap_past = cap;
	}
	t->past[t->n_past++] = (struct past_peak){ site->key,
						   site->root,
						   site->cgroup_id,
						   site->peaks_seen,
						   (int64_t)site->peak_objects,
						   (int64_t)site->peak_bytes };
	return 0;
}

/* Reports what reused records held at the peak of the image of `root`. */
static int end_past(struct alloc_table *t, uint32_t root)
{
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = 0; i < t->n_past; i++) {
		struct past_peak *p = &t->past[i];
		int64_t v[N_SITE_VALUES] = {
			[SITE_PEAK_OBJECTS] = p->objects,
			[SITE_PEAK_BYTES] = p->bytes,
		};

		if (p->root != root)
			t->past[n++] = *p;
		else if (r == 0 && p->peaks_seen == t->sites[root].peaks)
			r = t->fns.end(t->fns.ctx, wire_site_key(&p->key), p->cgroup_id, v);
	}
	t->n_past = n;
	return r;
}

static int end_image(struct alloc_table *t, uint32_t root)
{
	const struct ms_alloc_site *site = &t->sites[root];
	struct table_image image = { wire_id(&site->key.proc), site->highest, site->highest_ns };
	int r = end_past(t, root);

	t->fns.image(t->fns.ctx, &image);
	return r;
}

static void give_away(struct alloc_table *t, uint32_t ix)
{
	memset(&t->sites[ix], 0, sizeof(t->sites[ix]));
	memset(&t->reported[ix], 0, sizeof(t->reported[ix]));
	t->n_used--;
	bpf_map_update_elem(t->free_fd, NULL, &ix, BPF_ANY);
}

static void close_record(struct alloc_table *t, uint32_t ix, enum record_state state)
{
	if (t->reported[ix].state == RECORD_USED)
		bpf_map_delete_elem(t->index_fd, &t->sites[ix].key);
	__atomic_store_n(&t->sites[ix].closed, 1, __ATOMIC_RELEASE);
	t->reported[ix].state = (uint8_t)state;
}

/* A used record that had nothing to report this time, and holds nothing. */
static bool is_over(const struct alloc_table *t, uint32_t ix)
{
	const struct ms_alloc_site *site = &t->sites[ix];

	return t->reported[ix].idle && !is_root(site) && !live_objects(site);
}

static int reuse(struct alloc_table *t, uint32_t ix)
{
	int r;

	switch ((enum record_state)t->reported[ix].state) {
	case RECORD_USED:
		if (t->n_used > t->n / 4 * 3 && is_over(t, ix))
			close_record(t, ix, RECORD_CLOSED);
		return 0;
	case RECORD_CLOSED:
		if (!is_over(t, ix))
			return 0;
		r = keep_peak(t, ix);
		if (r == 0)
			give_away(t, ix);
		return r;
	case RECORD_ENDED:
		give_away(t, ix);
		return 0;
	default:
		return 0;
	}
}

/* --- reading --- */

static bool in_use(const struct ms_alloc_site *site)
{
	return __atomic_load_n(&site->key.proc.tgid, __ATOMIC_ACQUIRE) != 0;
}

static void find_used(struct alloc_table *t, uint32_t hole)
{
	for (uint32_t i = t->end; i < t->n && i - t->end < hole; i++)
		if (in_use(&t->sites[i]))
			t->end = i + 1;
}

static int read_records(struct alloc_table *t, uint32_t hole)
{
	int r = 0;

	find_used(t, hole);
	for (uint32_t ix = 1; ix < t->end && r == 0; ix++) {
		struct reported *reported = &t->reported[ix];

		if (!in_use(&t->sites[ix]))
			continue;
		if (reported->state == RECORD_FREE) {
			reported->state = RECORD_USED;
			t->n_used++;
		}
		if (reported->state != RECORD_ENDED)
			r = report(t, ix);
		if (r == LATE) {
			t->reported[t->sites[ix].root].late = true;
			r = 0;
		}
	}
	return r;
}

int alloc_table_read(struct alloc_table *t)
{
	int r = read_records(t, HOLE);

	for (uint32_t ix = 1; ix < t->end && r == 0; ix++)
		r = reuse(t, ix);
	return r;
}

/* Of `roots`, or of all other sites: these need their root's values, and come first. */
static int end_gone(struct alloc_table *t, bool roots)
{
	int r = 0;

	for (uint32_t ix = 1; ix < t->end && r == 0; ix++) {
		const struct ms_alloc_site *site = &t->sites[ix];
		uint8_t state = t->reported[ix].state;

		if ((state != RECORD_USED && state != RECORD_CLOSED) || is_root(site) != roots ||
		    t->reported[site->root].late || !t->reported[site->root].gone)
			continue;
		r = end_site(t, ix);
		if (r == 0 && roots)
			r = end_image(t, ix);
		close_record(t, ix, RECORD_ENDED);
	}
	return r;
}

/* Before they are read, so that the values read for images that have gone are final. */
static void find_gone(struct alloc_table *t, bool all_here)
{
	find_used(t, HOLE);
	for (uint32_t ix = 1; ix < t->end; ix++) {
		const struct ms_alloc_site *site = &t->sites[ix];
		struct reported *reported = &t->reported[ix];
		struct proc_id id;

		if (!in_use(site) || !is_root(site))
			continue;
		reported->lost |= all_here && reported->gone && reported->late;
		id = wire_id(&site->key.proc);
		reported->gone = t->fns.gone(t->fns.ctx, &id);
		reported->late = false;
	}
}

int alloc_table_sweep(struct alloc_table *t, bool all_here)
{
	int r;

	find_gone(t, all_here);
	r = read_records(t, HOLE);
	if (r == 0)
		r = end_gone(t, false);
	return r == 0 ? end_gone(t, true) : r;
}

int alloc_table_finish(struct alloc_table *t, uint32_t n)
{
	int r = read_records(t, n);

	for (uint32_t ix = 1; ix < t->end && r == 0; ix++)
		if (t->reported[ix].state == RECORD_USED || t->reported[ix].state == RECORD_CLOSED)
			r = end_site(t, ix);
	for (uint32_t ix = 1; ix < t->end && r == 0; ix++)
		if (t->reported[ix].state == RECORD_USED && is_root(&t->sites[ix]))
			r = end_image(t, ix);
	return r;
}

const struct site_key *alloc_table_key(const struct alloc_table *t, uint32_t site,
				       const struct proc_id *proc)
{
	struct ms_proc of = wire_proc(proc);

	if (!site || site >= t->n || !in_use(&t->sites[site]) ||
	    memcmp(&t->sites[site].key.proc, &of, sizeof(of)) != 0)
		return NULL;
	return wire_site_key(&t->sites[site].key);
}

bool alloc_table_filling(const struct alloc_table *t)
{
	return t->n_used > t->n / 2;
}

void alloc_table_sizes(const struct alloc_table *t, uint64_t *ret_sizes)
{
	uint64_t *slots = calloc((size_t)t->n_cpus, sizeof(*slots));

	memset(ret_sizes, 0, ALLOC_SIZES * sizeof(*ret_sizes));
	for (uint32_t i = 0; slots && i < ALLOC_SIZES; i++)
		for (int cpu = 0;
		     bpf_map_lookup_elem(t->sizes_fd, &i, slots) == 0 && cpu < t->n_cpus; cpu++)
			ret_sizes[i] += slots[cpu];
	free(slots);
}
