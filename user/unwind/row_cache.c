#include "unwind/row_cache.h"
#include "base/cache_dir.h"
#include "base/grow.h"
#include "base/version.h"
#include "unwind/row_format.h"
#include "unwind/table_cell.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SEED_FILE    "seed"
#define ENTRY_SUFFIX ".rows"

enum {
	NAME_BYTES = 2 * ELF_BUILD_ID_MAX + sizeof(ENTRY_SUFFIX),
	STALE_TEMP_S = 3600,
	DIGEST_BYTES_MAX = 1 << 30,
};

struct row_cache {
	int dir;
	uint64_t seed;
	uint64_t bytes_max;
	char maker[2 * ELF_BUILD_ID_MAX +
		   1];        /* our own build ID: another build makes other tables */
	pthread_mutex_t lock; /* of what follows */
	uint64_t bytes;       /* of all entries, as far as we know */
};

/* --- files in the directory --- */

static int read_all(int fd, void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* The first run makes the seed. */
static int read_seed(struct row_cache *c)
{
	for (int try = 0; try < 2; try++) {
		_cleanup_(closep) int fd = -1;
		uint64_t fresh, bytes;
		int r;

		fd = cache_dir_file(c->dir, SEED_FILE, &bytes);
		if (fd >= 0 && bytes == sizeof(c->seed) &&
		    read_all(fd, &c->seed, sizeof(c->seed)) == 0)
			return 0;
		if (fd >= 0)
			unlinkat(c->dir, SEED_FILE, 0);
		if (getrandom(&fresh, sizeof(fresh), 0) != sizeof(fresh))
			return -EIO;
		r = cache_dir_write(c->dir, SEED_FILE, &fresh, sizeof(fresh), true);
		if (r < 0)
			return r;
	}
	return -EPERM;
}

static void read_maker(struct row_cache *c)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && elf_file_open(fd, "memscope", &elf, NULL) == 0)
		snprintf(c->maker, sizeof(c->maker), "%s", elf_file_build_id(elf));
}

/* --- the size of it --- */

struct entry {
	char name[NAME_BYTES];
	uint64_t bytes;
	struct timespec used;
};

static bool is_entry(const char *name)
{
	size_t len = strlen(name), suffix = sizeof(ENTRY_SUFFIX) - 1;

	return len > suffix && len < NAME_BYTES && !strcmp(name + len - suffix, ENTRY_SUFFIX);
}

static int compare_used(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

static int add_entry(struct entry **list, uint32_t *n, uint32_t *cap, const char *name,
		     const struct stat *st)
{
	if (!GROW(*list, *n, *cap))
		return -ENOMEM;
	(*list)[*n] = (struct entry){ .bytes = (uint64_t)st->st_size, .used = st->st_mtim };
	memcpy((*list)[(*n)++].name, name, strlen(name) + 1);
	return 0;
}

/* Entries, and temporary files that nobody can be writing any more. */
static int list_entries(struct row_cache *c, struct entry **ret_list, uint32_t *ret_n)
{
	_cleanup_(freep) struct entry *list = NULL;
	uint32_t n = 0, cap = 0;
	struct dirent *d;
	struct stat st;
	int fd, r = 0;
	DIR *dir;

	fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -EIO;
	}
	while (r == 0 && (d = readdir(dir))) {
		if (fstatat(c->dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (is_entry(d->d_name))
			r = add_entry(&list, &n, &cap, d->d_name, &st);
		else if (!strncmp(d->d_name, CACHE_DIR_TEMP, sizeof(CACHE_DIR_TEMP) - 1) &&
			 st.st_mtim.tv_sec < time(NULL) - STALE_TEMP_S)
			unlinkat(c->dir, d->d_name, 0);
	}
	closedir(dir);
	if (r < 0)
		return r;
	*ret_list = TAKE_PTR(list);
	*ret_n = n;
	return 0;
}

/* Down to three quarters, so that it is not done for every new entry. */
static void trim(struct row_cache *c)
{
	_cleanup_(freep) struct entry *list = NULL;
	uint64_t bytes = 0;
	uint32_t n;

	if (list_entries(c, &list, &n) < 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		bytes += list[i].bytes;
	if (bytes > c->bytes_max) {
		qsort(list, n, sizeof(*list), compare_used);
		for (uint32_t i = 0; i < n && bytes > c->bytes_max / 4 * 3; i++)
			if (unlinkat(c->dir, list[i].name, 0) == 0)
				bytes -= list[i].bytes;
	}
	c->bytes = bytes;
}

int row_cache_open(const char *dir, uint64_t bytes_max, struct row_cache **ret_cache, struct err *e)
{
	_cleanup_(row_cache_closep) struct row_cache *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_set(e, -ENOMEM, "out of memory for the cache of unwind tables");
	pthread_mutex_init(&c->lock, NULL);
	c->bytes_max = bytes_max;
	c->dir = cache_dir_open(dir, e);
	if (c->dir < 0)
		return c->dir;
	r = read_seed(c);
	if (r < 0)
		return err_set(e, r, "the seed of the cache of unwind tables: %s", strerror(-r));
	read_maker(c);
	trim(c);
	*ret_cache = TAKE_PTR(c);
	return 0;
}

void row_cache_close(struct row_cache *c)
{
	if (!c)
		return;
	if (c->dir >= 0)
		close(c->dir);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* --- what tables are made from --- */

struct digester {
	XXH3_state_t *x;
	uint64_t left; /* bytes that may still be read; 0: there were too many */
};

static void digest_bytes(struct digester *d, const struct elf_file *elf, uint64_t off, uint64_t len)
{
	uint8_t buf[64 << 10];

	XXH3_128bits_update(d->x, &len, sizeof(len));
	while (len && d->left) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		if (elf_file_read(elf, off, buf, n, NULL) < 0)
			return;
		XXH3_128bits_update(d->x, buf, n);
		off += n;
		len -= n;
		d->left -= n < d->left ? n : d->left;
	}
}

static bool matters(const char *name)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame", ".zdebug_frame",
					     ".gopclntab", ".data.rel.ro.gopclntab" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* How many there are. */
static uint32_t digest_sections(struct digester *d, struct elf_file *elf)
{
	const struct elf_section *secs;
	uint32_t n;

	if (elf_file_sections(elf, &secs, &n, NULL) < 0)
		return 0;
	for (uint32_t i = 1; i < n; i++) {
		const struct elf_section *s = &secs[i];
		const uint64_t numbers[] = { s->vaddr, s->off, s->size, s->flags, s->type };

		XXH3_128bits_update(d->x, numbers, sizeof(numbers));
		if (matters(s->name) && s->type != SHT_NOBITS && s->size <= ELF_SECTION_BYTES_MAX)
			digest_bytes(d, elf, s->off, s->size);
	}
	return n;
}

/* Without sections the CFI is somewhere in them. */
static void digest_segments(struct digester *d, struct elf_file *elf)
{
	uint32_t n;
	const struct elf_segment *segs = elf_file_segments(elf, &n);

	for (uint32_t i = 0; i < n; i++)
		if (segs[i].filesz <= ELF_SECTION_BYTES_MAX)
			digest_bytes(d, elf, segs[i].off, segs[i].filesz);
}

/* -EFBIG: very large, or another owner's, whose headers may name the same bytes 65,536 times. */
static int digest(const struct row_cache *c, struct elf_file *elf, struct row_digest *ret)
{
	const uint64_t numbers[] = { elf_file_machine(elf), elf_file_entry(elf),
				     elf_file_eh_frame_hdr(elf) };
	const char *build_id = elf_file_build_id(elf);
	const struct elf_segment *segs;
	XXH3_state_t *x = XXH3_createState();
	uint64_t size = elf_file_size(elf);
	struct digester d = { x, (size < DIGEST_BYTES_MAX ? size : DIGEST_BYTES_MAX) + 1 };
	XXH128_canonical_t out;
	uint32_t n;

	if (!x)
		return -ENOMEM;
	XXH3_128bits_reset_withSeed(x, c->seed);
	XXH3_128bits_update(x, MEMSCOPE_VERSION, sizeof(MEMSCOPE_VERSION));
	XXH3_128bits_update(x, c->maker, strlen(c->maker));
	XXH3_128bits_update(x, build_id, strlen(build_id));
	XXH3_128bits_update(x, numbers, sizeof(numbers));
	segs = elf_file_segments(elf, &n);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t seg[] = { segs[i].vaddr, segs[i].off, segs[i].filesz, segs[i].memsz,
					 segs[i].flags };

		XXH3_128bits_update(x, seg, sizeof(seg));
	}
	if (digest_sections(&d, elf) <= 1)
		digest_segments(&d, elf);
	XXH128_canonicalFromHash(&out, XXH3_128bits_digest(x));
	XXH3_freeState(x);
	if (!d.left)
		return -EFBIG;
	memcpy(ret->bytes, out.digest, sizeof(ret->bytes));
	return 0;
}

/* --- interface --- */

/* Build IDs are hexadecimal by elf_file.h: nothing in them means something in a path. */
static int entry_name(struct elf_file *elf, char name[NAME_BYTES])
{
	const char *build_id = elf_file_build_id(elf);

	if (!build_id[0])
		return -ENOENT;
	snprintf(name, NAME_BYTES, "%s" ENTRY_SUFFIX, build_id);
	return 0;
}

int row_cache_load(struct row_cache *c, struct elf_file *elf, struct unwind_table **ret_table)
{
	_cleanup_(freep) uint8_t *data = NULL;
	_cleanup_(closep) int fd = -1;
	char name[NAME_BYTES];
	struct row_digest d;
	uint64_t bytes;

	if (entry_name(elf, name) < 0)
		return -ENOENT;
	fd = cache_dir_file(c->dir, name, &bytes);
	if (fd < 0 || bytes > ROW_FORMAT_BYTES_MAX || digest(c, elf, &d) < 0)
		return -ENOENT;
	data = malloc((size_t)bytes + 1);
	if (!data || read_all(fd, data, (size_t)bytes) < 0 ||
	    row_format_read(data, (size_t)bytes, &d, ret_table) < 0)
		return -ENOENT;
	/* When it was last used, for trim(). */
	futimens(fd, NULL);
	return 0;
}

int row_cache_store(struct row_cache *c, struct elf_file *elf, const struct unwind_table *table,
		    struct err *e)
{
	_cleanup_(freep) uint8_t *data = NULL;
	char name[NAME_BYTES];
	struct row_digest d;
	size_t len;
	int r = entry_name(elf, name);

	if (r < 0)
		return err_set(e, r, "%s: no build ID to keep its unwind table by",
			       elf_file_name(elf));
	r = digest(c, elf, &d);
	if (r == 0)
		r = row_format_write(table, &d, &data, &len);
	/* One that leaves no room for others is not kept. */
	if (r == 0 && len > c->bytes_max / 2)
		r = -EFBIG;
	if (r == 0)
		r = cache_dir_write(c->dir, name, data, len, false);
	if (r < 0)
		return err_set(e, r, "%s: its unwind table cannot be cached: %s",
			       elf_file_name(elf), strerror(-r));
	pthread_mutex_lock(&c->lock);
	c->bytes += len;
	if (c->bytes > c->bytes_max)
		trim(c);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int row_cache_build(struct row_cache *cache, struct elf_file *elf, struct unwind_table **ret_table,
		    struct err *e)
{
	int r;

	if (cache && row_cache_load(cache, elf, ret_table) == 0)
		return 0;
	r = unwind_table_in_cell(elf, ret_table, e);
	if (r == 0 && cache)
		row_cache_store(cache, elf, *ret_table, NULL);
	return r;
}
