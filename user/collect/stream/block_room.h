/*
 * How many live blocks the kernel's table may hold in a given amount of memory. Each live block
 * takes 128 bytes of slab (48 for key and value, 56 for the headers of hash element and allocator,
 * rounded up to the next size). Each place in the table, a power of two of them, takes 16 bytes
 * from the start. Measured with 10,000,000 blocks.
 */
#ifndef MEMSCOPE_COLLECT_STREAM_BLOCK_ROOM_H
#define MEMSCOPE_COLLECT_STREAM_BLOCK_ROOM_H

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
