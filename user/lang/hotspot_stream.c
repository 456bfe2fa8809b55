/*
 * HotSpot's compressed numbers (code/compressedStream.hpp, utilities/unsigned5.hpp): the first byte is the number
 * if it is small; else up to four more are added, each shifted by 6 bits more than the one before, until one is small.
 * Since JDK 20 a byte is never 0, so one is taken off of each.
 */
#include "lang/hotspot.h"

#include <string.h>

enum { SHIFT = 6, BYTES_MAX = 5, HIGH = 192, LINES_MAX = 70000 };

void hotspot_stream_open(struct hotspot_stream *s, const struct lang_memory *mem, uint64_t at,
			 uint64_t end, bool no_zeros)
{
	s->mem = mem;
	s->at = at;
	s->end = end;
	s->n = s->next = 0;
	s->no_zeros = no_zeros;
	s->lost = end < at;
}

static uint8_t byte_next(struct hotspot_stream *s)
{
	if (s->next == s->n && !s->lost) {
		uint64_t rest = s->end - s->at;

		s->n = rest < sizeof(s->part) ? (uint16_t)rest : (uint16_t)sizeof(s->part);
		s->next = 0;
		s->lost = !s->n || !lang_read(s->mem, s->at, s->part, s->n);
		s->at += s->n;
	}
	return s->lost ? 0 : s->part[s->next++];
}

uint32_t hotspot_stream_number(struct hotspot_stream *s)
{
	uint8_t less = s->no_zeros ? 1 : 0;
	uint32_t sum = 0;

	for (int i = 0; i < BYTES_MAX; i++) {
		uint8_t b = byte_next(s);

		if (s->lost || b < less) {
			s->lost = true;
			return 0;
		}
		sum += (uint32_t)(b - less) << (SHIFT * i);
		/* 191 and 192 are each the first that goes on: HIGH counts what was taken off. */
		if (b < HIGH)
			break;
	}
	return sum;
}

static int32_t number_signed(struct hotspot_stream *s)
{
	uint32_t n = hotspot_stream_number(s);

	return (int32_t)(n >> 1 ^ (0 - (n & 1)));
}

/*
 * Pairs of what is to be added to the bci and to the line: in one byte, bci:5 line:3; or, after 0xff, two signed
 * numbers. 0 ends the table. Pairs need not be sorted.
 */
uint32_t hotspot_line(struct hotspot_stream *table, uint32_t bci)
{
	uint32_t at = 0, line = 0, best = 0, best_at = 0;

	for (int i = 0; i < LINES_MAX; i++) {
		uint8_t b = byte_next(table);

		if (!b || table->lost)
			break;
		if (b == 0xff) {
			at += (uint32_t)number_signed(table);
			line += (uint32_t)number_signed(table);
			if (table->lost)
				break;
		} else {
			at += b >> 3;
			line += b & 7;
		}
		if (at == bci)
			return line;
		if (at < bci && at >= best_at) {
			best_at = at;
			best = line;
		}
	}
	return best;
}
