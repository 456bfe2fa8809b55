#include "import/csv_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool csv_number(const char *s, double *ret_number)
{
	char *end;

	if (*s < '0' || *s > '9' || s[strspn(s, "0123456789.")] != 0)
		return false;
	*ret_number = strtod(s, &end);
	return *end == 0 && *ret_number < 1e18;
}

bool csv_time(const char *s, double *ret_s)
{
	struct tm tm = { .tm_isdst = -1 };
	double fraction = 0;
	const char *end;
	time_t t;

	if (csv_number(s, ret_s))
		return true;
	end = strptime(s, "%Y-%m-%d", &tm);
	if (!end || (*end != ' ' && *end != 'T'))
		return false;
	end = strptime(end + 1, "%H:%M:%S", &tm);
	if (!end || (*end && *end != '.'))
		return false;
	if (*end) {
		char digits[32];

		snprintf(digits, sizeof(digits), "0%s", end);
		if (!csv_number(digits, &fraction))
			return false;
	}
	t = mktime(&tm);
	*ret_s = (double)t + fraction;
	return t != (time_t)-1;
}
