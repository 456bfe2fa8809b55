/* The timestamps of tables over time: YYYY-MM-DD HH:MM:SS (or with a T, or with a fraction) of local time, or seconds
 * since 1970. */
#ifndef MEMSCOPE_IMPORT_CSV_TIME_H
#define MEMSCOPE_IMPORT_CSV_TIME_H

#include <stdbool.h>

/* Digits, with a fraction or not; no sign, no exponent, no "nan". */
bool csv_number(const char *s, double *ret_number);
bool csv_time(const char *s, double *ret_s);

#endif
