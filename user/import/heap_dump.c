/*
 * Heap dumps as text, in the two forms that allocators write:
 *
 *   heap_v2/524288                                 jemalloc: R, the mean bytes between samples
 *     t*: 28: 4096 [30: 5000]                      all stacks: live [allocated], objects: bytes
 *     t0: …                                        each thread
 *   @ 0x55d0 0x7f12                                a stack, leaf first, return addresses
 *     t*: 28: 4096 [30: 5000]
 *     t0: …
 *
 *   heap profile: 28: 4096 [30: 5000] @ heap_v2/524288    gperftools, tcmalloc, older jemalloc
 *     28: 4096 [30: 5000] @ 0x55d0 0x7f12
 *
 *   MAPPED_LIBRARIES:                              both: a copy of /proc/PID/maps
 *
 * (jemalloc: prof_data.c, jemalloc(3) "HEAP PROFILE FORMAT"; gperftools: heap-profile-table.cc,
 * malloc_extension.cc.) A line is what one stack has. Where R is given its figures are of samples:
 * an allocation of s bytes is in with probability p = 1 - exp(-s/R), so the line stands for 1/p times
 * its objects and its bytes, with s their mean. That is done line by line, before anything is added
 * up: jemalloc writes figures that only come out right like this. The lines of threads are left out:
 * the one of all threads is not their sum.
 *
 * After the @ of the header: `heapprofile` counts every allocation; `heap_v2/R`, `heapz_v2/R` are
 * samples; `heap/R` too, its R twice the mean (so does pprof; jeprof has an older, coarser rule
 * for it); `growth`, `growthz` are what the heap grew by.
 */
#include "base/chunks.h"
#include "base/grow.h"
#include "base/hash.h"
#include "import/mapped.h"
#include "import/scan.h"

#include <math.h>

enum {
	MAX_FRAMES = 1 << 16,
	DEFAULT_RATE = 128 << 10, /* of a `heap_v2` without one, as jeprof takes it */
};

enum { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, N_VALUES };

static const struct value_type heap_types[N_VALUES] = {
	{ "alloc_objects", "count" },
	{ "alloc_space", "bytes" },
	{ "inuse_objects", "count" },
	{ "inuse_space", "bytes" },
};

static const struct value_type growth_types[] = { { "objects", "count" }, { "space", "bytes" } };

/*
 * What a stack stands for, not yet rounded: tcmalloc writes a line for each sample, and 244 times 1.66
 * objects are not 488.
 */
struct sum {
	stack_id stack;
	double values[N_VALUES];
	UT_hash_handle hh;
};

struct dump {
	struct dict *d;
	struct mapped mapped;
	struct chunks sums;
	struct sum *by_stack;
	bool threaded, growth;
	double rate; /* 0: every allocation is counted */
	location_id *frames;
	uint32_t n_frames, cap_frames;
	bool has_stack; /* threaded: a @ was read, its t*: not yet */
	bool has_accum; /* some line says what was ever allocated  */
	uint64_t bad, good;
};

static void dump_fini(struct dump *dump)
{
	mapped_fini(&dump->mapped);
	HASH_CLEAR(hh, dump->by_stack);
	chunks_free(&dump->sums);
	free(dump->frames);
}

bool heap_dump_recognise(struct bytes data)
{
	struct bytes line;

	return bytes_line(&data, &line) &&
	       (scan_text(&line, "heap_v2/") || scan_text(&line, "heap profile:"));
}

/* "1: 2 [3: 4]", as live objects and bytes, then those ever allocated. */
static bool take_counts(struct bytes *b, int64_t live[2], int64_t ever[2])
{
	return scan_number(b, &live[0]) && scan_text(b, ":") && scan_number(b, &live[1]) &&
	       scan_text(b, "[") && scan_number(b, &ever[0]) && scan_text(b, ":") &&
	       scan_number(b, &ever[1]) && scan_text(b, "]");
}

/* "heap_v2/524288" and its kin, after the @ of the header. False: another kind. */
static bool take_kind(struct dump *dump, struct bytes b)
{
	static const struct {
		const char *name;
		double rate_unit; /* 0: not sampled */
		bool growth;
	} kinds[] = {
		{ "heapprofile", 0, false }, { "heapz_v2", 1, false }, { "heap_v2", 1, false },
		{ "heap", 0.5, false },      { "growthz", 0, true },   { "growth", 0, true },
	};
	int64_t rate = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct bytes rest = b;

		if (!scan_text(&rest, kinds[i].name))
			continue;
		if (scan_text(&rest, "/") && !scan_number(&rest, &rate))
			return false;
		if (scan_trim(rest).len || rate < 0)
			continue;
		dump->growth = kinds[i].growth;
		if (kinds[i].rate_unit > 0)
			dump->rate = rate ? (double)rate * kinds[i].rate_unit : DEFAULT_RATE;
		return true;
	}
	return false;
}

static bool take_header(struct dump *dump, struct bytes line)
{
	int64_t live[2], ever[2], rate;

	if (scan_text(&line, "heap_v2/")) {
		dump->threaded = true;
		if (!scan_number(&line, &rate) || rate < 0 || scan_trim(line).len)
			return false;
		dump->rate = (double)rate;
		return true;
	}
	if (!scan_text(&line, "heap profile:") || !take_counts(&line, live, ever))
		return false;
	return !scan_trim(line).len || (scan_text(&line, "@") && take_kind(dump, line));
}

static int64_t rounded(double x)
{
	return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)llround(x);
}

/* How many times its samples a line stands for. */
static double unbias(const struct dump *dump, const int64_t counts[2])
{
	double p;

	if (dump->rate <= 0 || !counts[0] || !counts[1])
		return 1;
	p = -expm1(-fabs((double)counts[1] / (double)counts[0]) / dump->rate);
	return p > 0 ? 1 / p : 1;
}

/* The addresses of a stack. False: there is something else among them, or too many. */
static bool take_stack(struct dump *dump, struct bytes b, int *ret_error)
{
	uint64_t addr;

	dump->n_frames = 0;
	while (scan_hex(&b, &addr)) {
		if (dump->n_frames == MAX_FRAMES)
			return false;
		if (!GROW(dump->frames, dump->n_frames, dump->cap_frames)) {
			*ret_error = -ENOMEM;
			return false;
		}
		/* A return address is after the call, which may be the last of its function. */
		if (dump->n_frames && addr)
			addr--;
		dump->frames[dump->n_frames++] = mapped_location(&dump->mapped, addr);
	}
	return !scan_trim(b).len;
}

static struct sum *find_sum(struct dump *dump, stack_id stack)
{
	struct sum *sum;

	HASH_FIND(hh, dump->by_stack, &stack, sizeof(stack), sum);
	if (sum)
		return sum;
	sum = chunks_add(&dump->sums);
	if (!sum)
		return NULL;
	sum->stack = stack;
	HASH_ADD(hh, dump->by_stack, stack, sizeof(sum->stack), sum);
	return hash_added(sum) ? sum : NULL;
}

static int add_sample(struct dump *dump, const int64_t live[2], const int64_t ever[2])
{
	struct sum *sum = find_sum(dump, dict_stack(dump->d, dump->frames, dump->n_frames));
	double of_live = unbias(dump, live), of_ever = unbias(dump, ever);

	if (!sum)
		return -ENOMEM;
	dump->good++;
	dump->has_accum |= ever[0] || ever[1];
	sum->values[ALLOC_OBJECTS] += (double)ever[0] * of_ever;
	sum->values[ALLOC_SPACE] += (double)ever[1] * of_ever;
	sum->values[INUSE_OBJECTS] += (double)live[0] * of_live;
	sum->values[INUSE_SPACE] += (double)live[1] * of_live;
	return 0;
}

/* `@ 0x… 0x…`, and the lines `t*:` and `tN:` below it. */
static int take_threaded(struct dump *dump, struct bytes line)
{
	int64_t live[2], ever[2];
	int r = 0;

	if (scan_text(&line, "@")) {
		dump->has_stack = take_stack(dump, line, &r);
		dump->bad += !dump->has_stack;
	} else if (scan_text(&line, "t*:")) {
		/* Before the first @ it is the total of all. */
		if (!take_counts(&line, live, ever))
			dump->bad++;
		else if (dump->has_stack)
			r = add_sample(dump, live, ever);
		dump->has_stack = false;
	} else {
		dump->bad += scan_trim(line).len && !scan_text(&line, "t");
	}
	return r;
}

/* `1: 2 [3: 4] @ 0x… 0x…`. Lines that begin with # are Go's names for the one before. */
static int take_row(struct dump *dump, struct bytes line)
{
	int64_t live[2], ever[2];
	int r = 0;

	if (!scan_trim(line).len || scan_text(&line, "#"))
		return 0;
	if (take_counts(&line, live, ever) && scan_text(&line, "@") && take_stack(dump, line, &r))
		return add_sample(dump, live, ever);
	dump->bad++;
	return r;
}

/* Where the mappings begin: what follows their heading. The stacks end before it. */
static bool split(struct bytes data, struct bytes *ret_stacks, struct bytes *ret_maps)
{
	struct bytes rest = data, line;

	while (bytes_line(&rest, &line)) {
		if (line.len < 9 || (line.data[0] != 'M' && line.data[0] != '-') ||
		    (!scan_text(&line, "MAPPED_LIBRARIES:") &&
		     !scan_text(&line, "--- Memory map:")))
			continue;
		*ret_maps = rest;
		*ret_stacks = bytes_of(data.data, (size_t)(line.data - data.data));
		while (ret_stacks->len && ret_stacks->data[ret_stacks->len - 1] != '\n')
			ret_stacks->len--;
		return true;
	}
	*ret_stacks = data;
	return false;
}

/*
 * jemalloc keeps what was ever allocated only with prof_accum: no value of zeros for it. A
 * growth has nothing but what is there.
 */
static int make_profile(struct dump *dump, struct profile **ret_profile)
{
	uint32_t first = dump->growth || (dump->good && !dump->has_accum) ? INUSE_OBJECTS : 0;
	_cleanup_(profile_freep) struct profile *p =
		dump->growth ? profile_new(dump->d, growth_types, 2)
			     : profile_new(dump->d, heap_types + first, N_VALUES - first);
	struct profile_meta meta = {
		.period_type = { "space", "bytes" },
		.period = dump->rate > 0 ? rounded(dump->rate) : 1,
		.default_type = N_VALUES - first - 1,
	};
	int r = p ? profile_set_meta(p, &meta) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < dump->sums.n; i++) {
		const struct sum *sum = chunks_at(&dump->sums, i);
		int64_t values[N_VALUES];

		for (uint32_t k = first; k < N_VALUES; k++)
			values[k - first] = rounded(sum->values[k]);
		r = profile_add(p, sum->stack, (labels_id){ 0 }, values);
	}
	if (r == 0)
		*ret_profile = TAKE_PTR(p);
	return r;
}

static int read_stacks(struct dump *dump, struct bytes text)
{
	struct bytes line;
	int r = 0;

	while (r == 0 && bytes_line(&text, &line))
		r = dump->threaded ? take_threaded(dump, line) : take_row(dump, line);
	return r;
}

int heap_dump_read(struct dict *d, struct bytes data, const char *name,
		   const struct import_opts *opts, struct import_info *info,
		   struct profile **ret_profile, struct err *e)
{
	static const struct import_opts nothing_known;
	_cleanup_(dump_fini) struct dump dump = {
		.d = d,
		.sums = CHUNKS_OF(struct sum),
		.mapped = { .d = d, .opts = opts ? opts : &nothing_known },
	};
	_cleanup_(profile_freep) struct profile *p = NULL;
	struct bytes header, stacks, maps = { 0 };
	bool whole;
	int r;

	if (!bytes_line(&data, &header) || !take_header(&dump, header))
		return err_set(e, -EBADMSG,
			       "%s: begins like a heap dump, but of no kind that is known "
			       "(heap_v2, heap, heapprofile, growth)",
			       name);
	whole = split(data, &stacks, &maps);
	r = mapped_read(&dump.mapped, maps);
	if (r == 0)
		r = read_stacks(&dump, stacks);
	if (r == 0)
		r = make_profile(&dump, &p);
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	if (!dump.good && dump.bad)
		return err_set(e, -EBADMSG, "%s: a heap dump without one stack that can be read",
			       name);
	info->skipped_lines = dump.bad;
	info->addresses = true;
	info->no_mappings = !whole;
	info->changed_files = dump.mapped.changed;
	*ret_profile = TAKE_PTR(p);
	return 0;
}
