#include "collect/stacks/unwind_files.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define VDSO_BYTES_MAX (64 << 10)
/* A table that was evicted comes back no sooner than this after it came, twice as late each time. */
#define COME_BACK_NS 2000000000ULL

/* --- identity --- */

static void key_add(struct publish_key *key, const void *data, size_t len)
{
	if (len > sizeof(key->bytes) - key->len)
		len = sizeof(key->bytes) - key->len;
	memcpy(key->bytes + key->len, data, len);
	key->len += (uint32_t)len;
}

/*
 * The build ID where there is one, else the file itself. A build ID is what its owner says it is: the
 * tables of root's libc are not those of a file that only calls itself so.
 */
static void make_key(const char *build_id, const struct stat *st, struct publish_key *key)
{
	uint64_t mtime_ns =
		(uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
	size_t len = strlen(build_id);

	*key = (struct publish_key){ .len = 0 };
	if (len && len <= 64) {
		key_add(key, "b", 1);
		key_add(key, &st->st_uid, sizeof(st->st_uid));
		key_add(key, build_id, len);
		return;
	}
	key_add(key, "f", 1);
	key_add(key, &st->st_dev, sizeof(st->st_dev));
	key_add(key, &st->st_ino, sizeof(st->st_ino));
	key_add(key, &st->st_size, sizeof(st->st_size));
	key_add(key, &mtime_ns, sizeof(mtime_ns));
}

static struct unwind_file *file_of(struct unwind_files *f, const struct publish_key *key,
				   const char *name)
{
	struct unwind_file *file;

	HASH_FIND(hh, f->by_key, key->bytes, key->len, file);
	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = *key;
	file->name = strdup(name);
	if (file->name)
		HASH_ADD_KEYPTR(hh, f->by_key, file->key.bytes, file->key.len, file);
	if (!file->name || !hash_added(file)) {
		free(file->name);
		free(file);
		return NULL;
	}
	return file;
}

static void trouble(struct unwind_files *f, const char *name, const char *why)
{
	if (!*f->first_trouble)
		snprintf(f->first_trouble, sizeof(f->first_trouble), "%s", *why ? why : name);
}

/* --- opening --- */

/* The vDSO is the same in all 64-bit processes, and nobody's file. */
static int open_vdso(void)
{
	const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
	_cleanup_(closep) int fd = -1;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = 0;

	if (!vdso || sizeof(void *) != 8)
		return -ENOENT;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It has no length but its mapping's; what is behind is not readable. */
	while (len < VDSO_BYTES_MAX && write(fd, vdso + len, page) == (ssize_t)page)
		len += page;
	return len ? TAKE_FD(fd) : -ENOENT;
}

static int open_module(struct unwind_files *f, module_id m, struct err *e)
{
	if (dict_module_get(f->dict, m)->kind == MODULE_VDSO)
		return open_vdso();
	return proc_table_open_module(f->procs, m, e);
}

static enum code_kind code_of_file(struct unwind_files *f, int fd, const char *path,
				   struct publish_key *ret_key)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct err e = {};
	struct stat st;
	int r = elf_file_open(fd, path, &elf, &e);

	if (r == -ENOEXEC)
		return CODE_NOT_ELF;
	if (r < 0 || fstat(fd, &st) < 0) {
		f->no_rows++;
		trouble(f, path, e.msg);
		return CODE_NO_ROWS;
	}
	make_key(elf_file_build_id(elf), &st, ret_key);
	return CODE_ELF;
}

static enum code_kind code_of_module(struct unwind_files *f, module_id m,
				     struct publish_key *ret_key)
{
	const struct module *mod = dict_module_get(f->dict, m);
	const char *path = dict_str(f->dict, mod->path);
	_cleanup_(closep) int fd = -1;
	struct err e = {};

	if (mod->kind == MODULE_VDSO) {
		if (strcmp(path, "[vdso]") != 0) /* of a 32-bit process */
			return CODE_KERNELS;
		*ret_key = (struct publish_key){ 4, "vdso" };
		return CODE_VDSO;
	}
	if (mod->kind != MODULE_ELF)
		return walker_is_kernels(path) ? CODE_KERNELS : CODE_ANON;
	fd = proc_table_open_module(f->procs, m, &e);
	if (fd >= 0)
		return code_of_file(f, fd, path, ret_key);
	f->unreadable++;
	trouble(f, path, e.msg);
	return CODE_UNREADABLE;
}

static struct unwind_module *module_of(struct unwind_files *f, module_id m)
{
	struct publish_key key;
	struct unwind_module *mod;

	if (m.ix >= f->n_modules) {
		uint32_t n = m.ix * 2 + 64;
		struct unwind_module *more = reallocarray(f->modules, n, sizeof(*more));

		if (!more)
			return NULL;
		memset(more + f->n_modules, 0, (n - f->n_modules) * sizeof(*more));
		f->modules = more;
		f->n_modules = n;
	}
	mod = &f->modules[m.ix];
	if (mod->seen)
		return mod;
	mod->code = code_of_module(f, m, &key);
	if (mod->code == CODE_ELF || mod->code == CODE_VDSO) {
		mod->file = file_of(f, &key, dict_str(f->dict, dict_module_get(f->dict, m)->path));
		if (!mod->file)
			return NULL;
	}
	mod->seen = true;
	return mod;
}

/* --- making --- */

int unwind_file_make(void *ctx, int fd, const char *name, struct unwind_table **ret_table,
		     struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	int r = elf_file_open(fd, name, &elf, e);

	return r < 0 ? r : row_cache_build(ctx, elf, ret_table, e);
}

/* Has no table, and never will. */
static void give_up(struct unwind_files *f, struct unwind_file *file, uint32_t table,
		    const char *why)
{
	if (!file->failed) {
		f->no_rows++;
		trouble(f, file->name, why);
	}
	file->failed = true;
	publish_table_none(f->publish, table);
}

/* Sees to it that the table comes, unless it should not yet. */
static void want(struct unwind_files *f, struct unwind_file *file, module_id m, uint32_t table,
		 uint64_t now_ns)
{
	uint32_t evictions = publish_table_evictions(f->publish, table);
	struct err e = {};
	int fd, r;

	if (file->building || file->waiting || (file->crowded && !file->needed))
		return;
	if (file->failed) { /* its number was another's in between */
		give_up(f, file, table, "");
		return;
	}
	if (evictions &&
	    now_ns < file->tried_ns + (COME_BACK_NS << (evictions < 6 ? evictions : 6)))
		return;
	if (file->crowded && now_ns < file->tried_ns + COME_BACK_NS)
		return;
	fd = open_module(f, m, &e);
	r = fd < 0 ? fd : builder_add(f->builder, fd, file->name, &file->key, &e);
	if (r == 0)
		file->building = true;
	else if (r != -ENOMEM && r != -EMFILE && r != -ENFILE && r != -EAGAIN)
		give_up(f, file, table, e.msg);
}

void unwind_files_begin(struct unwind_files *f, module_id m)
{
	struct unwind_module *mod = module_of(f, m);
	int fd;

	if (!mod || !mod->file || mod->file->building)
		return;
	fd = open_module(f, m, NULL);
	mod->file->building =
		fd >= 0 && builder_add(f->builder, fd, mod->file->name, &mod->file->key, NULL) == 0;
}

int unwind_files_table(struct unwind_files *f, module_id m, uint64_t now_ns,
		       enum code_kind *ret_code, uint32_t *ret_table)
{
	struct unwind_module *mod = module_of(f, m);
	uint32_t table;
	int r;

	if (!mod)
		return -ENOMEM;
	*ret_code = mod->code;
	if (!mod->file)
		return 0;
	r = publish_table(f->publish, &mod->file->key, now_ns, &table);
	if (r < 0)
		return r;
	*ret_table = mod->file->table = table;
	mod->file->module = m;
	switch (publish_table_state(f->publish, table)) {
	case PUBLISH_ABSENT:
	case PUBLISH_EVICTED:
		if (!f->allowed_ns || f->cpu_ns <= f->allowed_ns / 2)
			want(f, mod->file, m, table, now_ns);
		break;
	default:
		break;
	}
	return 0;
}

int unwind_files_need(struct unwind_files *f, uint32_t table, uint64_t now_ns)
{
	enum publish_state state = publish_table_state(f->publish, table);
	struct unwind_file *file = f->by_key;

	if (state != PUBLISH_ABSENT && state != PUBLISH_EVICTED)
		return -ENOENT;
	while (file && (file->table != table || !file->module.ix ||
			publish_table_find(f->publish, &file->key) != table))
		file = file->hh.next;
	if (!file || file->failed)
		return -ENOENT;
	file->needed = true;
	if (f->allowed_ns && f->cpu_ns > f->allowed_ns && !file->building && !file->waiting) {
		f->put_off++;
		return -ENOENT;
	}
	want(f, file, file->module, table, now_ns);
	return file->building || file->waiting ? -EAGAIN : -ENOENT;
}

/* One table, made, finds its place; or has to wait. */
static void place(struct unwind_files *f, struct unwind_file *file, struct build *b,
		  uint64_t now_ns)
{
	uint32_t table = publish_table_find(f->publish, &file->key);
	struct err e = {};
	int r;

	if (table == PUBLISH_NO_TABLE) { /* whoever wanted it is gone */
		build_free(b);
		return;
	}
	r = publish_table_put(f->publish, table, b->table, file->needed, now_ns, &e);
	file->crowded = r == -ENOSPC;
	if (r == -EAGAIN) {
		file->waiting = b;
		file->next_waiting = f->waiting;
		f->waiting = file;
		return;
	}
	file->tried_ns = now_ns;
	if (r == 0)
		file->needed = false;
	else if (r != -ENOSPC)
		trouble(f, file->name, e.msg);
	build_free(b);
}

static void retry_waiting(struct unwind_files *f, uint64_t now_ns)
{
	struct unwind_file *file = TAKE_PTR(f->waiting), *next;

	for (; file; file = next) {
		next = TAKE_PTR(file->next_waiting);
		place(f, file, TAKE_PTR(file->waiting), now_ns);
	}
}

void unwind_files_collect(struct unwind_files *f, uint64_t now_ns)
{
	struct unwind_file *file;
	struct build *b;

	retry_waiting(f, now_ns);
	while ((b = builder_take(f->builder))) {
		HASH_FIND(hh, f->by_key, b->key.bytes, b->key.len, file);
		if (!file) {
			build_free(b);
			continue;
		}
		file->building = false;
		f->built += b->table != NULL;
		f->build_ns += b->took_ns;
		f->cpu_ns += b->cpu_ns;
		if (b->table) {
			place(f, file, b, now_ns);
			continue;
		}
		give_up(f, file, publish_table_find(f->publish, &file->key), b->error.msg);
		build_free(b);
	}
}

void unwind_files_fini(struct unwind_files *f)
{
	struct unwind_file *file, *next;

	HASH_ITER (hh, f->by_key, file, next) {
		HASH_DELETE(hh, f->by_key, file);
		build_free(file->waiting);
		free(file->name);
		free(file);
	}
	free(f->modules);
}

/* --- how much --- */

/*
 * Measured (Debian 12: node, cc1, libLLVM-14, libc, redis-server, git, libcrypto): 0.54 to 0.77
 * bytes for each byte of .eh_frame, directory included. Files that have none may be Go's, whose own
 * tables make about a row for every 100 bytes of code.
 */
uint64_t unwind_file_estimate(int fd)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	const struct elf_section *sec;
	const struct elf_segment *segs;
	uint64_t code = 0;
	uint32_t n;

	if (elf_file_open(fd, "", &elf, NULL) < 0)
		return 0;
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++)
		if (segs[i].flags & PF_X)
			code += segs[i].filesz;
	if (elf_file_find_section(elf, ".eh_frame", &sec, NULL) == 0 && sec->size < code)
		return sec->size * 4 / 5 + 4096;
	return code / 16 + 4096;
}
