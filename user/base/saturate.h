/* Sums of numbers that anyone may have written: they stay at the least or the most, and never wrap. */
#ifndef MEMSCOPE_BASE_SATURATE_H
#define MEMSCOPE_BASE_SATURATE_H

#include <stdint.h>

static inline int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t subtract_saturating(int64_t a, int64_t b)
{
	int64_t rest;

	if (!__builtin_sub_overflow(a, b, &rest))
		return rest;
	return b < 0 ? INT64_MAX : INT64_MIN;
}

#endif
