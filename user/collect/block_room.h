/*
 * How many live blocks the kernel's table may have in so much memory. Each is 128 bytes of the slab when
 * it is there (its key and value are 48, a hash element's header and the allocator's are 56, and the next
 * size is 128), and there are 16 bytes for each place in the table, a power of two of them, at once.
 * Measured with 10,000,000 blocks.
 */
#ifndef MEMSCOPE_COLLECT_BLOCK_ROOM_H
#define MEMSCOPE_COLLECT_BLOCK_ROOM_H

#include <stdint.h>

#define BLOCK_BYTES       128
#define BLOCK_PLACE_BYTES 16

static inline uint32_t block_room(uint64_t bytes)
{
	uint64_t n = bytes / (BLOCK_BYTES + BLOCK_PLACE_BYTES), places = 1;

	while (places < n)
		places *= 2;
	if (n * BLOCK_BYTES + places * BLOCK_PLACE_BYTES > bytes)
		n = (bytes - places * BLOCK_PLACE_BYTES) / BLOCK_BYTES;
	return (uint32_t)n;
}

#endif
