/* GHC eventlogs, written event by event as ghc_events.h has them: for tests of what reads them. */
#ifndef MEMSCOPE_TESTS_EVENTLOG_FIXTURE_H
#define MEMSCOPE_TESTS_EVENTLOG_FIXTURE_H

#include "base/strbuf.h"
#include "import/ghc_events.h"

#include <string.h>

static struct strbuf eventlog;

static void eventlog_put(uint64_t v, int bytes)
{
	while (bytes--)
		strbuf_putc(&eventlog, (char)(v >> 8 * bytes));
}

static void eventlog_text(const char *s)
{
	strbuf_add(&eventlog, s, strlen(s) + 1);
}

static void eventlog_declare(uint16_t number, uint16_t size)
{
	eventlog_put(0x65746200, 4);
	eventlog_put(number, 2);
	eventlog_put(size, 2);
	eventlog_put(4, 4);
	strbuf_add(&eventlog, "some", 4);
	eventlog_put(0, 4);
	eventlog_put(0x65746500, 4);
}

/* Of GHC 9.4: every event that is understood, and one that is not. */
static void eventlog_begin(void)
{
	static const struct {
		uint16_t number, size;
	} types[] = {
		{ GHC_GC_START, 0 },
		{ GHC_GC_END, 0 },
		{ GHC_LOG_MSG, 0xffff },
		{ GHC_BLOCK_MARKER, 14 },
		{ GHC_USER_MSG, 0xffff },
		{ GHC_PROGRAM_ARGS, 0xffff },
		{ GHC_OSPROCESS_PID, 8 },
		{ GHC_WALL_CLOCK_TIME, 16 },
		{ GHC_HEAP_ALLOCATED, 12 },
		{ GHC_HEAP_SIZE, 12 },
		{ GHC_HEAP_LIVE, 12 },
		{ GHC_GC_STATS, 58 },
		{ GHC_USER_MARKER, 0xffff },
		{ GHC_BLOCKS_SIZE, 12 },
		{ GHC_HEAP_PROF_BEGIN, 0xffff },
		{ GHC_HEAP_PROF_COST_CENTRE, 0xffff },
		{ GHC_HEAP_PROF_SAMPLE_BEGIN, 8 },
		{ GHC_HEAP_PROF_SAMPLE_COST_CENTRE, 0xffff },
		{ GHC_HEAP_PROF_SAMPLE_STRING, 0xffff },
		{ GHC_HEAP_PROF_SAMPLE_END, 8 },
		{ GHC_HEAP_BIO_PROF_SAMPLE_BEGIN, 16 },
		{ GHC_PROF_SAMPLE_COST_CENTRE, 0xffff },
		{ GHC_PROF_BEGIN, 8 },
		{ GHC_IPE, 0xffff },
		{ 0, 4 }, /* a thread was made */
	};

	strbuf_free(&eventlog);
	eventlog_put(0x68647262, 4);
	eventlog_put(0x68657462, 4);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		eventlog_declare(types[i].number, types[i].size);
	eventlog_put(0x68657465, 4);
	eventlog_put(0x68647265, 4);
	eventlog_put(0x64617462, 4);
}

static void eventlog_end(void)
{
	eventlog_put(0xffff, 2);
}

static void eventlog_event(uint16_t number, uint64_t ns)
{
	eventlog_put(number, 2);
	eventlog_put(ns, 8);
}

/* Of those whose size varies: eventlog_size() behind the payload, with what this returned. */
static size_t eventlog_varying(uint16_t number, uint64_t ns)
{
	eventlog_event(number, ns);
	eventlog_put(0, 2);
	return eventlog.len;
}

static void eventlog_size(size_t begin)
{
	size_t size = eventlog.len - begin;

	eventlog.s[begin - 2] = (char)(size >> 8);
	eventlog.s[begin - 1] = (char)size;
}

static inline void eventlog_census(uint64_t ns)
{
	eventlog_event(GHC_HEAP_PROF_SAMPLE_BEGIN, ns);
	eventlog_put(1, 8);
}

static inline void eventlog_census_end(uint64_t ns)
{
	eventlog_event(GHC_HEAP_PROF_SAMPLE_END, ns);
	eventlog_put(1, 8);
}

static inline void eventlog_band(uint64_t ns, const char *name, uint64_t bytes)
{
	size_t begin = eventlog_varying(GHC_HEAP_PROF_SAMPLE_STRING, ns);

	eventlog_put(0, 1);
	eventlog_put(bytes, 8);
	eventlog_text(name);
	eventlog_size(begin);
}

/* `n` cost centres, the innermost first. */
static inline void eventlog_stack(uint64_t ns, const uint32_t *ids, uint8_t n, uint64_t bytes)
{
	size_t begin = eventlog_varying(GHC_HEAP_PROF_SAMPLE_COST_CENTRE, ns);

	eventlog_put(0, 1);
	eventlog_put(bytes, 8);
	eventlog_put(n, 1);
	for (uint8_t i = 0; i < n; i++)
		eventlog_put(ids[i], 4);
	eventlog_size(begin);
}

static inline void eventlog_cost_centre(uint32_t id, const char *label, const char *module, const char *place)
{
	size_t begin = eventlog_varying(GHC_HEAP_PROF_COST_CENTRE, 1);

	eventlog_put(id, 4);
	eventlog_text(label);
	eventlog_text(module);
	eventlog_text(place);
	eventlog_put(0, 1);
	eventlog_size(begin);
}

/* As GHC 9.4 and later write it: what an info table is of. */
static inline void eventlog_info_table(uint64_t address, const char *table, const char *type, const char *label,
				       const char *module, const char *place)
{
	size_t begin = eventlog_varying(GHC_IPE, 1);

	eventlog_put(address, 8);
	eventlog_text(table);
	eventlog_text("15"); /* the kind of its closures */
	eventlog_text(type);
	eventlog_text(label);
	eventlog_text(module);
	eventlog_text(place);
	eventlog_size(begin);
}

static inline void eventlog_bytes(uint16_t number, uint64_t ns, uint64_t bytes)
{
	eventlog_event(number, ns);
	eventlog_put(0, 4);
	eventlog_put(bytes, 8);
}

static inline void eventlog_message(uint16_t number, uint64_t ns, const char *text)
{
	size_t begin = eventlog_varying(number, ns);

	eventlog_text(text);
	eventlog_size(begin);
}

/* A block of `bytes` behind its marker, of a capability. */
static inline void eventlog_block(uint32_t bytes, uint16_t cap, uint64_t ns)
{
	eventlog_event(GHC_BLOCK_MARKER, ns);
	eventlog_put(24 + bytes, 4);
	eventlog_put(ns, 8);
	eventlog_put(cap, 2);
}

#endif
