#include "symbolize/jitdump.h"

#include "base/arena.h"
#include "base/grow.h"
#include "base/hash.h"
#include "symbolize/wanted.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
	MAGIC = 0x4a695444,
	VERSION = 1,
	HEADER_BYTES = 40,
	RECORD_BYTES = 16,
	LOAD_BYTES = 40,
	MOVE_BYTES = 48,
	DEBUG_BYTES_MAX = 8 << 20,       /* of one function's lines …          */
	DEBUG_ALL_BYTES_MAX = 256 << 20, /* … and of all                     */
	MOVING_MAX = 1 << 18,            /* functions that are followed when any move   */
};

enum record_id { JIT_LOAD = 0, JIT_MOVE = 1, JIT_DEBUG_INFO = 2 };

/* A function at a place and time. */
struct code {
	uint64_t addr, size, time;
	uint64_t made_at; /* where its lines count from: it may have moved  */
	uint64_t index;
	uint64_t name_off;
	uint64_t debug_off, debug_len; /* of its DEBUG_INFO record's contents; 0: none */
	const char *name;
};

/* The newest LOAD of a code_index. */
struct by_index {
	UT_hash_handle hh;
	uint64_t index;
	struct code code;
};

struct place {
	const char *file;
	uint32_t line;
};

struct jitdump {
	struct arena names;
	struct wanted wanted; /* owner: 1 + number of the code */
	struct code *codes;
	uint32_t n, cap;
	struct place *places; /* one for each address asked for */
};

struct reader {
	int fd;
	struct jitdump *j;
	struct by_index *moving; /* only filled where code moves */
	bool moves;
	uint64_t debug_addr, debug_off, debug_len;
	uint64_t debug_budget;
};

static bool read_at(int fd, uint64_t off, void *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static int keep(struct jitdump *j, const struct code *code)
{
	if (!wanted_any(&j->wanted, code->addr, code->size))
		return 0;
	if (j->n == JITDUMP_KEPT_MAX)
		return -EFBIG;
	if (!GROW(j->codes, j->n, j->cap))
		return -ENOMEM;
	j->codes[j->n++] = *code;
	return 0;
}

static int remember(struct reader *r, const struct code *code)
{
	struct by_index *entry;

	HASH_FIND(hh, r->moving, &code->index, sizeof(code->index), entry);
	if (!entry && HASH_COUNT(r->moving) == MOVING_MAX)
		return 0;
	if (!entry)
		entry = hash_new(r->moving, index, &code->index);
	if (!entry)
		return -ENOMEM;
	entry->code = *code;
	return 0;
}

static int take_load(struct reader *r, uint64_t off, uint32_t len, uint64_t time)
{
	uint8_t b[LOAD_BYTES];
	struct code code;

	if (len < LOAD_BYTES || !read_at(r->fd, off, b, sizeof(b)))
		return 0;
	code = (struct code){
		.addr = u64_at(b + 16),
		.made_at = u64_at(b + 16),
		.size = u64_at(b + 24),
		.index = u64_at(b + 32),
		.time = time,
		.name_off = off + LOAD_BYTES,
	};
	if (r->debug_off && r->debug_addr == code.addr) {
		code.debug_off = r->debug_off;
		code.debug_len = r->debug_len;
	}
	r->debug_off = 0;
	if (r->moves && remember(r, &code) < 0)
		return -ENOMEM;
	return keep(r->j, &code);
}

static int take_move(struct reader *r, uint64_t off, uint32_t len, uint64_t time)
{
	struct by_index *entry;
	uint8_t b[MOVE_BYTES];
	uint64_t index;

	if (len < MOVE_BYTES || !read_at(r->fd, off, b, sizeof(b)))
		return 0;
	index = u64_at(b + 40);
	HASH_FIND(hh, r->moving, &index, sizeof(index), entry);
	if (!entry)
		return 0;
	entry->code.addr = u64_at(b + 24);
	entry->code.size = u64_at(b + 32);
	entry->code.time = time;
	return keep(r->j, &entry->code);
}

static int take_record(struct reader *r, uint32_t id, uint64_t off, uint32_t len, uint64_t time)
{
	uint8_t b[8];

	switch (id) {
	case JIT_LOAD:
		return take_load(r, off, len, time);
	case JIT_MOVE:
		r->moves = true;
		return take_move(r, off, len, time);
	case JIT_DEBUG_INFO:
		if (len > 16 && read_at(r->fd, off, b, sizeof(b))) {
			r->debug_addr = u64_at(b);
			r->debug_off = off + 8;
			r->debug_len = len - 8;
		}
		return 0;
	default:
		return 0;
	}
}

/* Up to the end, or to a record that does not add up. */
static int take_records(struct reader *r, uint64_t off)
{
	uint8_t b[RECORD_BYTES];

	for (uint32_t n = 0; n < JITDUMP_RECORDS_MAX && read_at(r->fd, off, b, sizeof(b)); n++) {
		uint32_t id = u32_at(b), len = u32_at(b + 4);
		int rc;

		if (len < RECORD_BYTES)
			break;
		rc = take_record(r, id, off + RECORD_BYTES, len - RECORD_BYTES, u64_at(b + 8));
		if (rc == -ENOMEM)
			return rc;
		if (rc < 0)
			break;
		off += len;
	}
	return 0;
}

static void forget_moving(struct reader *r)
{
	hash_free(r->moving);
}

/*
 * Two passes when code moves: what moved is only remembered when it is known that anything does,
 * since V8 moves nothing and makes a hundred thousand functions.
 */
static int take_all(struct reader *r, uint64_t off)
{
	int rc = take_records(r, off);

	if (rc == 0 && r->moves) {
		forget_moving(r);
		r->j->n = 0;
		r->debug_off = 0;
		rc = take_records(r, off);
	}
	forget_moving(r);
	return rc;
}

/* The latest last; of equal times the later in the file. */
static int compare_codes(const void *pa, const void *pb)
{
	const struct code *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->name_off > b->name_off) - (a->name_off < b->name_off);
}

static const char *read_name(struct reader *r, uint64_t off)
{
	char buf[JITDUMP_NAME_MAX];
	size_t len = 0;

	while (len < sizeof(buf)) {
		ssize_t n =
			pread(r->fd, buf + len, len ? sizeof(buf) - len : 256, (off_t)(off + len));
		char *end;

		if (n <= 0)
			break;
		end = memchr(buf + len, '\0', (size_t)n);
		if (end) {
			len = (size_t)(end - buf);
			break;
		}
		len += (size_t)n;
	}
	return len ? arena_strndup(&r->j->names, buf, len) : NULL;
}

struct entry {
	uint64_t addr;
	int32_t line;
	uint32_t nth;
	const char *file;
};

/* The next entry; `*file` is that of the one before. False at the end, or where it is damaged. */
static bool next_entry(const char **at, const char *end, const char **file, struct entry *ret)
{
	const char *nul;

	if (end - *at < 17)
		return false;
	ret->addr = u64_at((const uint8_t *)*at);
	ret->line = (int32_t)u32_at((const uint8_t *)*at + 8);
	nul = memchr(*at + 16, '\0', (size_t)(end - *at - 16));
	if (!nul)
		return false;
	if (strcmp(*at + 16, "\xff") != 0)
		*file = *at + 16;
	ret->file = *file;
	*at = nul + 1;
	return true;
}

static int compare_entries(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return (a->nth > b->nth) - (a->nth < b->nth);
}

/* Each address of `code` that `owner` has is on the line of the last entry at or below it. */
static void set_lines(struct jitdump *j, const struct code *code, uint32_t owner,
		      const struct entry *entries, uint32_t n)
{
	const char *file = NULL, *kept = NULL;
	uint32_t at = 0, i;

	i = wanted_first(&j->wanted, code->addr);
	for (; i < j->wanted.n && j->wanted.vaddrs[i] - code->addr < code->size; i++) {
		uint64_t addr = j->wanted.vaddrs[i] - code->addr + code->made_at;

		while (at < n && entries[at].addr <= addr)
			at++;
		if (at == 0 || j->wanted.owner[i] != owner)
			continue;
		if (entries[at - 1].file && entries[at - 1].file != file) {
			file = entries[at - 1].file;
			kept = *file ? arena_strndup(&j->names, file, strlen(file)) : NULL;
		}
		j->places[i].file = entries[at - 1].file ? kept : NULL;
		j->places[i].line = entries[at - 1].line > 0 ? (uint32_t)entries[at - 1].line : 0;
	}
}

static void read_lines(struct reader *r, const struct code *code, uint32_t owner)
{
	_cleanup_(freep) struct entry *entries = NULL;
	_cleanup_(freep) char *buf = NULL;
	const char *at, *end, *file = NULL;
	uint64_t claimed;
	uint32_t n = 0;

	if (!code->debug_off || code->debug_len <= 8 || code->debug_len > DEBUG_BYTES_MAX ||
	    code->debug_len > r->debug_budget)
		return;
	r->debug_budget -= code->debug_len;
	buf = malloc(code->debug_len);
	if (!buf || !read_at(r->fd, code->debug_off, buf, code->debug_len))
		return;
	claimed = u64_at((const uint8_t *)buf);
	/* An entry is 17 bytes and the file's name at least. */
	if (claimed > code->debug_len / 17)
		claimed = code->debug_len / 17;
	entries = calloc(claimed + 1, sizeof(*entries));
	at = buf + 8;
	end = buf + code->debug_len;
	while (entries && n < claimed && next_entry(&at, end, &file, &entries[n])) {
		entries[n].nth = n;
		n++;
	}
	if (!n)
		return;
	qsort(entries, n, sizeof(*entries), compare_entries);
	set_lines(r->j, code, owner, entries, n);
}

static int give_out(struct reader *r)
{
	struct jitdump *j = r->j;
	bool any = false;

	if (j->n)
		qsort(j->codes, j->n, sizeof(*j->codes), compare_codes);
	for (uint32_t i = j->n; i-- > 0;) {
		struct code *code = &j->codes[i];

		if (!wanted_give(&j->wanted, code->addr, code->size, i + 1))
			continue;
		code->name = read_name(r, code->name_off);
		read_lines(r, code, i + 1);
		any |= code->name != NULL;
	}
	return any ? 0 : -ENOENT;
}

int jitdump_read(int fd, const uint64_t *vaddrs, uint32_t n, struct jitdump **ret_dump)
{
	_cleanup_(jitdump_freep) struct jitdump *j = calloc(1, sizeof(*j));
	struct reader r = { .fd = fd, .j = j, .debug_budget = DEBUG_ALL_BYTES_MAX };
	uint8_t head[HEADER_BYTES];
	int rc;

	if (!j)
		return -ENOMEM;
	if (!read_at(fd, 0, head, sizeof(head)) || u32_at(head) != MAGIC ||
	    u32_at(head + 4) != VERSION || u32_at(head + 8) < HEADER_BYTES)
		return -EBADMSG;
	j->places = calloc(n + 1ul, sizeof(*j->places));
	if (!j->places || wanted_init(&j->wanted, vaddrs, n) < 0)
		return -ENOMEM;
	rc = take_all(&r, u32_at(head + 8));
	if (rc == 0)
		rc = give_out(&r);
	if (rc == 0)
		*ret_dump = TAKE_PTR(j);
	return rc;
}

void jitdump_free(struct jitdump *j)
{
	if (!j)
		return;
	wanted_fini(&j->wanted);
	arena_free(&j->names);
	free(j->places);
	free(j->codes);
	free(j);
}

int jitdump_find(const struct jitdump *j, uint64_t vaddr, struct jit_place *ret_place)
{
	uint32_t owner = wanted_owner(&j->wanted, vaddr), i;

	if (!owner || !j->codes[owner - 1].name)
		return -ENOENT;
	i = wanted_first(&j->wanted, vaddr);
	*ret_place = (struct jit_place){ j->codes[owner - 1].name, j->places[i].file,
					 j->places[i].line };
	return 0;
}
