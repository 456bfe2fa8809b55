#include "heap/snapshot/types.h"

#include "base/hash.h"
#include "elf/demangle.h"
#include "heap/snapshot/python.h"

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>

enum { NAME_MAX_BYTES = 256, STEPS_MAX = 4 };

#define PY_IS_TYPE  (1ULL << 31) /* Py_TPFLAGS_TYPE_SUBCLASS: its objects are types */
#define PY_HAVE_GC  (1ULL << 14)
#define PY_HEAPTYPE (1ULL << 9)
#define PY_PREHEADER                                                                               \
	(3ULL << 3) /* Py_TPFLAGS_MANAGED_WEAKREF, …_DICT: two words before the collector's */
#define PY_REFCOUNT_MAX (1ULL << 40)

/* An address that was looked at as a type. */
struct type_seen {
	uint64_t at;
	uint32_t cpython, rtti; /* the type; 0: it is none */
	uint64_t flags;
	UT_hash_handle hh;
};

struct finder {
	struct copy *copy;
	const struct heap_blocks *blocks;
	pid_t pid;
	struct types *t;
	bool oom;
};

/* --- memory --- */

/* Of the copy, or of what the copy leaves out: what images have read-only does not change. */
static bool read_at(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct finder *f = ctx;
	const struct heap_memory *mem = copy_memory(f->copy);
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	return mem->read(mem->ctx, addr, buf, len) ||
	       process_vm_readv(f->pid, &to, 1, &from, 1, 0) == (ssize_t)len;
}

static bool word_at(struct finder *f, uint64_t addr, uint64_t *ret)
{
	return addr % 8 == 0 && read_at(f, addr, ret, 8);
}

/* A text that ends within its bounds, of printable bytes. */
static bool text_at(struct finder *f, uint64_t addr, char text[NAME_MAX_BYTES])
{
	size_t n = 0;

	/* No further than to the end of a page at a time: what is behind may not be there. */
	while (n < NAME_MAX_BYTES) {
		size_t part = HEAP_PAGE - (addr + n) % HEAP_PAGE;

		if (part > NAME_MAX_BYTES - n)
			part = NAME_MAX_BYTES - n;
		if (!read_at(f, addr + n, text + n, part))
			return false;
		for (size_t end = n + part; n < end; n++) {
			if (!text[n])
				return n > 0;
			if ((uint8_t)text[n] < 0x20 || text[n] == 0x7f)
				return false;
		}
	}
	return false;
}

/* --- the table --- */

static uint32_t add(struct finder *f, enum type_by by, const char *name, uint64_t at)
{
	struct types *t = f->t;
	char *copy = strdup(name);

	if (t->n == t->room) {
		uint32_t room = 2 * t->room;
		struct type *more = reallocarray(t->type, room, sizeof(*more));

		if (more) {
			t->type = more;
			t->room = room;
		}
	}
	if (!copy || t->n == t->room) {
		free(copy);
		f->oom = true;
		return 0;
	}
	t->type[t->n] = (struct type){ by, copy, at, 0, 0 };
	return t->n++;
}

/* --- CPython --- */

/* Is it a type? Its type is one, too, and so on up to one that is its own. */
static bool is_python_type(struct finder *f, uint64_t at)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		uint64_t of, flags;

		if (!word_at(f, at + PYTHON_OB_TYPE, &of) ||
		    !word_at(f, of + PYTHON_TP_FLAGS, &flags) || !(flags & PY_IS_TYPE))
			return false;
		if (of == at)
			return true;
		at = of;
	}
	return false;
}

/* A class made by Python code has its module in its dict. */
static bool put_module(struct finder *f, uint64_t at, const char *name,
		       char full[NAME_MAX_BYTES + PYTHON_TEXT_MAX])
{
	struct python_memory mem = { read_at, f };
	char module[PYTHON_TEXT_MAX];
	uint64_t dict;

	if (!word_at(f, at + PYTHON_TP_DICT, &dict) || !dict ||
	    !python_str(&mem, python_dict_get(&mem, dict, "__module__"), module) ||
	    strcmp(module, "builtins") == 0)
		return false;
	snprintf(full, NAME_MAX_BYTES + PYTHON_TEXT_MAX, "%s.%s", module, name);
	return true;
}

static uint32_t find_python_type(struct finder *f, uint64_t at, uint64_t *ret_flags)
{
	char name[NAME_MAX_BYTES], full[NAME_MAX_BYTES + PYTHON_TEXT_MAX];
	uint64_t text;

	if (!is_python_type(f, at) || !word_at(f, at + PYTHON_TP_FLAGS, ret_flags) ||
	    !word_at(f, at + PYTHON_TP_NAME, &text) || !text_at(f, text, name))
		return 0;
	if (*ret_flags & PY_HEAPTYPE && !strchr(name, '.') && put_module(f, at, name, full))
		return add(f, TYPE_CPYTHON, full, at);
	return add(f, TYPE_CPYTHON, name, at);
}

/* --- C++ --- */

/* `at`: where objects point, behind a pointer to the type_info, whose second word is the name. */
static uint32_t find_rtti(struct finder *f, uint64_t at)
{
	char name[NAME_MAX_BYTES], mangled[NAME_MAX_BYTES + 2], out[DEMANGLE_OUT_MAX];
	uint64_t info, text, top;

	if (!word_at(f, at - 8, &info) || !word_at(f, at - 16, &top) || (int64_t)top > 0 ||
	    (int64_t)top < -(1 << 20) || !word_at(f, info + 8, &text) || !text_at(f, text, name))
		return 0;
	/* A type is no symbol: "_ZTS" makes one of it, whose name begins "typeinfo name for ". */
	snprintf(mangled, sizeof(mangled), "_ZTS%.*s", NAME_MAX_BYTES - 4,
		 name[0] == '*' ? name + 1 : name);
	if (!demangle(mangled, strlen(mangled), out) || strncmp(out, "typeinfo name for ", 18) != 0)
		return 0;
	return add(f, TYPE_RTTI, out + 18, at);
}

/* --- blocks --- */

static const struct type_seen *see(struct finder *f, uint64_t at)
{
	struct type_seen *seen;

	HASH_FIND(hh, f->t->seen, &at, sizeof(at), seen);
	if (seen)
		return seen;
	seen = hash_new(f->t->seen, at, &at);
	if (!seen) {
		f->oom = true;
		return NULL;
	}
	seen->cpython = find_python_type(f, at, &seen->flags);
	if (!seen->cpython)
		seen->rtti = find_rtti(f, at);
	return seen;
}

/* How many words are before an object of this type in its block. */
static uint32_t words_before(uint64_t flags)
{
	return flags & PY_HAVE_GC ? flags & PY_PREHEADER ? 4 : 2 : 0;
}

/* Could it be the address of a type at all? Most words are none: they are not looked up. */
static bool is_address(uint64_t word)
{
	return word % 8 == 0 && word >= 0x1000 && word < 1ULL << 47;
}

static void look_at(struct finder *f, uint32_t node)
{
	uint64_t words[6] = { 0 }, n;
	const uint8_t *bytes = copy_bytes(f->copy, f->blocks->rows[node].addr, &n);

	if (!bytes)
		return;
	memcpy(words, bytes, n < sizeof(words) ? n : sizeof(words));
	for (uint32_t before = 0; before <= 4; before += 2) {
		const struct type_seen *seen;

		if (!is_address(words[before + 1]) || !words[before] ||
		    words[before] >= PY_REFCOUNT_MAX || before + 2 > f->blocks->rows[node].words)
			continue;
		seen = see(f, words[before + 1]);
		if (seen && seen->cpython && words_before(seen->flags) == before) {
			f->t->of[node] = seen->cpython;
			f->t->object[node] = (uint8_t)(8 * before);
			return;
		}
	}
	if (is_address(words[0])) {
		const struct type_seen *seen = see(f, words[0]);

		f->t->of[node] = seen ? seen->rtti : 0;
	}
}

int types_find(struct copy *copy, const struct heap_blocks *blocks, pid_t pid,
	       struct types *ret_types)
{
	struct finder f = { copy, blocks, pid, ret_types, false };
	struct types *t = ret_types;

	*t = (struct types){ .room = 256 };
	t->type = calloc(t->room, sizeof(*t->type));
	t->of = calloc(blocks->n + 1, sizeof(*t->of));
	t->object = calloc(blocks->n + 1, 1);
	if (!t->type || !t->of || !t->object)
		f.oom = true;
	else
		add(&f, TYPE_UNKNOWN, "(unknown)", 0);
	for (uint32_t i = 0; i < blocks->n && !f.oom; i++) {
		look_at(&f, i);
		t->type[t->of[i]].blocks++;
		t->type[t->of[i]].bytes += 8 * (uint64_t)blocks->rows[i].words;
	}
	if (!f.oom)
		return 0;
	types_fini(t);
	return -ENOMEM;
}

void types_fini(struct types *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free((char *)t->type[i].name);
	free(t->type);
	free(t->of);
	free(t->object);
	hash_free(t->seen);
	*t = (struct types){ 0 };
}
