/*
 * HotSpot as anyone may have made it: the memory of a process, with its description, a method and compiled code, of which
 * anything is changed. What is read ends, and names that come out of it are text.
 *
 *   place:8 { at:4 bytes:1 base:1 word:8 }…   the first 8 bytes are a frame's second word
 */
#include "hotspot_fixture.h"
#include "lang_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { READS_MAX = 1 << 20 };

static const uint64_t bases[] = { 0, HSF_BIAS, HSF_BIAS + HSF_NMETHOD, HSF_BIAS + HSF_CODE };

static void look_at_threads(struct hotspot_process *p, const struct lang_runtime *rt)
{
	struct hotspot_waiter waiters[4];
	struct hotspot_counter counter;
	uint32_t threads;

	if (hotspot_monitors(rt, &p->memory.mem, waiters, 4, &threads) > 4 ||
	    p->memory.reads > READS_MAX)
		abort();
	hotspot_counter_find(&p->at, &p->memory.mem, &counter, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct hotspot_process p;
	struct bytes in = bytes_of(data, len);
	struct lang_runtime rt;
	uint64_t place, words[2];

	if (bytes_u64(&in, &place) < 0)
		return 0;
	hsf_init(&p);
	lang_change(&p.memory, &in, true, bases);
	if (!lang_find(&p.memory, &p.at, NULL, READS_MAX, &rt))
		return 0;
	if (rt.row.n_ranges > MS_LANG_RANGES || rt.row.hotspot.blob_bytes > MS_HOTSPOT_BYTES)
		abort();
	look_at_threads(&p, &rt);
	hsf_words(hsf_addr(HSF_METHOD), 0, MS_HOTSPOT_INTERPRETED | ((uint32_t)place & 0xffff),
		  words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	hsf_words(hsf_addr(HSF_NMETHOD), place >> 63 ? (uint32_t)(place >> 32) & 0xffff : HSF_ID,
		  (uint32_t)place & (MS_HOTSPOT_AT | MS_HOTSPOT_EXACT), words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	hsf_words(hsf_addr(HSF_STUB), 0, 0, words);
	lang_check_decode_all(&rt, &p.memory, words, READS_MAX);
	return 0;
}
