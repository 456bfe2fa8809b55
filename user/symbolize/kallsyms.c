#include "symbolize/kallsyms.h"

#include "base/boot_file.h"
#include "base/grow.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#define KEPT_FILE    "kernel-symbols"
#define MODULES_FILE "module-symbols"

enum { BUF_BYTES = 64 << 10 };

/* `name` is an offset into the names; 0: not a function, it only ends the one before. */
struct row {
	uint64_t addr;
	uint32_t name;
	uint32_t local : 1, module : 31; /* by number; 0: of none that stays */
};

/* What is kept: the numbers of rows and of bytes of names, the rows, the names. */
struct kept {
	uint64_t n_rows, n_names;
	struct row rows[];
};

struct kallsyms {
	struct row *rows;
	uint32_t n, cap;
	struct strbuf names;
	const char *text; /* of all names */
	char module[64];  /* the last one that was read, and its number */
	uint32_t n_modules;
	bool some_addr;
	uint64_t stext, etext; /* 0: not found */
	struct boot_file file; /* where the rows are, if they were kept */
	bool borrowed;         /* the rows, and `n_names` bytes of names */
	uint64_t n_names;
};

static const char *row_name(const struct kallsyms *k, const struct row *row)
{
	return k->text + row->name;
}

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* The number of a module, whose symbols come one after the other; `rest`: what is behind a symbol's name. */
static uint32_t module_of(struct kallsyms *k, const char *rest, size_t len)
{
	/* BPF programs, and what the kernel makes and removes by itself. */
	static const char *const others[] = { "bpf", "__builtin__ftrace", "__builtin__kprobes" };

	if (len < 4 || rest[0] != '\t' || rest[1] != '[' || rest[len - 1] != ']' ||
	    len - 3 >= sizeof(k->module))
		return 0;
	rest += 2;
	len -= 3;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strlen(others[i]) == len && memcmp(others[i], rest, len) == 0)
			return 0;
	if (strlen(k->module) != len || memcmp(k->module, rest, len) != 0) {
		memcpy(k->module, rest, len);
		k->module[len] = '\0';
		k->n_modules++;
	}
	return k->n_modules & 0x7fffffff;
}

static int add_row(struct kallsyms *k, uint64_t addr, char type, const char *name, size_t len,
		   uint32_t module)
{

	if (!GROW(k->rows, k->n, k->cap))
		return -ENOMEM;
	k->rows[k->n] = (struct row){ .addr = addr,
				      .local = type == 't' || type == 'w',
				      .module = module & 0x7fffffff };
	if (is_text(type)) {
		k->rows[k->n].name = (uint32_t)k->names.len;
		strbuf_add(&k->names, name, len);
		strbuf_putc(&k->names, '\0');
	}
	k->n++;
	return strbuf_oom(&k->names) || k->names.len > UINT32_MAX / 2 ? -ENOMEM : 0;
}

/* "ADDR TYPE NAME[\t[MODULE]]"; other lines are skipped. */
static int add_line(struct kallsyms *k, const char *line, size_t len)
{
	const char *end = line + len, *at = line, *name;
	uint64_t addr = 0;

	for (; at < end && at - line < 16; at++) {
		if (*at >= '0' && *at <= '9')
			addr = addr << 4 | (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			addr = addr << 4 | (uint64_t)(*at - 'a' + 10);
		else
			break;
	}
	if (at == line || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return 0;
	name = at + 3;
	for (end = name; end < line + len && *end != '\t' && *end != ' ';)
		end++;
	if (end == name)
		return 0;
	k->some_addr |= addr != 0;
	if (end - name == 6 && memcmp(name, "_stext", 6) == 0)
		k->stext = addr;
	if (end - name == 6 && memcmp(name, "_etext", 6) == 0)
		k->etext = addr;
	return add_row(k, addr, at[1], name, (size_t)(end - name),
		       module_of(k, end, (size_t)(line + len - end)));
}

static int read_lines(struct kallsyms *k, int fd)
{
	_cleanup_(freep) char *buf = malloc(BUF_BYTES);
	size_t len = 0;

	if (!buf)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, buf + len, BUF_BYTES - len);
		char *at = buf, *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return len ? add_line(k, buf, len) : 0;
		len += (size_t)n;
		while ((end = memchr(at, '\n', len - (size_t)(at - buf)))) {
			int r = add_line(k, at, (size_t)(end - at));

			if (r < 0)
				return r;
			at = end + 1;
		}
		/* A line that fills the whole buffer is no symbol. */
		if (at == buf && len == BUF_BYTES)
			at = buf + len;
		len -= (size_t)(at - buf);
		memmove(buf, at, len);
	}
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* By address; of several at one, the name to show first, and what has none last. */
static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct row *a = pa, *b = pb;
	const struct kallsyms *k = ctx;
	const char *na = row_name(k, a), *nb = row_name(k, b);
	int r;

	if ((r = compare(a->addr, b->addr)) || (r = compare(!a->name, !b->name)) ||
	    (r = compare(a->local, b->local)) || (r = compare(strspn(na, "_"), strspn(nb, "_"))) ||
	    (r = compare(strlen(na), strlen(nb))))
		return r;
	return strcmp(na, nb);
}

/*
 * The kernel's own symbols come first and in order; only those of modules and BPF programs are to be sorted, and moved in
 * between where they belong. To sort all would take twice their memory.
 */
static int sort(struct kallsyms *k)
{
	uint32_t in_order = k->n ? 1 : 0, left, to = k->n, end;
	_cleanup_(freep) struct row *rest = NULL;

	while (in_order < k->n && k->rows[in_order - 1].addr <= k->rows[in_order].addr)
		in_order++;
	left = k->n - in_order;
	rest = calloc(left + 1ul, sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	memcpy(rest, k->rows + in_order, left * sizeof(*rest));
	qsort_r(rest, left, sizeof(*rest), compare_rows, k);
	while (left)
		k->rows[--to] = in_order && k->rows[in_order - 1].addr > rest[left - 1].addr
					? k->rows[--in_order]
					: rest[--left];
	/* Of several at one address. */
	for (uint32_t i = 0; i < k->n; i = end) {
		for (end = i + 1; end < k->n && k->rows[end].addr == k->rows[i].addr;)
			end++;
		if (end > i + 1)
			qsort_r(k->rows + i, end - i, sizeof(*k->rows), compare_rows, k);
	}
	return 0;
}

/* Keeps one row an address, and of those that name no function the first of each run. */
static void compact(struct kallsyms *k)
{
	struct row *rows;
	uint32_t n = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		const struct row *last = n ? &k->rows[n - 1] : NULL;

		if (last && (last->addr == k->rows[i].addr || (!last->name && !k->rows[i].name)))
			continue;
		k->rows[n++] = k->rows[i];
	}
	k->n = n;
	rows = realloc(k->rows, n * sizeof(*rows));
	if (rows)
		k->rows = rows;
}

int kallsyms_load(const char *path, struct kallsyms **ret_syms)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = calloc(1, sizeof(*k));
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	if (!k)
		return -ENOMEM;
	strbuf_putc(&k->names, '\0');
	r = read_lines(k, fd);
	if (r < 0)
		return r;
	if (k->names.len <= 1)
		return -ENOENT;
	if (!k->some_addr)
		return -EPERM;
	k->text = k->names.s;
	r = sort(k);
	if (r < 0)
		return r;
	compact(k);
	*ret_syms = TAKE_PTR(k);
	return 0;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	if (!k->borrowed)
		free(k->rows);
	strbuf_free(&k->names);
	boot_file_close(&k->file);
	free(k);
}

/* --- what is kept --- */

bool kallsyms_covers(const struct kallsyms *k, uint64_t addr)
{
	return k->stext < k->etext && addr >= k->stext && addr < k->etext;
}

/* Rows and names as they are here: the names of other rows among them take less than a copy would. */
int kallsyms_keep(const struct kallsyms *k)
{
	struct kept kept = { 0 };
	uint32_t first = 0, end;

	while (first < k->n && k->rows[first].addr < k->stext)
		first++;
	/* With the row of _etext, where the last function ends. */
	for (end = first; end < k->n && k->rows[end].addr <= k->etext;)
		end++;
	if (k->stext >= k->etext || end - first < 2)
		return -ENOENT;
	kept.n_rows = end - first;
	kept.n_names = k->names.len;
	return boot_file_write(
		KEPT_FILE,
		(const struct boot_part[]){ { &kept, sizeof(kept) },
					    { k->rows + first, kept.n_rows * sizeof(*k->rows) },
					    { k->names.s, kept.n_names } },
		3);
}

/*
 * Functions of modules that end where another one of the same module begins: what lies behind the last one may be made later, a BPF program
 * say, and so that one is left out.
 */
int kallsyms_modules_keep(const struct kallsyms *k, uint64_t sign)
{
	_cleanup_(freep) struct row *rows = calloc(k->n + 1ul, sizeof(*rows));
	_cleanup_(strbuf_free) struct strbuf names = { 0 };
	struct kept kept = { 0 };

	if (!rows)
		return -ENOMEM;
	strbuf_putc(&names, '\0');
	for (uint32_t i = 0; i < k->n; i++) {
		struct row row = k->rows[i];
		const struct row *next = i + 1 < k->n ? &k->rows[i + 1] : NULL;

		if (!row.module)
			continue;
		if (row.name && next && next->name && next->module == row.module) {
			row.name = (uint32_t)names.len;
			strbuf_puts(&names, row_name(k, &k->rows[i]));
			strbuf_putc(&names, '\0');
		} else {
			row.name = 0;
		}
		rows[kept.n_rows++] = row;
	}
	if (kept.n_rows < 2)
		return -ENOENT;
	if (strbuf_oom(&names))
		return -ENOMEM;
	kept.n_names = names.len;
	return boot_file_write(MODULES_FILE,
			       (const struct boot_part[]){ { &sign, sizeof(sign) },
							   { &kept, sizeof(kept) },
							   { rows, kept.n_rows * sizeof(*rows) },
							   { names.s, kept.n_names } },
			       4);
}

int kallsyms_parse(const void *data, size_t len, struct kallsyms **ret_syms)
{
	_cleanup_(kallsyms_freep) struct kallsyms *k = NULL;
	const struct kept *kept = data;

	if (len < sizeof(*kept) || kept->n_rows < 2 || kept->n_rows > UINT32_MAX / 2 ||
	    kept->n_names < 1 || kept->n_names > len ||
	    len != sizeof(*kept) + kept->n_rows * sizeof(*kept->rows) + kept->n_names)
		return -EBADMSG;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->borrowed = true;
	k->rows = (struct row *)(uintptr_t)kept->rows;
	k->n = (uint32_t)kept->n_rows;
	k->text = (const char *)(kept->rows + kept->n_rows);
	k->stext = kept->rows[0].addr;
	k->etext = kept->rows[k->n - 1].addr;
	/* Every name ends within them. What else is wrong with rows is seen when one is looked at: most never are. */
	if (k->text[0] || k->text[kept->n_names - 1])
		return -EBADMSG;
	k->n_names = kept->n_names;
	*ret_syms = TAKE_PTR(k);
	return 0;
}

/* What lies behind the first `skip` bytes of a file; closes it where that is nothing. */
static int take_file(struct boot_file file, size_t skip, struct kallsyms **ret_syms)
{
	struct kallsyms *k;

	if (file.len < skip ||
	    kallsyms_parse((const char *)file.data + skip, file.len - skip, &k) < 0) {
		boot_file_close(&file);
		return -ENOENT;
	}
	k->file = file;
	*ret_syms = k;
	return 0;
}

int kallsyms_kept(struct kallsyms **ret_syms)
{
	struct boot_file file;
	int r = boot_file_open(KEPT_FILE, &file);

	return r < 0 ? r : take_file(file, 0, ret_syms);
}

int kallsyms_modules_kept(uint64_t sign, struct kallsyms **ret_syms)
{
	struct boot_file file;
	int r = boot_file_open(MODULES_FILE, &file);

	if (r == 0 && (file.len < sizeof(sign) || memcmp(file.data, &sign, sizeof(sign)) != 0)) {
		boot_file_close(&file);
		r = -ENOENT;
	}
	return r < 0 ? r : take_file(file, sizeof(sign), ret_syms);
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t addr)
{
	uint32_t lo = 0, hi = k->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (k->rows[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || !k->rows[lo - 1].name ||
	    (k->borrowed && k->rows[lo - 1].name >= k->n_names) ||
	    addr - k->rows[lo - 1].addr >= KALLSYMS_FUNCTION_MAX)
		return NULL;
	return row_name(k, &k->rows[lo - 1]);
}
