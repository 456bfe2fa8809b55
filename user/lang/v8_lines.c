/*
 * From bytecode and compiled code to lines of source (src/codegen/source-position-table.cc, source-position.h).
 *
 * A table has an entry for each place, as differences from the one before (the first: from -1 and 0):
 *
 *   code offset        signed; -1 - n where it is no statement's begin
 *   source position    signed: bit 0 whether it is not in JavaScript; 30 bits of the character's number, from 1 on;
 *                      16 bits of the number of the inlined function, from 1 on, 0: none
 *
 * Numbers are 7 bits a byte, lowest first, the highest bit set but for the last; the sign is in bit 0. A Script has the
 * ends of its lines once somebody asked for a line, else they are counted here.
 */
#include "lang/v8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TABLE_MAX = 16 << 20, /* bytes */
	SOURCE_MAX = 32 << 20,
	PART = 16384,
	STEP = 65536,
	SOURCES = 32, /* that are remembered … */
	SAMPLES = 8,  /* … by so many parts … */
	SAMPLE = 256, /* … of so many bytes */
};

bool v8_stream_open(const struct v8_reader *r, uint64_t array, struct v8_stream *s)
{
	int64_t n = v8_length(r, array);

	memset(s, 0, sizeof(*s));
	s->mem = r->mem;
	if (n < 0 || n > TABLE_MAX)
		return false;
	s->at = array - 1 + r->rt->array_data;
	s->end = s->at + (uint64_t)n;
	return true;
}

bool v8_stream_ended(const struct v8_stream *s)
{
	return s->lost || (s->next == s->n && s->at >= s->end);
}

uint8_t v8_stream_byte(struct v8_stream *s)
{
	if (s->next == s->n) {
		uint64_t n = s->end - s->at;

		if (v8_stream_ended(s)) {
			s->lost = true;
			return 0;
		}
		s->n = (uint16_t)(n < sizeof(s->part) ? n : sizeof(s->part));
		s->next = 0;
		if (!lang_read(s->mem, s->at, s->part, s->n)) {
			s->lost = true;
			s->next = s->n;
			return 0;
		}
		s->at += s->n;
	}
	return s->part[s->next++];
}

uint64_t v8_stream_number(struct v8_stream *s)
{
	uint64_t value = 0;
	uint8_t byte;

	for (int shift = 0; shift < 70; shift += 7) {
		byte = v8_stream_byte(s);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	s->lost = true;
	return 0;
}

static int64_t signed_number(struct v8_stream *s)
{
	uint64_t n = v8_stream_number(s);

	return (int64_t)(n >> 1 ^ (0 - (n & 1)));
}

struct v8_position v8_position_of(uint64_t raw)
{
	return (struct v8_position){
		.offset = raw & 1 ? -1 : (int64_t)(raw >> 1 & 0x3fffffff) - 1,
		.inlined = (int32_t)(raw >> 31 & 0xffff) - 1,
	};
}

int v8_positions(const struct v8_reader *r, uint64_t table, int64_t at,
		 struct v8_position *ret_before, struct v8_position *ret_after)
{
	struct v8_position none = { .offset = -1, .inlined = -1 }, before = none, after = none;
	int64_t code = V8_ENTRY;
	uint64_t raw = 0;
	struct v8_stream s;

	if (!v8_stream_open(r, table, &s))
		return -EIO;
	while (!v8_stream_ended(&s)) {
		int64_t more = signed_number(&s);

		raw += (uint64_t)signed_number(&s);
		code += more >= 0 ? more : -1 - more;
		if (s.lost)
			return -EIO;
		if (code > at) {
			after = v8_position_of(raw);
			break;
		}
		before = v8_position_of(raw);
	}
	*ret_before = before;
	*ret_after = after;
	return 0;
}

/* The first of the ends that is not before `offset`. */
static uint32_t line_by_ends(const struct v8_reader *r, uint64_t ends, int64_t offset)
{
	int64_t lo = 0, hi = v8_length(r, ends);

	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;
		uint64_t word;

		if (!v8_word(r, ends, r->rt->array_data + 8 * (uint32_t)mid, &word) ||
		    word & 0xffffffff)
			return 0;
		if ((int64_t)word >> 32 < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return hi < 0 ? 0 : (uint32_t)lo + 1;
}

static bool is_line_end(uint16_t c, uint16_t next)
{
	return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

/* Ends of lines among characters [from, to). -1: they cannot be read. */
static int64_t ends_between(const struct v8_reader *r, const struct v8_chars *c, uint32_t from,
			    uint32_t to)
{
	static uint8_t part[2 * PART];
	int64_t lines = 0;

	for (uint32_t done = from; done < to;) {
		uint32_t left = to - done, n = left < PART - 1 ? left : PART - 1;
		uint32_t read = done + n < c->n ? n + 1 : n; /* with the one behind */

		if (!lang_read(r->mem, c->at + ((uint64_t)done << c->two_bytes), part,
			       (size_t)read << c->two_bytes))
			return -1;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t k = i + 1 < read ? i + 1 : i;
			uint16_t one = c->two_bytes ? (uint16_t)(part[2 * i] | part[2 * i + 1] << 8)
						    : part[i];
			uint16_t two = c->two_bytes ? (uint16_t)(part[2 * k] | part[2 * k + 1] << 8)
						    : part[k];

			lines += is_line_end(one, two);
		}
		done += n;
	}
	return lines;
}

/*
 * Of large sources, what has been counted: tsc.js has 9 MB, which took 10 ms for each of 7,800 places (2026-11-23). A source is known
 * again by where it is, how long it is, and bytes of it from everywhere.
 */
struct counted {
	struct v8_chars chars;
	uint8_t parts[SAMPLES][SAMPLE];
	uint32_t *ends; /* of lines, before character STEP, 2 STEP, … */
	uint32_t n;
	uint64_t used;
};

static bool take_samples(const struct v8_reader *r, const struct v8_chars *c,
			 uint8_t parts[SAMPLES][SAMPLE])
{
	uint64_t len = (uint64_t)c->n << c->two_bytes;

	for (uint32_t i = 0; i < SAMPLES; i++)
		if (!lang_read(r->mem, c->at + (len - SAMPLE) / (SAMPLES - 1) * i, parts[i],
			       SAMPLE))
			return false;
	return true;
}

static struct counted *counted_of(const struct v8_reader *r, const struct v8_chars *c)
{
	static struct counted all[SOURCES];
	static uint64_t uses;
	uint8_t parts[SAMPLES][SAMPLE];
	struct counted *oldest = &all[0];

	if (!take_samples(r, c, parts))
		return NULL;
	for (uint32_t i = 0; i < SOURCES; i++) {
		struct counted *it = &all[i];

		if (it->ends && it->chars.at == c->at && it->chars.n == c->n &&
		    it->chars.two_bytes == c->two_bytes &&
		    !memcmp(it->parts, parts, sizeof(parts))) {
			it->used = ++uses;
			return it;
		}
		if (it->used < oldest->used)
			oldest = it;
	}
	free(oldest->ends);
	*oldest = (struct counted){ .chars = *c, .used = ++uses };
	memcpy(oldest->parts, parts, sizeof(parts));
	oldest->ends = calloc(SOURCE_MAX / STEP, sizeof(*oldest->ends));
	return oldest->ends ? oldest : NULL;
}

/* Ends of lines before the last multiple of STEP that is not behind `offset`. -1: they cannot be read. */
static int64_t ends_until(const struct v8_reader *r, const struct v8_chars *c, uint32_t offset)
{
	uint32_t steps = offset / STEP;
	struct counted *it = steps ? counted_of(r, c) : NULL;

	if (!it)
		return steps ? -1 : 0;
	for (; it->n < steps; it->n++) {
		int64_t more = ends_between(r, c, it->n * STEP, (it->n + 1) * STEP);

		if (more < 0)
			return -1;
		it->ends[it->n] = (it->n ? it->ends[it->n - 1] : 0) + (uint32_t)more;
	}
	return it->ends[steps - 1];
}

static uint32_t line_by_source(const struct v8_reader *r, uint64_t source, int64_t offset)
{
	int64_t before, behind;
	struct v8_chars c;

	if (v8_flat(r, source, &c) < 0 || offset > c.n || offset >= SOURCE_MAX)
		return 0;
	before = ends_until(r, &c, (uint32_t)offset);
	behind = ends_between(r, &c, (uint32_t)offset / STEP * STEP, (uint32_t)offset);
	return before < 0 || behind < 0 ? 0 : (uint32_t)(before + behind + 1);
}

uint32_t v8_line(const struct v8_reader *r, uint64_t script, int64_t offset)
{
	uint64_t ends, source, first;
	uint32_t line = 0;

	if (offset < 0)
		return 0;
	if (v8_word(r, script, r->rt->script_lines, &ends) && v8_is(r, ends, r->rt->type_array))
		line = line_by_ends(r, ends, offset);
	else if (v8_word(r, script, r->rt->script_source, &source) && v8_is_pointer(source))
		line = line_by_source(r, source, offset);
	/* Of a program that embeds JavaScript in something else. */
	if (line && v8_word(r, script, r->rt->script_name + 8, &first) && !(first & 0xffffffff) &&
	    first >> 32 < 1 << 24)
		line += (uint32_t)(first >> 32);
	return line;
}
