#include "analyse/gamma.h"

#include <math.h>

double digamma(double x)
{
	double sum = 0, f;

	for (; x < 8; x++)
		sum -= 1 / x;
	f = 1 / (x * x);
	return sum + log(x) - 0.5 / x - f * (1 / 12.0 - f * (1 / 120.0 - f / 252));
}

double trigamma(double x)
{
	double sum = 0, f;

	for (; x < 8; x++)
		sum += 1 / (x * x);
	f = 1 / (x * x);
	return sum + 1 / x + f / 2 + f / x * (1 / 6.0 - f * (1 / 30.0 - f / 42));
}

double trigamma_inverse(double y)
{
	double low = 1e-3, high = 1e6;

	for (int i = 0; i < 100; i++) {
		double mid = sqrt(low * high);

		if (trigamma(mid) > y)
			low = mid;
		else
			high = mid;
	}
	return low;
}
