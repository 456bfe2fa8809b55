#include "heap/image_cell.h"

#include "base/fd_stat.h"
#include "base/file_cell.h"
#include "base/hash.h"
#include "base/put.h"
#include "elf/demangle.h"
#include "elf/elf_objects.h"
#include "elf/elf_syms.h"
#include "elf/ghc_version.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLE, GHC_VERSION, GHC_NAMES, NAMES };
enum { SECONDS_MAX = 30, CPU_S = 20, NAMES_MAX = 8, KNOWN_MAX = 256 };
enum { ANSWER_BYTES_MAX = 64 << 20 };

/* --- in the cell: which:1 and names, or vaddr:8×n; out a number:8, or a text for each address --- */

static int put_variable(struct elf_file *elf, struct bytes question, struct strbuf *answer)
{
	const char *names[NAMES_MAX + 1] = { NULL };
	struct elf_object found = { 0 };
	struct bytes name;

	for (int i = 0; i < NAMES_MAX && question.len; i++) {
		if (bytes_cstr(&question, &name) < 0)
			return -EBADMSG;
		names[i] = (const char *)name.data;
	}
	elf_object_find(elf, names, &found);
	put_u64(answer, found.vaddr);
	return 0;
}

/* --- names of GHC's code --- */

static bool decode(const struct elf_sym *sym, char *text, size_t cap)
{
	char name[DEMANGLE_IN_MAX], plain[DEMANGLE_OUT_MAX];
	size_t len;

	if (sym->name_len >= sizeof(name))
		return false;
	memcpy(name, sym->name, sym->name_len);
	name[sym->name_len] = '\0';
	if (demangle_ghc(name, sym->name_len, plain)) {
		snprintf(text, cap, "%.*s", (int)cap - 1, plain);
		return true;
	}
	/* The run-time system's own: stg_ap_2_upd_info. */
	len = strlen(name);
	if (len > 5 && strcmp(name + len - 5, "_info") == 0)
		name[len - 5] = '\0';
	snprintf(text, cap, "%.*s", (int)cap - 1, name);
	return false;
}

/* The index of the first symbol behind `vaddr`. */
static uint32_t first_behind(const struct elf_syms *syms, uint64_t vaddr)
{
	uint32_t low = 0, high = elf_syms_count(syms);

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (elf_syms_at(syms, mid).vaddr <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* What is local to a function lies right before it. */
static bool next_function(const struct elf_syms *syms, uint64_t vaddr, char *text, size_t cap)
{
	uint32_t i = syms ? first_behind(syms, vaddr) : 0;
	struct elf_sym sym;

	if (!syms || i >= elf_syms_count(syms))
		return false;
	sym = elf_syms_at(syms, i);
	return decode(&sym, text, cap);
}

struct naming {
	const char *path;
	const struct elf_syms *syms; /* NULL: it has none */
};

static void name_of_ghc(const struct naming *x, uint64_t vaddr, char *name, size_t cap)
{
	char text[256];
	struct elf_sym sym;
	const char *file = strrchr(x->path, '/');

	*name = '\0';
	if (x->syms && elf_syms_find(x->syms, vaddr, &sym) == 0 && sym.vaddr == vaddr)
		decode(&sym, name, cap);
	if (*name)
		return;
	if (next_function(x->syms, vaddr, text, sizeof(text)))
		snprintf(name, cap, "before %.200s, %.24s+0x%llx", text, file ? file + 1 : "",
			 (unsigned long long)vaddr);
	else
		snprintf(name, cap, "%.200s+0x%llx", file ? file + 1 : "",
			 (unsigned long long)vaddr);
}

/* --- names of other code --- */

static void name_of_symbol(const struct naming *x, uint64_t vaddr, char *name, size_t cap)
{
	char mangled[DEMANGLE_IN_MAX], plain[DEMANGLE_OUT_MAX];
	struct elf_sym sym;

	*name = '\0';
	if (!x->syms || elf_syms_find(x->syms, vaddr, &sym) < 0 || sym.vaddr != vaddr ||
	    sym.name_len >= sizeof(mangled))
		return;
	memcpy(mangled, sym.name, sym.name_len);
	mangled[sym.name_len] = '\0';
	if (demangle(mangled, sym.name_len, plain))
		snprintf(name, cap, "%.*s", (int)cap - 1, plain);
}

static int put_names(struct elf_file *elf, const char *path, uint8_t which, struct bytes question,
		     struct strbuf *answer)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	_cleanup_(freep) uint64_t *vaddrs = malloc(question.len + 1);
	uint32_t n = (uint32_t)(question.len / sizeof(*vaddrs));
	struct naming naming = { .path = path };
	char name[HEAP_NAME_MAX];

	if (!vaddrs || question.len % sizeof(*vaddrs))
		return -EBADMSG;
	memcpy(vaddrs, question.data, question.len);
	if (which == GHC_NAMES)
		elf_syms_load(elf, &syms, NULL);
	else
		elf_syms_load_at(elf, vaddrs, n, &syms, NULL);
	naming.syms = syms;
	for (uint32_t i = 0; i < n; i++) {
		if (which == GHC_NAMES)
			name_of_ghc(&naming, vaddrs[i], name, sizeof(name));
		else
			name_of_symbol(&naming, vaddrs[i], name, sizeof(name));
		strbuf_add(answer, name, strlen(name) + 1);
	}
	return 0;
}

static int read_image(void *ctx, const struct file_in_cell *f, struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct bytes question = f->question;
	uint8_t which;
	int r = bytes_u8(&question, &which);

	(void)ctx;
	if (r == 0)
		r = elf_file_open(f->fd, f->name, &elf, NULL);
	if (r < 0)
		return r;
	if (which == VARIABLE)
		return put_variable(elf, question, answer);
	if (which != GHC_VERSION)
		return put_names(elf, f->name, which, question, answer);
	put_u64(answer, ghc_version_read(elf));
	return 0;
}

static void work(const struct cell_given *given)
{
	file_cell_work(given, read_image, NULL);
}

static const struct cell_kind cell = {
	.name = "heap",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = CPU_S,
	.files = 8,
};
CELL_KIND(cell);

/* --- who asks --- */

static int ask(int fd, const char *path, const struct strbuf *question, struct talk *ret)
{
	static struct cell_patience patience;
	static const struct file_cell c = { .kind = &cell,
					    .what = "its variables and functions",
					    .answer_max = ANSWER_BYTES_MAX,
					    .seconds = SECONDS_MAX,
					    .patience = &patience };

	return file_cell_ask(&c, fd, path, question, ret, NULL);
}

/* Answers by file: many processes have one, and each may be asked about again and again. What a file cost in vain it costs once. */
static struct known {
	uint64_t dev, ino, size, mtime_ns, question;
	uint64_t number;
} known[KNOWN_MAX];
static uint32_t n_known;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

enum { KEY_BYTES = offsetof(struct known, number) };

static bool key_of(int fd, const struct strbuf *question, struct known *ret)
{
	struct stat st;

	if (fd_stat(fd, &st) < 0)
		return false;
	*ret = (struct known){ st.st_dev,
			       st.st_ino,
			       (uint64_t)st.st_size,
			       (uint64_t)st.st_mtim.tv_sec * 1000000000 +
				       (uint64_t)st.st_mtim.tv_nsec,
			       content_hash(question->s, question->len),
			       0 };
	return true;
}

static bool find_known(struct known *key)
{
	uint32_t n, i = 0;

	pthread_mutex_lock(&known_lock);
	n = n_known < KNOWN_MAX ? n_known : KNOWN_MAX;
	while (i < n && memcmp(&known[i], key, KEY_BYTES) != 0)
		i++;
	if (i < n)
		key->number = known[i].number;
	pthread_mutex_unlock(&known_lock);
	return i < n;
}

static void remember(const struct known *k)
{
	pthread_mutex_lock(&known_lock);
	known[n_known++ % KNOWN_MAX] = *k;
	pthread_mutex_unlock(&known_lock);
}

static uint64_t ask_number(int fd, const char *path, const struct strbuf *question)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	struct known key;
	struct bytes b;
	int r;

	if (strbuf_oom(question) || !key_of(fd, question, &key))
		return 0;
	if (find_known(&key))
		return key.number;
	r = ask(fd, path, question, &t);
	b = talk_bytes(&t);
	if (r == 0 && (bytes_u64(&b, &key.number) < 0 || b.len))
		key.number = 0;
	if (r == 0 || r == -ETIMEDOUT || r == -EBADMSG) /* else it says nothing of the file */
		remember(&key);
	return key.number;
}

uint64_t heap_image_variable(int fd, const char *path, const char *const *names)
{
	_cleanup_(strbuf_free) struct strbuf q = { 0 };

	put_u8(&q, VARIABLE);
	for (; *names; names++)
		strbuf_add(&q, *names, strlen(*names) + 1);
	return ask_number(fd, path, &q);
}

uint32_t heap_image_ghc_version(int fd, const char *path)
{
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	uint64_t version;

	put_u8(&q, GHC_VERSION);
	version = ask_number(fd, path, &q);
	return version <= UINT32_MAX ? (uint32_t)version : 0;
}

static int ask_names(uint8_t which, int fd, const char *path, const uint64_t *vaddrs, uint32_t n,
		     heap_name_fn fn, void *ctx)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	struct bytes b, name;
	int r;

	put_u8(&q, which);
	strbuf_add(&q, vaddrs, n * sizeof(*vaddrs));
	r = ask(fd, path, &q, &t);
	if (r < 0)
		return r;
	b = talk_bytes(&t);
	for (uint32_t i = 0; i < n; i++) {
		if (bytes_cstr(&b, &name) < 0 || name.len >= HEAP_NAME_MAX)
			return -EBADMSG;
		if (name.len)
			fn(ctx, i, (const char *)name.data);
	}
	return 0;
}

int heap_image_ghc_names(int fd, const char *path, const uint64_t *vaddrs, uint32_t n,
			 heap_name_fn fn, void *ctx)
{
	return ask_names(GHC_NAMES, fd, path, vaddrs, n, fn, ctx);
}

int heap_image_names(int fd, const char *path, const uint64_t *vaddrs, uint32_t n, heap_name_fn fn,
		     void *ctx)
{
	return ask_names(NAMES, fd, path, vaddrs, n, fn, ctx);
}
