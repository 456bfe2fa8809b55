/*
 * GHC's eventlog (+RTS -l, with -hT, -hc, -hy, -hd, -hm, -hr, -hb, -hi, -he or -p): ghc_events.h has its bytes, censuses.h what
 * becomes of its censuses of the heap. Cost-centre stacks are stacks; any other part (a type, a closure, a module) is one frame
 * of the name that GHC gave it. Of -hi that name is the address of an info table, which its IPE event names: the function, its
 * module, type and place in the source; those that have none keep their address.
 *
 * Beside it, as tables over time, what the collector says: bytes live after major collections, in blocks, in the heap,
 * collections and their time, bytes allocated and copied; and what the program marked (traceMarker, traceEvent).
 */
#include "base/hash.h"
#include "base/strbuf.h"
#include "import/censuses.h"
#include "import/event_bins.h"
#include "import/ghc_events.h"
#include "import/readers.h"
#include "model/about.h"
#include "model/over_time.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum column { LIVE, BLOCKS, HEAP, COUNT, MAJOR, GC_MS, ALLOCATED, COPIED, N_COLUMNS };

/* Which heap part a key is: a stack of the dict, or an info table by its address. */
#define KEY_ADDRESS (1ull << 63)

struct cost_centre {
	uint32_t id;
	location_id location;
	UT_hash_handle hh;
};

/* IPE: what an info table is of. */
struct info_table {
	uint64_t address;
	string_id name, place;
	UT_hash_handle hh;
};

struct gc_begin {
	uint16_t cap;
	uint64_t ns;
	UT_hash_handle hh;
};

struct eventlog {
	struct dict *d;
	struct censuses censuses;
	struct event_bins bins;
	struct over_time *over_time;
	struct cost_centre *centres;
	struct info_table *tables;
	struct gc_begin *begun;
	module_id haskell;
	string_id program;
	uint64_t wall_ns, wall_at_ns, pid, tick_ns;
	uint64_t malformed;
	location_id frames[256]; /* scratch */
	struct strbuf text;
	struct ghc_events events;
};

static void eventlog_free(struct eventlog *g)
{
	censuses_fini(&g->censuses);
	event_bins_fini(&g->bins);
	over_time_free(g->over_time);
	hash_free(g->centres);
	hash_free(g->tables);
	hash_free(g->begun);
	strbuf_free(&g->text);
	free(g);
}
DEFINE_CLEANUP(struct eventlog *, eventlog_freep, eventlog_free)

static string_id string(struct eventlog *g, struct bytes text)
{
	return dict_string_n(g->d, (const char *)text.data, text.len);
}

/* --- what parts are --------------------------------------------------------------------------- */

/* "work.hs:(20,1)-(23,40)" or "work.hs:20:1-4" → file and line; others are a file without a line. */
static void place_split(struct bytes place, struct bytes *ret_file, uint32_t *ret_line)
{
	const uint8_t *colon = memchr(place.data, ':', place.len);
	size_t i = colon ? (size_t)(colon - place.data) + 1 : place.len;
	uint64_t line = 0;

	*ret_file = bytes_of(place.data, colon ? i - 1 : place.len);
	i += i < place.len && place.data[i] == '(';
	for (; i < place.len && place.data[i] >= '0' && place.data[i] <= '9' && line < UINT32_MAX;
	     i++)
		line = line * 10 + (uint64_t)(place.data[i] - '0');
	*ret_line = line <= UINT32_MAX ? (uint32_t)line : 0;
	if (place.len && place.data[0] == '<') /* <built-in>, <no location info> */
		ret_file->len = 0;
}

static location_id named(struct eventlog *g, module_id module, uint64_t vaddr, string_id name,
			 struct bytes place)
{
	struct line line = { .function = name };
	struct bytes file;

	place_split(place, &file, &line.line);
	line.file = string(g, file);
	return dict_location_lines(g->d, module, vaddr, &line, 1);
}

/* "Module.name" */
static string_id qualified(struct eventlog *g, struct bytes module, struct bytes name)
{
	strbuf_reset(&g->text);
	strbuf_add(&g->text, module.data, module.len);
	if (module.len && name.len)
		strbuf_putc(&g->text, '.');
	strbuf_add(&g->text, name.data, name.len);
	return dict_string_n(g->d, g->text.s ? g->text.s : "", g->text.len);
}

static int cost_centre(struct eventlog *g, struct bytes b)
{
	struct bytes label, module, place;
	struct cost_centre *c;
	uint32_t id;

	if (!ghc_u32(&b, &id))
		return -EBADMSG;
	label = ghc_string(&b);
	module = ghc_string(&b);
	place = ghc_string(&b);
	c = hash_get(g->centres, id, &id);
	if (!c)
		return -ENOMEM;
	c->location = named(g, g->haskell, 0, qualified(g, module, label), place);
	return strbuf_oom(&g->text) ? -ENOMEM : 0;
}

/* info pointer, table's name, closure kind, type, label, module, source */
static int info_table(struct eventlog *g, struct bytes b)
{
	struct bytes table, type, label, module;
	struct info_table *t;
	uint64_t address;

	if (!ghc_u64(&b, &address))
		return -EBADMSG;
	table = ghc_string(&b);
	ghc_string(&b);
	type = ghc_string(&b);
	label = ghc_string(&b);
	module = ghc_string(&b);
	address &= ~KEY_ADDRESS;
	t = hash_get(g->tables, address, &address);
	if (!t)
		return -ENOMEM;
	qualified(g, module, label.len ? label : table);
	if (type.len) {
		strbuf_puts(&g->text, " :: ");
		strbuf_add(&g->text, type.data, type.len);
	}
	t->name = dict_string_n(g->d, g->text.s ? g->text.s : "", g->text.len);
	t->place = string(g, ghc_string(&b));
	return strbuf_oom(&g->text) ? -ENOMEM : 0;
}

/* `depth` cost centres, the innermost first. -EBADMSG: fewer follow; -ENOMEM. */
static int centre_stack(struct eventlog *g, struct bytes b, uint8_t depth, uint64_t *ret_key)
{
	for (uint32_t i = 0; i < depth; i++) {
		struct cost_centre *c;
		uint32_t id;

		if (!ghc_u32(&b, &id))
			return -EBADMSG;
		HASH_FIND(hh, g->centres, &id, sizeof(id), c);
		if (!c) {
			char name[32];

			snprintf(name, sizeof(name), "cost centre %" PRIu32, id);
			c = hash_get(g->centres, id, &id);
			if (!c)
				return -ENOMEM;
			c->location =
				named(g, g->haskell, 0, dict_string(g->d, name), bytes_of("", 0));
		}
		g->frames[i] = c->location;
	}
	if (!depth) /* the root of all stacks, which is written without a cost centre */
		g->frames[depth++] =
			named(g, g->haskell, 0, dict_string(g->d, "MAIN"), bytes_of("", 0));
	*ret_key = dict_stack(g->d, g->frames, depth).ix;
	return 0;
}

/* "0x4a3b20": the info tables of -hi. */
static bool is_address(struct bytes text, uint64_t *ret_address)
{
	uint64_t v = 0;

	if (text.len < 3 || text.len > 18 || memcmp(text.data, "0x", 2) != 0)
		return false;
	for (size_t i = 2; i < text.len; i++) {
		uint8_t c = text.data[i], lower = c | 0x20;

		if (c >= '0' && c <= '9')
			v = v << 4 | (c - '0');
		else if (lower >= 'a' && lower <= 'f')
			v = v << 4 | (lower - 'a' + 10u);
		else
			return false;
	}
	*ret_address = v & ~KEY_ADDRESS;
	return true;
}

static uint64_t string_key(struct eventlog *g, struct bytes text)
{
	location_id location;
	uint64_t address;

	if (is_address(text, &address))
		return KEY_ADDRESS | address;
	location = named(g, (module_id){ 0 }, 0, string(g, text), bytes_of("", 0));
	return dict_stack(g->d, &location, 1).ix;
}

/* Of a key: those of info tables are known now that all events were read. */
static stack_id stack_of(void *ctx, uint64_t key)
{
	struct eventlog *g = ctx;
	uint64_t address = key & ~KEY_ADDRESS;
	struct info_table *t;
	location_id location;
	char name[32];

	if (!(key & KEY_ADDRESS))
		return (stack_id){ (uint32_t)key };
	HASH_FIND(hh, g->tables, &address, sizeof(address), t);
	snprintf(name, sizeof(name), "0x%" PRIx64, address);
	if (t && t->name.ix) {
		const char *place = dict_str(g->d, t->place);

		location = named(g, g->haskell, address, t->name, bytes_of(place, strlen(place)));
	} else {
		location = named(g, (module_id){ 0 }, address, dict_string(g->d, name),
				 bytes_of("", 0));
	}
	return dict_stack(g->d, &location, 1);
}

/* --- events ----------------------------------------------------------------------------------- */

static int heap_sample(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	uint8_t id, depth;
	uint64_t bytes, key;
	int r;

	if (!ghc_u8(&b, &id) || !ghc_u64(&b, &bytes))
		return -EBADMSG;
	if (e->number == GHC_HEAP_PROF_SAMPLE_STRING) {
		key = string_key(g, ghc_string(&b));
	} else {
		if (!ghc_u8(&b, &depth))
			return -EBADMSG;
		r = centre_stack(g, b, depth, &key);
		if (r < 0)
			return r;
	}
	return censuses_add(&g->censuses, key, bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX);
}

static int time_sample(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	uint32_t cap;
	uint64_t tick, key;
	uint8_t depth;
	int r;

	if (!ghc_u32(&b, &cap) || !ghc_u64(&b, &tick) || !ghc_u8(&b, &depth))
		return -EBADMSG;
	r = centre_stack(g, b, depth, &key);
	return r < 0 ? r : censuses_tick(&g->censuses, key, e->ns);
}

static int heap_begin(struct eventlog *g, struct bytes b)
{
	uint8_t id;
	uint64_t period_ns;

	if (!ghc_u8(&b, &id) || !ghc_u64(&b, &period_ns))
		return -EBADMSG;
	/* Censuses are no closer than that: a quarter of it shows every one of them. */
	if (!g->censuses.times && period_ns / 4 > 1000000 && period_ns / 4 < SAMPLE_TIMES_BIN_NS)
		g->censuses.bin_ns = period_ns / 4;
	return 0;
}

/* Where GHC says when a census ends, one that does not is not whole; GHC before 8.6 does not: the next one ends it. */
static int census_begin(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	uint64_t number, ns = e->ns;
	int r = ghc_events_has(&g->events, GHC_HEAP_PROF_SAMPLE_END) ? 0
								     : censuses_end(&g->censuses);

	/* Biographies are known only at the end of the run: their events say when it was. */
	if (!ghc_u64(&b, &number) ||
	    (e->number == GHC_HEAP_BIO_PROF_SAMPLE_BEGIN && !ghc_u64(&b, &ns)))
		return -EBADMSG;
	if (r == 0)
		censuses_begin(&g->censuses, ns);
	return r;
}

static int gc_end(struct eventlog *g, const struct ghc_event *e)
{
	struct gc_begin *begin;
	uint16_t cap = e->cap;

	HASH_FIND(hh, g->begun, &cap, sizeof(cap), begin);
	if (!begin || !begin->ns || begin->ns > e->ns)
		return 0;
	if (event_bins_add(&g->bins, GC_MS, e->ns, (double)(e->ns - begin->ns) / 1e6) < 0)
		return -ENOMEM;
	begin->ns = 0;
	return event_bins_add(&g->bins, COUNT, e->ns, 1);
}

static int gc_begin(struct eventlog *g, const struct ghc_event *e)
{
	struct gc_begin *begin = hash_get(g->begun, cap, &e->cap);

	if (!begin)
		return -ENOMEM;
	begin->ns = e->ns;
	return 0;
}

/* heap capset:4 and a number of bytes:8 */
static int bytes_event(struct eventlog *g, const struct ghc_event *e, enum column column,
		       double scale)
{
	struct bytes b = e->payload;
	uint32_t set;
	uint64_t bytes;

	if (!ghc_u32(&b, &set) || !ghc_u64(&b, &bytes))
		return -EBADMSG;
	return event_bins_add(&g->bins, column, e->ns, (double)bytes * scale);
}

/* heap capset:4 generation:2 copied:8 … */
static int gc_stats(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	uint16_t generation;
	uint32_t set;
	uint64_t copied;
	int r;

	if (!ghc_u32(&b, &set) || !ghc_u16(&b, &generation) || !ghc_u64(&b, &copied))
		return -EBADMSG;
	r = event_bins_add(&g->bins, COPIED, e->ns, (double)copied);
	return r == 0 && generation ? event_bins_add(&g->bins, MAJOR, e->ns, 1) : r;
}

static int mark(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	struct over_time_mark m = {
		.s = (double)e->ns / 1e9,
		.message = e->number != GHC_USER_MARKER,
	};

	/* Of more than are kept no text is either. */
	if (g->over_time->n_marks < OVER_TIME_MARKS || !m.message)
		m.text = string(g, ghc_string(&b));
	return over_time_add_mark(g->over_time, &m);
}

/* capset:4, then the program and its arguments */
static void program_args(struct eventlog *g, struct bytes b)
{
	struct bytes name;
	uint32_t set;

	if (!ghc_u32(&b, &set))
		return;
	name = ghc_string(&b);
	for (size_t i = name.len; i-- > 0;)
		if (name.data[i] == '/') {
			bytes_skip(&name, i + 1);
			break;
		}
	if (!g->program.ix)
		g->program = string(g, name);
}

static int set_number(struct bytes b, bool wide, uint64_t *ret)
{
	uint32_t set, narrow;

	if (!ghc_u32(&b, &set))
		return -EBADMSG;
	if (wide)
		return ghc_u64(&b, ret) ? 0 : -EBADMSG;
	if (!ghc_u32(&b, &narrow))
		return -EBADMSG;
	*ret = narrow;
	return 0;
}

static int wall_clock(struct eventlog *g, const struct ghc_event *e)
{
	struct bytes b = e->payload;
	uint64_t seconds;
	uint32_t ns = 0;

	if (set_number(b, true, &seconds) < 0)
		return -EBADMSG;
	bytes_skip(&b, 12);
	if (!ghc_u32(&b, &ns) || seconds > INT64_MAX / 1000000000 - 1)
		return -EBADMSG;
	g->wall_ns = seconds * 1000000000 + ns;
	g->wall_at_ns = e->ns;
	return 0;
}

static int understand(struct eventlog *g, const struct ghc_event *e)
{
	switch (e->number) {
	case GHC_GC_START:
		return gc_begin(g, e);
	case GHC_GC_END:
		return gc_end(g, e);
	case GHC_LOG_MSG:
	case GHC_USER_MSG:
	case GHC_USER_MARKER:
		return mark(g, e);
	case GHC_PROGRAM_ARGS:
		program_args(g, e->payload);
		return 0;
	case GHC_OSPROCESS_PID:
		return set_number(e->payload, false, &g->pid);
	case GHC_WALL_CLOCK_TIME:
		return wall_clock(g, e);
	case GHC_HEAP_ALLOCATED:
		return bytes_event(g, e, ALLOCATED, 1);
	case GHC_HEAP_SIZE:
		return bytes_event(g, e, HEAP, 1. / 1024);
	case GHC_HEAP_LIVE:
		return bytes_event(g, e, LIVE, 1. / 1024);
	case GHC_BLOCKS_SIZE:
		return bytes_event(g, e, BLOCKS, 1. / 1024);
	case GHC_GC_STATS:
		return gc_stats(g, e);
	case GHC_HEAP_PROF_BEGIN:
		return heap_begin(g, e->payload);
	case GHC_HEAP_PROF_COST_CENTRE:
		return cost_centre(g, e->payload);
	case GHC_HEAP_PROF_SAMPLE_BEGIN:
	case GHC_HEAP_BIO_PROF_SAMPLE_BEGIN:
		return census_begin(g, e);
	case GHC_HEAP_PROF_SAMPLE_COST_CENTRE:
	case GHC_HEAP_PROF_SAMPLE_STRING:
		return heap_sample(g, e);
	case GHC_HEAP_PROF_SAMPLE_END:
		return censuses_end(&g->censuses);
	case GHC_PROF_BEGIN: {
		struct bytes b = e->payload;

		return ghc_u64(&b, &g->tick_ns) ? 0 : -EBADMSG;
	}
	case GHC_PROF_SAMPLE_COST_CENTRE:
		return time_sample(g, e);
	case GHC_IPE:
		return info_table(g, e->payload);
	default:
		return 0;
	}
}

/* One that is shorter than its kind is left out and counted. */
static int on_event(void *ctx, const struct ghc_event *e)
{
	struct eventlog *g = ctx;
	int r = understand(g, e);

	if (r == -EBADMSG) {
		g->malformed++;
		r = 0;
	}
	return r < 0 || dict_oom(g->d) ? -ENOMEM : 0;
}

/* --- what becomes of it ----------------------------------------------------------------------- */

static int add_tables(struct eventlog *g, double begin_s)
{
	/* As trend.csv names what memscope reads of a program that runs. */
	static const struct {
		const char *id, *title;
		uint32_t n, columns[6];
		const char *names[6];
	} tables[] = {
		{ "trend",
		  "Garbage collector",
		  6,
		  { LIVE, BLOCKS, HEAP, COUNT, MAJOR, GC_MS },
		  { "gc_live_kb", "gc_blocks_kb", "gc_heap_kb", "gc_count", "gc_major_count",
		    "gc_ms" } },
		{ "workload",
		  "Allocation",
		  2,
		  { ALLOCATED, COPIED },
		  { "heap_allocated_bytes_total", "gc_copied_bytes_total" } },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		struct time_table *t = NULL;

		if (event_bins_table(&g->bins, tables[i].columns, tables[i].names, tables[i].n,
				     begin_s, &t) < 0)
			return -ENOMEM;
		if (t)
			over_time_add_series(g->over_time, tables[i].id, tables[i].title, t);
	}
	over_time_sort(g->over_time);
	return 0;
}

static labels_id program_labels(struct eventlog *g)
{
	struct label labels[2] = {
		{ .key = dict_string(g->d, "comm"), .str = g->program },
		{ .key = dict_string(g->d, "pid"), .num = (int64_t)g->pid },
	};

	return dict_labels(g->d, g->program.ix ? labels : labels + 1,
			   (g->program.ix != 0) + (g->pid != 0));
}

static int finish(struct eventlog *g, struct profile **ret_profile)
{
	_cleanup_(profile_freep) struct profile *p = NULL;
	uint64_t begin_ns = g->wall_ns > g->wall_at_ns ? g->wall_ns - g->wall_at_ns : 0;
	const char *comments[] = { NULL, NULL };
	struct profile_meta meta = {
		.time_ns = (int64_t)begin_ns,
		.period_type = { "", "" },
		.comments = comments,
	};
	char target[256];
	int r;

	if (g->program.ix) {
		snprintf(target, sizeof(target), "%s%.200s (pid %" PRIu64 ")",
			 about_prefix(ABOUT_TARGET), dict_str(g->d, g->program), g->pid);
		comments[0] = target;
	}
	r = censuses_finish(&g->censuses, g->d,
			    &(struct censuses_made){ .stack_of = stack_of,
						     .ctx = g,
						     .labels = program_labels(g),
						     .end_ns = g->events.last_ns,
						     .tick_ns = g->tick_ns ? g->tick_ns : 1000000,
						     .whole = ghc_events_ended(&g->events),
						     .meta = &meta },
			    &p);
	if (r == 0)
		r = add_tables(g, (double)begin_ns / 1e9);
	if (r < 0 || dict_oom(g->d))
		return -ENOMEM;
	profile_set_over_time(p, TAKE_PTR(g->over_time));
	*ret_profile = TAKE_PTR(p);
	return 0;
}

static void note(struct import_info *info, const struct strbuf *s)
{
	if (!info->damage[0] && s->s && !strbuf_oom(s))
		snprintf(info->damage, sizeof(info->damage), "%s", s->s);
}

/* Where it is damaged, and what was kept. 0 or -ENOMEM. */
static int note_damage(const struct eventlog *g, int r, struct import_info *info)
{
	const struct ghc_events *e = &g->events;
	_cleanup_(strbuf_free) struct strbuf s = { 0 };

	if (r == -EBADMSG)
		strbuf_printf(&s, "at byte %" PRIu64 " is no event that it declares (number %u); ",
			      e->offset, e->unknown);
	else if (!ghc_events_ended(e))
		strbuf_printf(
			&s,
			"it ends at byte %" PRIu64
			" without an end mark%s, as of a program that was killed or still runs; ",
			e->offset + e->n_carry, e->n_carry ? ", within an event" : "");
	if (e->skipped && r != -EBADMSG)
		strbuf_printf(&s,
			      "%" PRIu64 " bytes from %" PRIu64
			      " on are no events that it declares and were passed over; ",
			      e->skipped, e->first_skipped);
	if (g->malformed)
		strbuf_printf(&s,
			      "%" PRIu64 " events are too short for their kind and were left out; ",
			      g->malformed);
	if (s.len) {
		strbuf_printf(&s,
			      "kept: %" PRIu64 " events, %" PRIu64 " whole censuses of the heap",
			      e->n_events, g->censuses.n_censuses);
		if (g->censuses.open)
			strbuf_puts(&s, "; the one that was being written is left out");
	}
	note(info, &s);
	return strbuf_oom(&s) ? -ENOMEM : 0;
}

bool ghc_eventlog_recognise(struct bytes data)
{
	return data.len >= 8 && memcmp(data.data, "hdrbhetb", 8) == 0;
}

int ghc_eventlog_read(struct dict *d, struct input *in, const char *name, struct import_info *info,
		      struct profile **ret_profile, struct err *e)
{
	_cleanup_(eventlog_freep) struct eventlog *g = calloc(1, sizeof(*g));
	struct module haskell = { .kind = MODULE_LANG, .path = dict_string(d, "[Haskell]") };
	struct bytes piece;
	int r = 0;

	if (!g || !(g->over_time = over_time_new()))
		return err_set(e, -ENOMEM, "%s: out of memory while reading it", name);
	g->d = d;
	g->haskell = dict_module(d, &haskell);
	censuses_init(&g->censuses, 0);
	event_bins_init(&g->bins, N_COLUMNS,
			1u << COUNT | 1u << MAJOR | 1u << GC_MS | 1u << COPIED);
	ghc_events_init(&g->events, on_event, g);
	while (r == 0 && input_piece(in, &piece))
		r = ghc_events_feed(&g->events, piece);
	if ((r == -EBADMSG || r == 0) && !ghc_events_begun(&g->events))
		return err_set(e, -EBADMSG,
			       "%s: the header of this eventlog is damaged at byte %" PRIu64, name,
			       g->events.offset);
	import_note_fault(in, info);
	if (r == 0 && ghc_events_ended(&g->events) &&
	    !ghc_events_has(&g->events, GHC_HEAP_PROF_SAMPLE_END))
		r = censuses_end(&g->censuses);
	if (r != -ENOMEM) {
		r = note_damage(g, r, info);
		if (r == 0)
			r = finish(g, ret_profile);
	}
	return r < 0 ? err_set(e, -ENOMEM, "%s: out of memory while reading it", name) : 0;
}
