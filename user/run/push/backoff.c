#include "run/push/backoff.h"

uint64_t backoff_next_ms(struct backoff *b, uint32_t chance, uint64_t retry_after_s)
{
	uint64_t most = BACKOFF_FIRST_MS, asked;

	for (uint32_t i = 0; i < b->failures && most < BACKOFF_MOST_MS; i++)
		most *= 2;
	if (most > BACKOFF_MOST_MS)
		most = BACKOFF_MOST_MS;
	b->failures++;
	most = most / 2 + (uint64_t)chance % (most / 2 + 1);
	asked = (retry_after_s < RETRY_AFTER_MOST_S ? retry_after_s : RETRY_AFTER_MOST_S) * 1000;
	return asked > most ? asked : most;
}
