/*
 * heaptrack's data files (heaptrack --interpret writes them; KDE/heaptrack, src/analyze/accumulatedtracedata.cpp), file
 * versions 1 to 3. Text, numbers in hexadecimal, records that name others by their place among those of their kind, from 1:
 *
 *   v 10400 3              versions of heaptrack and of the file
 *   X ./prog -x            the command
 *   I 1000 5d2c41          size of a page, pages of the machine
 *   s e ./prog name…       a string; before version 3 without its length: s NAME
 *   i IP MODULE [FUNCTION [FILE LINE [FUNCTION FILE LINE …]]]     a place; what it is inlined into follows
 *   t PLACE CALLER         a stack: a place, called from the stack CALLER (0: from nowhere)
 *   a SIZE STACK           from 0: blocks of that size from that stack
 *   + A        - A         a block as record A says was allocated, or freed
 *   c MS       R PAGES     time since the begin; resident pages
 *   A                      heaptrack attached to a running process
 *   S …        # …         suppressions, comments
 *
 * A free does not say of which block, only of which kind: how long blocks lived is not known. Temporary, as heaptrack counts
 * it: a free that follows the allocation of its own kind at once (heaptrack_print also counts each free of record 0 behind another
 * free, because it keeps 0 for "none"; what heaptrack says when it has recorded does not). The peak is the first moment at which most bytes were
 * in use. What stacks held over time becomes a table beside the profile (levels.h).
 */
#include "base/chunks.h"
#include "base/grow.h"
#include "base/strbuf.h"
#include "import/levels.h"
#include "import/readers.h"
#include "import/scan.h"
#include "model/about.h"
#include "model/alloc_site.h"
#include "model/over_time.h"
#include "model/sample_times.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_INLINED = 128, TREND_POINTS = 1024, FIRST_BIN_NS = 10000000 };

enum {
	ALLOC_OBJECTS,
	ALLOC_SPACE,
	TEMPORARY,
	PEAK_OBJECTS,
	PEAK_SPACE,
	INUSE_OBJECTS,
	INUSE_SPACE,
	N_VALUES
};

static const enum alloc_site_value site_types[N_VALUES] = {
	SITE_OBJECTS,    SITE_BYTES,        SITE_TEMPORARY,  SITE_PEAK_OBJECTS,
	SITE_PEAK_BYTES, SITE_LIVE_OBJECTS, SITE_LIVE_BYTES,
};

struct ht_site {
	int64_t values[N_VALUES];               /* of the peak: as of the epoch below */
	uint64_t epoch;                         /* its number of the peak that these are of */
	int64_t new_objects, new_bytes, gained; /* since the last time stamp */
	bool touched;
};

struct ht_trace {
	stack_id stack;
	uint32_t site; /* 1 + number; 0: nothing was allocated from it so far */
};

struct ht_kind {
	int64_t size;
	uint32_t site;
};

struct ht_point {
	double s, live, rss; /* rss: NAN, not known */
};

struct heaptrack {
	struct dict *d;
	struct import_info *info;
	uint64_t version;
	struct chunks strings, places, traces, kinds, sites;
	uint32_t *touched;
	uint32_t n_touched, cap_touched;
	int64_t live, peak;
	uint64_t epoch, ms, peak_ms;
	uint32_t last; /* 1 + the record that was allocated last; 0: something was freed since */
	double page_bytes, rss;
	struct ht_point points[TREND_POINTS];
	uint32_t n_points, stride, skipped_points;
	struct sample_times *times;
	struct levels *levels;
	char command[256];
	uint64_t bad;
	bool attached;
	struct profile *profile;
};

static void heaptrack_fini(struct heaptrack *h)
{
	chunks_free(&h->strings);
	chunks_free(&h->places);
	chunks_free(&h->traces);
	chunks_free(&h->kinds);
	chunks_free(&h->sites);
	free(h->touched);
	sample_times_free(h->times);
	levels_free(h->levels);
	profile_free(h->profile);
}

/* --- a line ----------------------------------------------------------------------------------- */

static bool take_hex(struct bytes *b, uint64_t *ret)
{
	return scan_hex(b, ret) && (!b->len || b->data[0] == ' ');
}

static bool take_version(struct bytes line, uint64_t *ret_version)
{
	uint64_t program, file;

	if (line.len < 2 || line.data[0] != 'v' || line.data[1] != ' ')
		return false;
	bytes_skip(&line, 2);
	if (!take_hex(&line, &program) || program < 0x10000 || program > 0xffffff)
		return false;
	/* Before 1.0 the program's number was the file's, too. */
	file = program == 0x10200 ? 1 : 0;
	if (line.len && !take_hex(&line, &file))
		return false;
	*ret_version = file;
	return !scan_trim(line).len;
}

bool heaptrack_recognise(struct bytes data)
{
	struct bytes line;
	uint64_t version;

	return bytes_line(&data, &line) && take_version(line, &version) &&
	       (!bytes_line(&data, &line) ||
		(line.len && strchr("#XxIAmsitacRS+-", line.data[0]) &&
		 (line.len == 1 || line.data[1] == ' ' || line.data[0] == '#')));
}

static void *at(const struct chunks *c, uint64_t number)
{
	return number && number <= c->n ? chunks_at(c, (uint32_t)number - 1) : NULL;
}

static string_id string_at(const struct heaptrack *h, uint64_t number)
{
	const string_id *s = at(&h->strings, number);

	return s ? *s : (string_id){ 0 };
}

static int add_string(struct heaptrack *h, struct bytes line)
{
	string_id *s = chunks_add(&h->strings);
	uint64_t len;

	if (!s)
		return -ENOMEM;
	if (h->version >= 3) {
		if (!take_hex(&line, &len) || !line.len || len > line.len - 1) {
			h->bad++;
			return 0;
		}
		bytes_skip(&line, 1);
		line.len = len;
	}
	*s = dict_string_n(h->d, (const char *)line.data, line.len);
	return 0;
}

/* "/usr/lib/libc.so.6" and 0x1234 → "[libc.so.6+…]" would not be the same in two runs: the image alone. */
static string_id name_of_image(struct heaptrack *h, string_id image)
{
	const char *path = dict_str(h->d, image), *slash = strrchr(path, '/');
	char name[256];

	snprintf(name, sizeof(name), "[%.200s]", !*path ? "unknown" : slash ? slash + 1 : path);
	return dict_string(h->d, name);
}

static int add_place(struct heaptrack *h, struct bytes line)
{
	struct line lines[MAX_INLINED] = { 0 };
	struct module module = { .kind = MODULE_ELF };
	location_id *place = chunks_add(&h->places);
	uint64_t ip = 0, image = 0, function, file, number;
	module_id m = { 0 };
	uint32_t n = 0;

	if (!place)
		return -ENOMEM;
	if (!take_hex(&line, &ip) || !take_hex(&line, &image))
		h->bad++;
	module.path = string_at(h, image);
	if (module.path.ix)
		m = dict_module(h->d, &module);
	while (n < MAX_INLINED && take_hex(&line, &function)) {
		lines[n].function = string_at(h, function);
		if (take_hex(&line, &file) && take_hex(&line, &number)) {
			lines[n].file = string_at(h, file);
			lines[n].line = number <= UINT32_MAX ? (uint32_t)number : 0;
		}
		if (!lines[n].function.ix)
			lines[n].function = name_of_image(h, module.path);
		n++;
	}
	if (!n)
		lines[n++].function = name_of_image(h, module.path);
	*place = dict_location_lines(h->d, m, ip, lines, n);
	return 0;
}

static int add_trace(struct heaptrack *h, struct bytes line)
{
	uint32_t n = h->traces.n;
	struct ht_trace *trace = chunks_add(&h->traces), *caller;
	const location_id *place;
	uint64_t number, parent;

	if (!trace)
		return -ENOMEM;
	if (!take_hex(&line, &number) || !take_hex(&line, &parent) || parent > n) {
		h->bad++;
		return 0;
	}
	caller = at(&h->traces, parent);
	place = at(&h->places, number);
	if (caller)
		trace->stack = caller->stack;
	if (place)
		trace->stack = dict_stack_push(h->d, trace->stack, *place);
	return 0;
}

/* The record is kept also where it makes no sense: others are named by their numbers. */
static int add_kind(struct heaptrack *h, struct bytes line)
{
	struct ht_kind *kind = chunks_add(&h->kinds);
	struct ht_trace *trace;
	uint64_t size, number;

	if (!kind)
		return -ENOMEM;
	if (!take_hex(&line, &size) || !take_hex(&line, &number) || size > INT64_MAX ||
	    !(trace = at(&h->traces, number))) {
		h->bad++;
		return 0;
	}
	if (!trace->site) {
		if (!chunks_add(&h->sites))
			return -ENOMEM;
		trace->site = h->sites.n;
	}
	*kind = (struct ht_kind){ (int64_t)size, trace->site };
	return 0;
}

/* --- what happens ----------------------------------------------------------------------------- */

static int64_t plus(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum) ? sum : b > 0 ? INT64_MAX : INT64_MIN;
}

/* Before a site changes: what it has is what it had at the last peak, if it did not change since. */
static void keep_peak(const struct heaptrack *h, struct ht_site *s)
{
	if (s->epoch == h->epoch)
		return;
	s->values[PEAK_OBJECTS] = s->values[INUSE_OBJECTS];
	s->values[PEAK_SPACE] = s->values[INUSE_SPACE];
	s->epoch = h->epoch;
}

static int touch(struct heaptrack *h, struct ht_site *s, uint32_t number)
{
	if (s->touched)
		return 0;
	if (!GROW(h->touched, h->n_touched, h->cap_touched))
		return -ENOMEM;
	h->touched[h->n_touched++] = number;
	s->touched = true;
	return 0;
}

static int change(struct heaptrack *h, struct bytes line, bool allocated)
{
	const struct ht_kind *kind;
	struct ht_site *s;
	uint64_t number;
	int64_t sign = allocated ? 1 : -1;

	if (!take_hex(&line, &number) || number >= h->kinds.n) {
		h->bad++;
		return 0;
	}
	kind = chunks_at(&h->kinds, (uint32_t)number);
	if (!kind->site) {
		h->bad++;
		return 0;
	}
	s = chunks_at(&h->sites, kind->site - 1);
	keep_peak(h, s);
	s->values[INUSE_OBJECTS] += sign;
	s->values[INUSE_SPACE] = plus(s->values[INUSE_SPACE], sign * kind->size);
	s->gained = plus(s->gained, sign * kind->size);
	h->live = plus(h->live, sign * kind->size);
	if (allocated) {
		s->values[ALLOC_OBJECTS]++;
		s->values[ALLOC_SPACE] = plus(s->values[ALLOC_SPACE], kind->size);
		s->new_objects++;
		s->new_bytes = plus(s->new_bytes, kind->size);
		h->last = (uint32_t)number + 1;
	} else {
		s->values[TEMPORARY] += h->last == number + 1;
		h->last = 0;
	}
	if (h->live > h->peak) {
		h->peak = h->live;
		h->peak_ms = h->ms;
		h->epoch++;
	}
	return touch(h, s, kind->site - 1);
}

static int flush(struct heaptrack *h)
{
	uint64_t ns = h->ms * 1000000;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < h->n_touched; i++) {
		struct ht_site *s = chunks_at(&h->sites, h->touched[i]);

		if (s->new_objects)
			r = sample_times_add(h->times, h->touched[i], ns,
					     (int64_t[]){ s->new_bytes, s->new_objects });
		if (r == 0 && s->gained)
			r = levels_add(h->levels, h->touched[i], ns, s->gained);
		s->new_objects = s->new_bytes = s->gained = 0;
		s->touched = false;
	}
	h->n_touched = 0;
	return r;
}

/* Every point, or, once there are TREND_POINTS, every second, fourth … */
static void add_point(struct heaptrack *h)
{
	if (++h->skipped_points < h->stride)
		return;
	h->skipped_points = 0;
	if (h->n_points == TREND_POINTS) {
		for (uint32_t i = 0; i < TREND_POINTS / 2; i++)
			h->points[i] = h->points[2 * i];
		h->n_points = TREND_POINTS / 2;
		h->stride *= 2;
	}
	h->points[h->n_points++] =
		(struct ht_point){ (double)h->ms / 1e3, (double)h->live, h->rss };
}

/* Are two moments in one bin of both tables? */
static bool same_bin(const struct heaptrack *h, uint64_t a_ms, uint64_t b_ms)
{
	uint64_t times_ns = sample_times_bin_ns(h->times), levels_ns = levels_bin_ns(h->levels);
	uint64_t ns = times_ns < levels_ns ? times_ns : levels_ns;

	return a_ms * 1000000 / ns == b_ms * 1000000 / ns;
}

static int set_time(struct heaptrack *h, struct bytes line)
{
	uint64_t ms;
	int r;

	if (!take_hex(&line, &ms) || ms < h->ms || ms > INT64_MAX / 1000000) {
		h->bad++;
		return 0;
	}
	r = same_bin(h, h->ms, ms) ? 0 : flush(h);
	h->ms = ms;
	add_point(h);
	return r;
}

/* 0, -ENOMEM, or -EBADMSG: it is of another kind. */
static int take_line(struct heaptrack *h, struct bytes line)
{
	uint8_t mode = line.len ? line.data[0] : '#';
	uint64_t number;

	if (line.len > 1 && line.data[1] != ' ' && mode != '#') {
		h->bad++;
		return 0;
	}
	bytes_skip(&line, line.len < 2 ? line.len : 2);
	switch (mode) {
	case 's':
		return add_string(h, line);
	case 'i':
		return add_place(h, line);
	case 't':
		return add_trace(h, line);
	case 'a':
		return add_kind(h, line);
	case '+':
		return change(h, line, true);
	case '-':
		return change(h, line, false);
	case 'c':
		return set_time(h, line);
	case 'R':
		if (take_hex(&line, &number))
			h->rss = (double)number * h->page_bytes;
		return 0;
	case 'I':
		if (take_hex(&line, &number))
			h->page_bytes = (double)number;
		return 0;
	case 'X':
		snprintf(h->command, sizeof(h->command), "%.*s",
			 (int)(line.len < sizeof(h->command) ? line.len : sizeof(h->command) - 1),
			 (const char *)line.data);
		return 0;
	case 'A':
		h->attached = true;
		return 0;
	case '#':
	case 'S':
		return 0;
	case 'x':
	case 'm':
		return -EBADMSG;
	default:
		h->bad++;
		return 0;
	}
}

/* --- what came of it -------------------------------------------------------------------------- */

/* Each site is the sample of its number, as times and levels have it: of equal stacks the later ones have a label. */
static int make_samples(struct heaptrack *h, stack_id *stacks)
{
	for (uint32_t i = 0; i < h->traces.n; i++) {
		const struct ht_trace *trace = chunks_at(&h->traces, i);

		if (trace->site)
			stacks[trace->site - 1] = trace->stack;
	}
	for (uint32_t i = 0; i < h->sites.n; i++) {
		struct ht_site *s = chunks_at(&h->sites, i);
		struct label key = { .key = dict_string(h->d, "trace"), .num = i + 1 };
		labels_id labels = { 0 };
		uint32_t sample;

		keep_peak(h, s);
		if (profile_find_sample(h->profile, stacks[i], labels, &sample) == 0)
			labels = dict_labels(h->d, &key, 1);
		if (profile_add(h->profile, stacks[i], labels, s->values) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int make_trend(struct heaptrack *h, struct over_time *o)
{
	static const char *const names[] = { "live_bytes", "rss_kb" };
	struct time_table *t = time_table_new(names, 2, h->n_points);

	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < h->n_points; i++) {
		t->times_s[i] = h->points[i].s;
		t->columns[0].values[i] = h->points[i].live;
		t->columns[1].values[i] = h->points[i].rss / 1024;
	}
	return over_time_add_series(o, "trend", "Memory", t);
}

static int make_over_time(struct heaptrack *h, const stack_id *stacks)
{
	struct over_time *o = over_time_new();
	struct time_table *t = NULL;
	int r = o ? make_trend(h, o) : -ENOMEM;

	if (r == 0)
		r = levels_table(h->levels, h->d, stacks, h->sites.n, &t);
	if (r == 0 && t)
		r = over_time_add_series(o, "live_series", "Live bytes by stack", t);
	profile_set_over_time(h->profile, o);
	return r;
}

static int set_meta(struct heaptrack *h)
{
	char target[300], peak[64];
	const char *comments[4] = { target, peak };
	struct profile_meta meta = {
		.duration_ns = (int64_t)h->ms * 1000000,
		.period_type = { "space", "bytes" },
		.period = 1,
		.default_type = PEAK_SPACE,
		.comments = comments,
	};

	snprintf(target, sizeof(target), "%s%s", about_prefix(ABOUT_TARGET),
		 h->command[0] ? h->command : "unknown");
	snprintf(peak, sizeof(peak), "%s%.3f s after the start", about_prefix(ABOUT_PEAK),
		 (double)h->peak_ms / 1e3);
	if (h->attached)
		comments[2] = "heaptrack was attached: what was allocated before is not in it";
	return profile_set_meta(h->profile, &meta);
}

static int make_profile(struct heaptrack *h)
{
	_cleanup_(freep) stack_id *stacks = calloc(h->sites.n + 1ul, sizeof(*stacks));
	struct value_type types[N_VALUES];
	int r = stacks ? flush(h) : -ENOMEM;

	for (int i = 0; i < N_VALUES; i++)
		types[i] = alloc_site_types[site_types[i]];
	h->profile = profile_new(h->d, types, N_VALUES);
	if (r == 0 && !h->profile)
		r = -ENOMEM;
	if (r == 0)
		r = make_samples(h, stacks);
	if (r == 0)
		r = set_meta(h);
	if (r == 0)
		r = make_over_time(h, stacks);
	if (r == 0 && h->sites.n)
		profile_set_times(h->profile, TAKE_PTR(h->times));
	return r;
}

static void note_damage(struct heaptrack *h, struct input *in)
{
	import_note_fault(in, h->info);
	if (!h->info->damage[0] && h->kinds.n && !input_line_whole(in))
		snprintf(h->info->damage, sizeof(h->info->damage),
			 "it ends within line %" PRIu64
			 ", which was left out; what is before it was kept",
			 input_n_lines(in));
}

int heaptrack_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		   struct profile **ret_profile, struct err *e)
{
	static const uint32_t timed[] = { ALLOC_SPACE, ALLOC_OBJECTS };
	_cleanup_(heaptrack_fini) struct heaptrack h = {
		.d = d,
		.info = info,
		.strings = CHUNKS_OF(string_id),
		.places = CHUNKS_OF(location_id),
		.traces = CHUNKS_OF(struct ht_trace),
		.kinds = CHUNKS_OF(struct ht_kind),
		.sites = CHUNKS_OF(struct ht_site),
		.stride = 1,
		.page_bytes = 4096,
		.rss = NAN,
		.times = sample_times_new(timed, 2, FIRST_BIN_NS, SAMPLE_TIMES_MAX),
		.levels = levels_new(FIRST_BIN_NS),
	};
	struct bytes line;
	int r = h.times && h.levels ? 0 : -ENOMEM;

	if (!input_line(in, &line) || !take_version(line, &h.version))
		return err_set(e, -EBADMSG, "%s: no data file of heaptrack", name);
	if (!h.version || h.version > 3)
		return err_set(e, -EBADMSG,
			       "%s: version %" PRIu64
			       " of heaptrack's data files; 1, 2 and 3 are known",
			       name, h.version);
	add_point(&h);
	while (r == 0 && input_line(in, &line) && (input_line_whole(in) || line.len < 2))
		r = take_line(&h, line);
	if (r == -EBADMSG)
		return err_set(
			e, r,
			"%s, line %" PRIu64
			": a raw file of heaptrack; heaptrack --interpret makes one with names of it",
			name, input_n_lines(in));
	if (r == 0)
		r = make_profile(&h);
	if (r < 0 || dict_oom(d))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	note_damage(&h, in);
	info->skipped_lines = h.bad;
	*ret_profile = TAKE_PTR(h.profile);
	return 0;
}
