/*
 * Numbers for people: one formatter for every screen and file, independent of the locale.
 *
 * Bytes are counted in powers of 1024 and say so (KiB, MiB, GiB), because the kernel's, pprof's and
 * the allocators' own figures are; 12.3 MiB here is pprof's 12.3MB. Durations are decimal.
 *
 * The text lives in the returned struct, so it may be used in place: unit_bytes(n).s
 */
#ifndef MEMSCOPE_BASE_UNITS_H
#define MEMSCOPE_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

struct unit_text {
	char s[64];
};

struct unit_text unit_bytes(int64_t bytes);   /* 512 B, 1.0 KiB, 12.3 MiB            */
struct unit_text unit_ns(int64_t ns);         /* 950 ns, 12.3 µs, 4.5 ms, 1,234.5 s   */
struct unit_text unit_count(int64_t count);   /* 1,234,567                            */

/*
 * An interval of bytes: "1.1 MiB to 1.4 MiB", with as many digits as distinguish its ends; "1.1 MiB ± <1 B"
 * when whole bytes do not. `plus`: what is not negative has a sign, too.
 */
struct unit_range {
	char s[144];
};
struct unit_range unit_bytes_range(int64_t low, int64_t high, bool plus);

/* `part` of `whole`: 12.3%, <0.1% for what is not nothing; "-" when there is no whole. */
struct unit_text unit_percent(int64_t part, int64_t whole);

/*
 * A value in a unit as pprof spells it: nanoseconds, microseconds, milliseconds, seconds and bytes,
 * kilobytes, megabytes as above, count as a bare number, any other unit named after the number. What was held, times how long, is
 * in byte-milliseconds: 12.3 MiB·s.
 */
struct unit_text unit_value(int64_t value, const char *unit);

#endif
