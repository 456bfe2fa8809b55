#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

/* 1234567 → "1,234,567" into `out` (27 bytes are enough for any). */
static void group(uint64_t v, char out[32])
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

	for (int i = 0; i < n; i++) {
		*out++ = digits[i];
		if ((n - i) % 3 == 1 && i != n - 1)
			*out++ = ',';
	}
	*out = '\0';
}

/* One step of a scale: `div` of the base unit are one `name`. */
struct step {
	uint64_t div;
	const char *name;
};

static const struct step byte_steps[] = {
	{ 1, "B" },
	{ 1ULL << 10, "KiB" },
	{ 1ULL << 20, "MiB" },
	{ 1ULL << 30, "GiB" },
	{ 1ULL << 40, "TiB" },
	{ 1ULL << 50, "PiB" },
	{ 1ULL << 60, "EiB" },
	{ 0 },
};

static const struct step ns_steps[] = {
	{ 1, "ns" }, { 1000, "µs" }, { 1000 * 1000, "ms" }, { 1000 * 1000 * 1000, "s" }, { 0 },
};

/* v / div in parts of `parts`, rounded to the nearest. */
static unsigned __int128 parts_of(uint64_t v, uint64_t div, uint64_t parts)
{
	return ((unsigned __int128)v * parts + div / 2) / div;
}

/*
 * The largest unit of which there is at least one after rounding to tenths, so that 1023.97 KiB reads
 * 1.0 MiB and not 1024.0 KiB.
 */
static const struct step *step_of(uint64_t v, const struct step *step)
{
	while (step[1].div &&
	       (v >= step[1].div ||
		(step->div > 1 && parts_of(v, step->div, 10) >= step[1].div / step->div * 10)))
		step++;
	return step;
}

static struct unit_text in_unit(int64_t value, const struct step *step, uint8_t digits)
{
	const char *sign = value < 0 ? "-" : "";
	uint64_t v = magnitude(value), parts = 1;
	unsigned __int128 n;
	struct unit_text t;
	char num[32];

	if (step->div == 1) {
		group(v, num);
		snprintf(t.s, sizeof(t.s), "%s%s %s", sign, num, step->name);
		return t;
	}
	for (int i = 0; i < digits; i++)
		parts *= 10;
	n = parts_of(v, step->div, parts);
	group((uint64_t)(n / parts), num);
	snprintf(t.s, sizeof(t.s), "%s%s.%0*llu %s", sign, num, digits,
		 (unsigned long long)(n % parts), step->name);
	return t;
}

static struct unit_text scale(int64_t value, const struct step *steps)
{
	return in_unit(value, step_of(magnitude(value), steps), 1);
}

struct unit_text unit_bytes(int64_t bytes)
{
	return scale(bytes, byte_steps);
}

struct unit_range unit_bytes_range(int64_t low, int64_t high, bool plus)
{
	struct unit_text a = unit_bytes(low), b = unit_bytes(high);
	const char *sign_a = plus && low >= 0 ? "+" : "", *sign_b = plus && high >= 0 ? "+" : "";
	const struct step *step = step_of(magnitude(low), byte_steps);
	struct unit_range range;

	for (uint8_t digits = 2; low != high && digits < 19 && strcmp(a.s, b.s) == 0; digits++) {
		a = in_unit(low, step, digits);
		b = in_unit(high, step, digits);
	}
	if (low == high)
		snprintf(range.s, sizeof(range.s), "%s%s ± <1 B", sign_a, a.s);
	else
		snprintf(range.s, sizeof(range.s), "%s%s to %s%s", sign_a, a.s, sign_b, b.s);
	return range;
}

struct unit_text unit_ns(int64_t ns)
{
	return scale(ns, ns_steps);
}

struct unit_text unit_count(int64_t count)
{
	struct unit_text t;
	char num[32];

	group(magnitude(count), num);
	snprintf(t.s, sizeof(t.s), "%s%s", count < 0 ? "-" : "", num);
	return t;
}

struct unit_text unit_percent(int64_t part, int64_t whole)
{
	bool negative = (part < 0) != (whole < 0);
	uint64_t p = magnitude(part), w = magnitude(whole);
	unsigned __int128 permille;
	struct unit_text t;
	char num[32];

	if (!w) {
		snprintf(t.s, sizeof(t.s), "-");
		return t;
	}
	permille = ((unsigned __int128)p * 1000 + w / 2) / w;
	if (!permille && p) {
		snprintf(t.s, sizeof(t.s), "%s0.1%%", negative ? ">-" : "<");
		return t;
	}
	if (permille > UINT64_MAX)
		permille = UINT64_MAX;
	group((uint64_t)permille / 10, num);
	snprintf(t.s, sizeof(t.s), "%s%s.%u%%", negative && p ? "-" : "", num,
		 (unsigned)((uint64_t)permille % 10));
	return t;
}

struct unit_text unit_value(int64_t value, const char *unit)
{
	static const struct {
		const char *unit;
		int64_t factor;
		struct unit_text (*text)(int64_t);
	} known[] = {
		{ "nanoseconds", 1, unit_ns },
		{ "bytes", 1, unit_bytes },
		{ "count", 1, unit_count },
		{ "", 1, unit_count },
		{ "microseconds", 1000, unit_ns },
		{ "milliseconds", 1000 * 1000, unit_ns },
		{ "seconds", 1000 * 1000 * 1000, unit_ns },
		{ "kilobytes", 1 << 10, unit_bytes },
		{ "megabytes", 1 << 20, unit_bytes },
	};
	struct unit_text t;
	int64_t base;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(unit, known[i].unit) &&
		    !__builtin_mul_overflow(value, known[i].factor, &base))
			return known[i].text(base);
	if (!strcmp(unit, "byte-milliseconds"))
		snprintf(t.s, sizeof(t.s), "%.56s·s", unit_bytes(value / 1000).s);
	else
		snprintf(t.s, sizeof(t.s), "%.28s %.16s", unit_count(value).s, unit);
	return t;
}
