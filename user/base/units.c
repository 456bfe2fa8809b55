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

/* v / div in tenths, rounded to the nearest. */
static uint64_t tenths(uint64_t v, uint64_t div)
{
	return v / div * 10 + (uint64_t)(((unsigned __int128)(v % div) * 10 + div / 2) / div);
}

/*
 * In the largest unit of which there is at least one after rounding, so that 1023.97 KiB reads
 * 1.0 MiB and not 1024.0 KiB.
 */
static struct unit_text scale(int64_t value, const struct step *step)
{
	const char *sign = value < 0 ? "-" : "";
	uint64_t v = magnitude(value);
	struct unit_text t;
	char num[32];

	while (step[1].div &&
	       (v >= step[1].div ||
		(step->div > 1 && tenths(v, step->div) >= step[1].div / step->div * 10)))
		step++;
	if (step->div == 1) {
		group(v, num);
		snprintf(t.s, sizeof(t.s), "%s%s %s", sign, num, step->name);
	} else {
		uint64_t t10 = tenths(v, step->div);

		group(t10 / 10, num);
		snprintf(t.s, sizeof(t.s), "%s%s.%u %s", sign, num, (unsigned)(t10 % 10),
			 step->name);
	}
	return t;
}

struct unit_text unit_bytes(int64_t bytes)
{
	return scale(bytes, byte_steps);
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
	snprintf(t.s, sizeof(t.s), "%.28s %.16s", unit_count(value).s, unit);
	return t;
}
