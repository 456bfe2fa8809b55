/*
 * Counters of collections in memory that its process may write to as it likes, while it is read: as each version of CPython lays them out
 * with two interpreters, and as GHC does. Reading ends; no value is more than a runtime can have counted, and sums of them have none that
 * C does not define.
 *
 *   runtime:1 { what:1  offset:2  word:8 }…   what & 3: of the heap, CPython's variable, GHC's; 3: read now. what & 4: an address in the heap
 */
#include "analyse/gc_counts.h"
#include "base/bytes.h"
#include "heap/gc/gc.h"
#include "heap/ghc/ghc.h"
#include "heap/ghc/layout.h"
#include "proc/peek.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	HEAP = 0x5000,
	INTERPRETER = 0x2000,
	PYTHONS = 5,
	RUNTIMES,
	READS_MAX = 64,
	GIL_OF_38 = 344
};

/* The names that are looked for. */
__attribute__((visibility("default"))) uint64_t _PyRuntime[96];
uint64_t stats[64], mblocks_allocated, GC_coll_max_pause;

static _Alignas(64) uint8_t heap[HEAP];
static uint8_t *mblock; /* while GHC's heap is searched */

/* As each was when its reader was opened. */
static struct begun {
	struct gc_reader *reader;
	uint8_t heap[HEAP];
	uint64_t runtime[sizeof(_PyRuntime) / 8], stats[sizeof(stats) / 8];
} begun[RUNTIMES];

/* Memory of this process, but for what is not made here. */
bool peek(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	const struct {
		const void *at;
		size_t len;
	} parts[] = {
		{ heap, sizeof(heap) },
		{ _PyRuntime, sizeof(_PyRuntime) },
		{ stats, sizeof(stats) },
		{ &mblocks_allocated, sizeof(mblocks_allocated) },
		{ &GC_coll_max_pause, sizeof(GC_coll_max_pause) },
		{ mblock, mblock ? GHC_MBLOCK : 0 },
	};

	(void)pid;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		uint64_t off = addr - (uintptr_t)parts[i].at;

		if (off < parts[i].len && len <= parts[i].len - off) {
			memcpy(buf, (const uint8_t *)parts[i].at + off, len);
			return true;
		}
	}
	return false;
}

bool peek_may(pid_t pid, uint64_t addr, size_t len)
{
	(void)pid;
	(void)addr;
	(void)len;
	return true;
}

static void put(void *at, size_t off, uint64_t word)
{
	memcpy((uint8_t *)at + off, &word, 8);
}

static void put32(void *at, size_t off, uint32_t word)
{
	memcpy((uint8_t *)at + off, &word, 4);
}

/* generation0 and the counts of three generations */
static void put_collector(void *at, size_t off)
{
	put(at, off + 96, (uintptr_t)at + off + 24);
	for (uint32_t i = 0; i < 3; i++)
		put(at, off + 128 + 24ULL * i, 90 / (i * 10 + 1));
}

static void lay_python(int version)
{
	static const uint16_t interpreters[PYTHONS] = { 32, 32, 40, 40, 632 };
	static const uint16_t next[PYTHONS] = { 0, 0, 0, 0, 7264 };
	static const uint16_t collector[PYTHONS] = { 0, 616, 648, 112, 7400 };

	put(_PyRuntime, interpreters[version], (uintptr_t)heap);
	if (version == 0)
		put_collector(_PyRuntime, GIL_OF_38);
	put(heap, next[version], (uintptr_t)heap + INTERPRETER);
	for (size_t i = 0; version && i < 2; i++)
		put_collector(heap + i * INTERPRETER, collector[version]);
}

static void lay_ghc(void)
{
	uint8_t *room = mmap(NULL, 3 * GHC_MBLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *bd;

	mblock = (uint8_t *)(((uintptr_t)room + GHC_MBLOCK) & ~(uintptr_t)(GHC_MBLOCK - 1));
	if (room == MAP_FAILED || mprotect(mblock, GHC_MBLOCK, PROT_READ | PROT_WRITE) < 0)
		abort();
	bd = mblock + GHC_FIRST_BLOCK * GHC_BD_BYTES;
	put(bd, GHC_BD_START, (uintptr_t)mblock + GHC_FIRST_BLOCK * GHC_BLOCK);
	put(bd, GHC_BD_GEN, (uintptr_t)heap);
	put32(bd, GHC_BD_BLOCKS, GHC_MBLOCK_BLOCKS);
	for (uint32_t i = 0; i < 2; i++) {
		put32(heap, i * GHC_GEN_BYTES + GHC_GEN_NO, i);
		put32(heap, i * GHC_GEN_BYTES + GHC_GEN_COLLECTIONS, 40 - 38 * i);
		put(heap, i * GHC_GEN_BYTES + 120, (uintptr_t)heap + GHC_GEN_BYTES); /* to */
	}
	put32(stats, 0, 42);
	put32(stats, 4, 2);
	put(stats, 136, 12345); /* gc_elapsed_ns */
	GC_coll_max_pause = (uintptr_t)heap + 0x1000;
	mblocks_allocated = 5;
}

static void begin_all(void)
{
	for (int i = 0; i < RUNTIMES; i++) {
		struct begun *b = &begun[i];

		memset(heap, 0, sizeof(heap));
		memset(_PyRuntime, 0, sizeof(_PyRuntime));
		memset(stats, 0, sizeof(stats));
		if (i < PYTHONS)
			lay_python(i);
		else
			lay_ghc();
		if (gc_reader_open(getpid(), &b->reader) < 0 ||
		    strcmp(gc_reader_runtime(b->reader), i < PYTHONS ? "CPython" : "GHC") != 0)
			abort();
		memcpy(b->heap, heap, sizeof(heap));
		memcpy(b->runtime, _PyRuntime, sizeof(_PyRuntime));
		memcpy(b->stats, stats, sizeof(stats));
	}
	mblock = NULL;
}

static void check_value(int64_t value)
{
	if (value != GC_UNKNOWN && (value < 0 || value > GC_COUNTED_MAX))
		abort();
}

static void look(struct gc_reader *reader, struct gc_counts *g, uint64_t now)
{
	struct gc_counters c;
	int r = gc_reader_read(reader, &c);

	if (r < 0 && r != -ESRCH && r != -EAGAIN)
		abort();
	if (r < 0)
		return;
	if (c.n_kinds > GC_KINDS || c.count > GC_COUNTED_MAX || c.major > GC_COUNTED_MAX)
		abort();
	for (uint32_t i = 0; i < c.n_kinds; i++)
		if (c.kinds[i].count > GC_COUNTED_MAX || !memchr(c.kinds[i].name, 0, GC_KIND_NAME))
			abort();
	check_value(c.time_ns);
	check_value(c.longest_ns);
	check_value(c.live_bytes);
	check_value(c.heap_bytes);
	gc_counts_look(g, &c, now);
}

static void put_words(struct gc_reader *reader, struct gc_counts *g, struct bytes in)
{
	static const struct {
		void *at;
		size_t words;
	} areas[] = { { heap, sizeof(heap) / 8 },
		      { _PyRuntime, sizeof(_PyRuntime) / 8 },
		      { stats, sizeof(stats) / 8 } };
	uint64_t word, now = 1;
	uint16_t offset;
	uint8_t what;

	while (now < READS_MAX && bytes_u8(&in, &what) == 0 && bytes_u16(&in, &offset) == 0 &&
	       bytes_u64(&in, &word) == 0) {
		if ((what & 3) == 3)
			look(reader, g, ++now);
		else
			put(areas[what & 3].at, offset % areas[what & 3].words * 8,
			    word + (what & 4 ? (uintptr_t)heap : 0));
	}
	look(reader, g, ++now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct begun *b = &begun[size ? data[0] % RUNTIMES : 0];
	struct gc_totals totals = { 0 };
	struct gc_sample sample;
	struct gc_counts g;

	if (!size)
		return 0;
	if (!begun[0].reader)
		begin_all();
	memcpy(heap, b->heap, sizeof(heap));
	memcpy(_PyRuntime, b->runtime, sizeof(_PyRuntime));
	memcpy(stats, b->stats, sizeof(stats));
	gc_counts_begin(&g, size & 1, 0);
	put_words(b->reader, &g, bytes_of(data + 1, size - 1));
	for (int i = 0; i < 3; i++) {
		gc_totals_add(&totals, gc_totals_row(&totals, "runtime"), &g);
		gc_totals_live(&totals, 0, &g);
	}
	gc_totals_sample(&totals, &sample);
	gc_sample_heap(&sample, &g);
	if (sample.count < 0 || sample.major < 0 || sample.time_ns < GC_UNKNOWN)
		abort();
	return 0;
}
