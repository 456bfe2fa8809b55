#include "heap/memory.h"

#include <string.h>

enum { PAGE_WORDS = HEAP_PAGE / 8 };

static bool all_equal(const uint64_t *words, uint64_t n)
{
	return memcmp(words, words + 1, (n - 1) * sizeof(*words)) == 0;
}

uint64_t heap_words_next(const uint64_t *words, uint64_t i, uint64_t n)
{
	while (i < n && !words[i])
		i += i % PAGE_WORDS == 0 && n - i >= PAGE_WORDS && all_equal(words + i, PAGE_WORDS)
			     ? PAGE_WORDS
			     : 1;
	return i;
}

const struct heap_map *heap_map_of(const struct heap_memory *mem, uint64_t addr)
{
	uint32_t low = 0, high = mem->n_maps;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (addr < mem->maps[mid].start)
			high = mid;
		else if (addr >= mem->maps[mid].end)
			low = mid + 1;
		else
			return &mem->maps[mid];
	}
	return NULL;
}

void heap_window_forget(struct heap_window *w)
{
	w->len = 0;
}

bool heap_window_word(struct heap_window *w, uint64_t addr, uint64_t *ret_word)
{
	if (addr < w->addr || addr - w->addr + 8 > w->len) {
		bool near = w->len && addr - w->addr < w->len + HEAP_WINDOW_LEAST;
		uint64_t len;

		if (addr >= w->limit || w->limit - addr < 8)
			return false;
		w->size = !near || !w->size           ? HEAP_WINDOW_LEAST
			  : w->size < HEAP_WINDOW / 2 ? 2 * w->size
						      : HEAP_WINDOW;
		len = w->size - addr % HEAP_PAGE;
		w->len = 0;
		if (len > w->limit - addr)
			len = w->limit - addr;
		if (!w->mem->read(w->mem->ctx, addr, w->bytes, (size_t)len))
			return false;
		w->loads++;
		w->addr = addr;
		w->len = len;
	}
	memcpy(ret_word, w->bytes + (addr - w->addr), sizeof(*ret_word));
	return true;
}
