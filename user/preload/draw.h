/*
 * The sampler's arithmetic: Poisson sampling by bytes.
 *
 * Sample points lie on the line of all bytes a thread asks for, at exponential distances of mean
 * `rate`. A block is a sample if a point falls into it, which happens with p = 1 - exp(-size/rate);
 * then it stands for size/p bytes and 1/p blocks (Horvitz and Thompson), which is right on average
 * for every size by itself. After a sample the next distance is drawn anew from the end of the
 * block: an exponential distribution has no memory.
 *
 * Nothing of libm, which would be mapped into every program; nothing that allocates or asks the
 * kernel. Relative errors are below 1e-9.
 */
#ifndef MEMSCOPE_PRELOAD_DRAW_H
#define MEMSCOPE_PRELOAD_DRAW_H

#include <stdint.h>
#include <string.h>

#define DRAW_RATE_DEFAULT (512.0 * 1024)
#define DRAW_RATE_MAX     0x1p40

/* Steele, Lea, Flood: SplitMix64. */
static inline uint64_t draw_mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static inline uint64_t draw_word(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15ULL;
	return draw_mix(*state);
}

/* Natural logarithm of a positive, normal number. */
static inline double draw_log(double x)
{
	uint64_t bits;
	double m, s, s2, sum = 0;
	int e;

	memcpy(&bits, &x, sizeof(bits));
	e = (int)(bits >> 52 & 0x7ff) - 1023;
	bits = (bits & ((1ULL << 52) - 1)) | 1023ULL << 52;
	memcpy(&m, &bits, sizeof(m));
	if (m > 1.4142135623730951) {
		m /= 2;
		e++;
	}
	/* ln m = 2 artanh s, |s| < 0.172 */
	s = (m - 1) / (m + 1);
	s2 = s * s;
	for (int i = 15; i >= 1; i -= 2)
		sum = sum * s2 + 1.0 / i;
	return e * 0.69314718055994531 + 2 * s * sum;
}

/* exp(-x), 0 <= x. */
static inline double draw_exp_minus(double x)
{
	double r, sum = 1, two;
	uint64_t bits;
	int k;

	if (x > 700)
		return 0;
	k = (int)(x * 1.4426950408889634 + 0.5);
	r = k * 0.69314718055994531 - x; /* |r| <= 0.35 */
	for (int i = 14; i >= 1; i--)
		sum = 1 + sum * r / i;
	bits = (uint64_t)(1023 - k) << 52;
	memcpy(&two, &bits, sizeof(two));
	return sum * two;
}

/* Bytes to the next sample point: a block of n bytes reaches it if n >= this. At least 1. */
static inline uint64_t draw_interval(uint64_t *state, double rate)
{
	/* 53 random bits in (0, 1] */
	double u = ((double)(draw_word(state) >> 11) + 1) * 0x1p-53;
	double x = -draw_log(u) * rate;

	return (uint64_t)x + 1;
}

/* What a sampled block of `size` bytes stands for, bytes. */
static inline double draw_weight(double size, double rate)
{
	double x = size / rate, x2 = x * x;

	/* x / (1 - exp(-x)) for small x: the series of the Bernoulli numbers. */
	if (x < 0.5)
		return rate * (1 + x / 2 +
			       x2 * (1.0 / 12 - x2 * (1.0 / 720 - x2 * (1.0 / 30240 - x2 / 1209600))));
	return size / (1 - draw_exp_minus(x));
}

#endif
