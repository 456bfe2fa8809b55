/* Inside snapshot/: what ways to know types share. */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_TYPE_WAY_H
#define MEMSCOPE_HEAP_SNAPSHOT_TYPE_WAY_H

#include "heap/snapshot/types.h"

enum { TYPE_TEXT_MAX = 256, TYPE_WORDS = 6 };

struct type_finder {
	struct copy *copy;
	const struct heap_blocks *blocks;
	pid_t pid;
	struct types *t;
	struct snapshot *s; /* NULL: who refers to whom is not known yet */
	bool oom;
};

/* One way: names blocks that have no type yet, by type_set(). */
typedef void (*type_way)(struct type_finder *f);

void types_of_python(struct type_finder *f);
void types_of_cxx(struct type_finder *f);
void types_of_rust(struct type_finder *f);
void types_of_collections(struct type_finder *f);
void types_of_members(struct type_finder *f);
void types_of_text(struct type_finder *f);

/* Memory of the copy, or of what the copy leaves out: what images have read-only does not change. `ctx`: the finder. */
bool type_read(void *ctx, uint64_t addr, void *buf, size_t len);
/* false: `addr` is no multiple of 8, or not there. */
bool type_word(struct type_finder *f, uint64_t addr, uint64_t *ret);
/* A text that ends within its bounds, of printable bytes. */
bool type_text(struct type_finder *f, uint64_t addr, char text[TYPE_TEXT_MAX]);

/* No control bytes but for blanks and ends of lines. */
bool type_is_text(const uint8_t *bytes, uint64_t n);

/* Could the word be the address of something aligned? Most words are none: they are not looked up. */
static inline bool type_is_address(uint64_t word)
{
	return word % 8 == 0 && word >= 0x1000 && word < 1ULL << HEAP_ADDR_BITS;
}

/* A new type; 0: out of memory, f->oom. */
uint32_t type_add(struct type_finder *f, enum type_by by, const char *name, uint64_t at);
/* The object begins `object` bytes into its block. */
void type_set(struct type_finder *f, uint32_t node, uint32_t type, uint8_t object);
/* Each block without a type, with its first words; those it does not have are 0. Ends when memory is out. */
void type_each_unknown(struct type_finder *f,
		       void (*look)(struct type_finder *f, void *ctx, uint32_t node, const uint64_t words[TYPE_WORDS]),
		       void *ctx);

#endif
