#include "base/hash.h"

#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t seed;

/* Before main(), so that no table can be older than the seed and no thread races for it. */
static void __attribute__((constructor)) hash_seed(void)
{
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uintptr_t)&seed ^
		       0x9e3779b97f4a7c15; /* early boot: ASLR is what there is */
}

uint32_t hash_bytes(const void *data, size_t len)
{
	return (uint32_t)XXH3_64bits_withSeed(data, len, seed);
}

uint64_t content_hash(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}
