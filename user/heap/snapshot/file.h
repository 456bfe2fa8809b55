/*
 * A snapshot as a file, which answers the same questions on any machine (little-endian, as all that memscope runs on).
 *
 *   header    64 bytes, struct file_header
 *   sections  each from a multiple of 64 bytes on, in any order
 *   table     one struct file_section for each; where the header says, its checksum is in the header
 *
 * A section is an array of records of one size. Those marked * must be there, others are left out where they would be empty. Kinds that a
 * reader does not know are skipped; a change to a record is a new kind or a new FILE_VERSION. Arrays are as they are used, uncompressed:
 * a reader maps them. Checksums are XXH3 (64 bits) of a section's bytes; those of FILE_CONTENTS are in its frames.
 *
 *   FILE_FACTS *          one struct file_facts: which process, when, how
 *   FILE_STRINGS *        texts, each with a NUL; a text's number is where it begins; 0 is ""; no control bytes
 *   FILE_LABELS           struct file_label
 *   FILE_USES             struct file_use: sums of each allocator
 *   FILE_TYPES *          struct file_type; 0 is "no type"
 *   FILE_BLOCKS *         struct heap_block: 48 bits of address and 16 that are 0 or its owner's number, u32 words of 8
 *                         bytes, u32 resident words; by address. A node of the graph is its index here: n of them
 *   FILE_TYPE_OF *        u32 for each node
 *   FILE_OBJECT *         u8 for each node: where in its block its object begins, in bytes
 *   FILE_LENGTHS          u32 for each node: how many items, letters or bytes it has, of CPython's objects; 2^32 - 1: not known
 *   FILE_BROUGHT_BY       u8 for each node: the runtime that brought it (exact.h), whose objects may move; 0: none
 *   FILE_FIRST *          u64, n + 1: the edges of node i are [first[i], first[i + 1])
 *   FILE_EDGES *          u32 to which node, u32 from which byte of its block
 *   FILE_REVERSE_FIRST *, FILE_REVERSE_EDGES *   the same edges the other way round
 *   FILE_ROOTS *          struct file_root, by node; `name` is the text of a variable, a module or what a runtime calls it
 *   FILE_LINK_NAMES       struct file_link_name, by node and place: names of what edges leave: entries of a dict's table
 *   FILE_FIELD_NAMES      struct file_link_name, by type and place from where its objects begin: names of their fields
 *   FILE_THREADS          struct file_thread
 *   FILE_MAPS             struct file_map: what was mapped, by address
 *   FILE_REGISTERS        u64, STOP_REGS_MAX for each thread: only with contents
 *   FILE_OWNERS           struct file_owner: arenas of allocators; blocks and parts have their numbers
 *   FILE_PARTS            struct heap_part: what allocators hold besides blocks in use, by address
 *   FILE_UNKNOWN          struct heap_range: stretches of heaps that were not walked
 *   FILE_COLLECTIONS      struct file_collection
 *   FILE_COLLECTION_OF    u32 for each node: the collection that it belongs to, from 1 on, or a string's length (struct collections); 0: none
 *   FILE_TRACE            one struct file_trace: allocations were traced before the snapshot; without it there is none of the next five
 *   FILE_SITES            struct site (sites.h): who allocated blocks; 0 is "not known"
 *   FILE_STACKS           struct site_stack; 0 is "not known"
 *   FILE_STACK_FRAMES     struct site: the frames of all stacks
 *   FILE_STACK_OF         u32 for each node: the stack that allocated it
 *   FILE_AGES             u32 for each node: how many ms before the snapshot that was; 2^32 - 1: before it was traced
 *   FILE_SAID             u32: texts, what is missing or guessed, a sentence each
 *   FILE_RUNS             struct file_run: which stretches of memory the contents are, by address
 *   FILE_FRAMES           u64: where each frame of FILE_CONTENTS begins, and where the last ends
 *   FILE_CONTENTS         the bytes of all runs behind each other, in pieces of 1 MiB, each a frame of zstd
 *
 * What a file has of the memory itself (enum file_contents):
 *
 *   none    nothing: addresses, sizes, types, who refers to whom, and names that the program's text has: of variables, classes, modules,
 *           and of attributes. Keys of other dicts, strings, registers are not in it.
 *   words   of each word of 8 bytes that is in memory what readers of layouts need: addresses of something that is mapped, numbers
 *           below 2^24, pairs of numbers below 2^16. Everything else is zero: texts of 4 letters or more, floating-point numbers, keys,
 *           hashes. Rows of letters in 32 bits each (wchar_t) are zero, too. So containers have their lengths and members,
 *           but no text.
 *   all     every byte.
 *
 * A file is private (mode 0600), appears under its name when it is complete and on disk, and leaves nothing behind otherwise.
 * A hostile one is refused: whatever an answer indexes by is checked when it is opened.
 */
#ifndef MEMSCOPE_HEAP_SNAPSHOT_FILE_H
#define MEMSCOPE_HEAP_SNAPSHOT_FILE_H

#include "heap/snapshot/snapshot.h"

#define FILE_MAGIC "MSHEAP\r\n"

enum { FILE_VERSION = 1, FILE_ALIGN = 64, FILE_SECTIONS_MAX = 40, FILE_FRAME = 1 << 20 };

enum file_kind {
	FILE_FACTS = 1,
	FILE_STRINGS,
	FILE_LABELS,
	FILE_USES,
	FILE_TYPES,
	FILE_BLOCKS,
	FILE_TYPE_OF,
	FILE_OBJECT,
	FILE_FIRST,
	FILE_EDGES,
	FILE_REVERSE_FIRST,
	FILE_REVERSE_EDGES,
	FILE_ROOTS,
	FILE_LINK_NAMES,
	FILE_THREADS,
	FILE_MAPS,
	FILE_REGISTERS,
	FILE_OWNERS,
	FILE_PARTS,
	FILE_UNKNOWN,
	FILE_BROUGHT_BY,
	FILE_COLLECTIONS,
	FILE_COLLECTION_OF,
	FILE_FIELD_NAMES,
	FILE_RUNS,
	FILE_FRAMES,
	FILE_CONTENTS,
	FILE_LENGTHS,
	FILE_TRACE,
	FILE_SITES,
	FILE_STACKS,
	FILE_STACK_FRAMES,
	FILE_STACK_OF,
	FILE_AGES,
	FILE_SAID,
	FILE_KINDS
};

struct file_header {
	char magic[8];
	uint32_t version;
	uint32_t n_sections;
	uint64_t bytes;          /* of the whole file                    */
	uint64_t table;          /* where the table is                   */
	uint64_t table_checksum;
	uint64_t reserved[3];    /* 0                                    */
};

struct file_section {
	uint32_t kind, record;   /* bytes of a record                    */
	uint64_t at, bytes;
	uint64_t checksum;
};

/* Texts are numbers of FILE_STRINGS. */
struct file_facts {
	uint32_t pid, contents;
	uint64_t taken_ns;       /* since 1970                           */
	uint64_t pause_ns, copy_ns, copied, unreadable;
	uint64_t words;          /* that were looked at                  */
	uint64_t unknown;        /* bytes of heaps that were not walked  */
	uint32_t n_missed;
	uint32_t comm, exe, container, kernel, machine;
	uint64_t reserved[4];
};

struct file_label {
	uint32_t key, value;
};

struct file_amount {
	uint64_t blocks, bytes, resident;
};

/* The amounts of struct heap_use, in its order. */
struct file_use {
	uint32_t allocator, caveat, arenas, caches, objects, reserved;
	struct file_amount live, mapped, cached, fast, free, top, metadata, unknown;
};

struct file_type {
	uint32_t name, by;       /* by: file_type_number()               */
	uint64_t at;
};

struct file_root {
	uint32_t node, kind;     /* kind: file_root_number()             */
	uint32_t thread, name;
	uint64_t at;
};

/* As struct heap_owner. */
struct file_owner {
	uint32_t allocator, arena;
	uint64_t metadata, held;
};

/* As struct collection (collection.h). */
struct file_collection {
	uint32_t kind, in, table; /* kind: the text of collection_name() */
	uint32_t unused;         /* beyond 4 GiB it stays there          */
	uint64_t at, elements, live, blocks, bytes;
};

struct file_link_name {
	uint32_t node;           /* or type                              */
	int32_t at;              /* in bytes                             */
	uint32_t name, reserved;
};

struct file_trace {
	uint64_t traced_ns;
	uint64_t lost;           /* calls that were missed               */
	uint64_t reserved[2];
};

struct file_thread {
	uint32_t tid, is_stopped, n_regs, reserved;
};

struct file_map {
	uint64_t start, end, rss;
	uint32_t kind, reserved; /* enum heap_map_kind                   */
};

struct file_run {
	uint64_t addr, bytes;
};

_Static_assert(sizeof(struct file_header) == 64 && sizeof(struct file_section) == 32 &&
		       sizeof(struct file_facts) == 120 && sizeof(struct file_use) == 216,
	       "the file's layout");
_Static_assert(sizeof(struct heap_block) == 16 && sizeof(struct graph_edge) == 8 &&
		       sizeof(struct heap_part) == 16 && sizeof(struct heap_range) == 16 &&
		       sizeof(struct site) == 16 && sizeof(struct site_stack) == 16,
	       "these are records of the file: a change to them is a new FILE_VERSION");
_Static_assert(HEAP_PART_KINDS == 9 && HEAP_MAP_ANON == 5,
	       "their numbers are in files: new kinds come last, here with the new count; another order is a new FILE_VERSION");

/*
 * Kinds whose numbers in the program are in another order, which may change: a new one has a new number here. One without is
 * written as memory of no known allocator, or as no type.
 */
uint32_t file_root_number(uint32_t kind);
uint32_t file_type_number(uint32_t by);
/* -1: there is no such number. */
int file_root_kind(uint32_t number);
int file_type_by(uint32_t number);

/* --- reading --- */

/*
 * Maps the file; what answers need lies in it, and nothing is read that is not asked for but for checks. `folder`: where unpacked contents
 * lie meanwhile, without a name. -EBADMSG: it is no snapshot, or a damaged one, which the sentence says; else as open(2).
 */
int snapshot_file_open(const char *path, const char *folder, struct snapshot **ret_snapshot, struct err *e);
/* Does the file at `path` begin as a snapshot does? */
bool snapshot_file_is(const char *path);
/* Of bytes in memory, which stay the caller's and outlive the snapshot; for tests. `path` for sentences. */
int snapshot_file_read(const uint8_t *data, uint64_t len, const char *path, const char *folder, struct snapshot **ret_snapshot,
		       struct err *e);

/* The name of an entry of a dict's table, by the file; NULL: it has none. */
const char *snapshot_file_link_name(const struct snapshot *s, uint32_t node, uint32_t at);
/* The name of a field of a type's objects. */
const char *snapshot_file_field_name(const struct snapshot *s, uint32_t type, int32_t at);
/* The text of that number. */
const char *snapshot_file_text(const struct snapshot *s, uint32_t text);

/* For snapshot_free(). */
void snapshot_stored_free(struct snapshot_stored *stored);

/* --- writing --- */

struct snapshot_writer;

struct snapshot_write {
	enum file_contents contents;
	/* The name of a root that has one: of a variable or a module. */
	bool (*root_name)(void *ctx, const struct snapshot_root *root, char *name, size_t cap);
	void *ctx;
};

/* Where it will be written, so that what is wrong with that is known before a process is stopped. -EEXIST: it is no regular file. */
int snapshot_writer_new(const char *path, struct snapshot_writer **ret_writer, struct err *e);
/* All of it, on disk and under its name. -ENOSPC: it does not fit, with both figures in the sentence. Once. */
int snapshot_writer_put(struct snapshot_writer *w, struct snapshot *s, const struct snapshot_write *how, uint64_t *ret_bytes,
			struct err *e);
/* Leaves nothing, unless it was put. */
void snapshot_writer_free(struct snapshot_writer *w);
DEFINE_CLEANUP(struct snapshot_writer *, snapshot_writer_freep, snapshot_writer_free)

#endif
