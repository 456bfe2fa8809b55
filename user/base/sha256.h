/*
 * SHA-256 (FIPS 180-4) of bytes at hand: what a page's content security policy names its own script and style by.
 * Not for secrets or large files.
 */
#ifndef MEMSCOPE_BASE_SHA256_H
#define MEMSCOPE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(const void *data, size_t len, uint8_t out[static SHA256_BYTES]);

#endif
