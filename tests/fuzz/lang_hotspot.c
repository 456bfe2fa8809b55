/*
 * HotSpot as anyone may have made it: the memory of a process, with its description, a method and compiled code, of which
 * anything is changed. What is read ends, and names that come out of it are text.
 *
 *   place:8 { at:4 bytes:1 base:1 word:8 }…   the first 8 bytes are a frame's second word
 */
#include "base/bytes.h"
#include "hotspot_fixture.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	if (n == room)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			abort();
}

static bool change(struct hotspot_process *p, struct bytes *in)
{
	static const uint64_t bases[] = { 0, HSF_BIAS, HSF_BIAS + HSF_NMETHOD,
					  HSF_BIAS + HSF_CODE };
	uint8_t bytes, base;
	uint64_t word;
	uint32_t at;

	if (bytes_u32(in, &at) < 0 || bytes_u8(in, &bytes) < 0 || bytes_u8(in, &base) < 0 ||
	    bytes_u64(in, &word) < 0)
		return false;
	hsf_put(p, at % HSF_LEN, word + bases[base % 4], 1 + bytes % 8);
	return true;
}

static void decode(struct hotspot_process *p, const struct lang_runtime *rt,
		   const uint64_t words[2])
{
	static struct lang_frames all;

	p->reads = 0;
	memset(&all, 'x', sizeof(all));
	if (lang_decode_all(rt, &p->mem, words, &all) == LANG_DECODED) {
		if (!all.n || all.n > LANG_INLINED_MAX)
			abort();
		for (uint32_t i = 0; i < all.n; i++) {
			check_text(all.frame[i].function, sizeof(all.frame[i].function));
			check_text(all.frame[i].file, sizeof(all.frame[i].file));
		}
	}
}

static void look_at_threads(struct hotspot_process *p, const struct lang_runtime *rt)
{
	struct hotspot_waiter waiters[4];
	struct hotspot_counter counter;
	uint32_t threads;

	p->reads = 0;
	if (hotspot_monitors(rt, &p->mem, waiters, 4, &threads) > 4 || p->reads > 1 << 20)
		abort();
	hotspot_counter_find(&p->at, &p->mem, &counter, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct hotspot_process p;
	struct bytes in = bytes_of(data, len);
	struct lang_runtime rt;
	uint64_t place, words[2];
	int r;

	if (bytes_u64(&in, &place) < 0)
		return 0;
	hsf_init(&p);
	while (change(&p, &in))
		;
	r = lang_runtime_find(&p.at, NULL, &p.mem, &rt, NULL);
	if (r < 0 && r != -EAGAIN && r != -EOPNOTSUPP)
		abort();
	if (r < 0)
		return 0;
	if (rt.row.n_ranges > MS_LANG_RANGES || rt.row.hotspot.blob_bytes > MS_HOTSPOT_BYTES ||
	    !memchr(rt.name, 0, sizeof(rt.name)))
		abort();
	look_at_threads(&p, &rt);
	hsf_words(hsf_addr(HSF_METHOD), 0, MS_HOTSPOT_INTERPRETED | ((uint32_t)place & 0xffff),
		  words);
	decode(&p, &rt, words);
	hsf_words(hsf_addr(HSF_NMETHOD), place >> 63 ? (uint32_t)(place >> 32) & 0xffff : HSF_ID,
		  (uint32_t)place & (MS_HOTSPOT_AT | MS_HOTSPOT_EXACT), words);
	decode(&p, &rt, words);
	hsf_words(hsf_addr(HSF_STUB), 0, 0, words);
	decode(&p, &rt, words);
	return 0;
}
