#include "proc/image.h"

#include "proc/jit_files.h"
#include "proc/proc_maps.h"
#include "proc/served.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum {
	MAPPERS_MAX = 16, /* live processes asked for a file before we give up */
	FDS_SHARE = 4,    /* descriptors kept: a quarter of our limit …        */
	FDS_MAX = 4096,   /* … and no more than this                           */
};

void images_init(struct images *set, struct dict *d, struct ns_roots *roots, image_mapper_fn mapper,
		 void *ctx)
{
	struct rlimit lim = { .rlim_cur = 1024 };

	getrlimit(RLIMIT_NOFILE, &lim);
	*set = (struct images){ .d = d, .roots = roots, .mapper = mapper, .ctx = ctx };
	set->fds_max =
		lim.rlim_cur / FDS_SHARE < FDS_MAX ? (uint32_t)lim.rlim_cur / FDS_SHARE : FDS_MAX;
}

static void image_free(struct image *img)
{
	if (img->fd >= 0)
		close(img->fd);
	free(img->segs);
	free(img);
}

void images_fini(struct images *set)
{
	struct image *img, *next;

	HASH_ITER (hh, set->by_identity, img, next) {
		HASH_DELETE(hh, set->by_identity, img);
		image_free(img);
	}
	free(set->by_module);
	*set = (struct images){ 0 };
}

/* --- identity --- */

/*
 * A file that was mounted by itself, and let go of: its path is "/", and no path leads to it. runc starts
 * containers from such a copy of itself.
 */
#define DETACHED "/[detached mount]"

/* What has a path but holds no file that could be opened: kernel objects with a made-up name. */
static bool is_pseudo_file(const char *path)
{
	static const char *const names[] = { "/dev/zero", "/SYSV", "/anon_hugepage", "/[aio]" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(path, names[i], strlen(names[i])))
			return true;
	return false;
}

static enum module_kind kind_of(const char *path)
{
	if (!strncmp(path, "[vdso", 5))
		return MODULE_VDSO;
	if (path[0] == '/' && path[1] != '/' && !is_pseudo_file(path))
		return MODULE_ELF;
	return MODULE_ANON;
}

bool image_is_anon(const char *path)
{
	return kind_of(path) == MODULE_ANON;
}

/* A 32-bit process has another vDSO, whose names are not those of ours. */
static const char *vdso_path(uint64_t addr)
{
	return sizeof(void *) == 8 && addr < 1ull << 32 ? "[vdso32]" : "[vdso]";
}

static size_t identity_len(const char *path)
{
	return offsetof(struct image, path) - offsetof(struct image, dev) + strlen(path);
}

static struct image *image_new(enum module_kind kind, const char *path, uint64_t dev, uint64_t ino)
{
	struct image *img = calloc(1, sizeof(*img) + strlen(path) + 1);

	if (!img)
		return NULL;
	img->kind = kind;
	img->fd = img->root = img->beside = -1;
	img->dev = dev;
	img->ino = ino;
	memcpy(img->path, path, strlen(path) + 1);
	return img;
}

struct image *images_get(struct images *set, pid_t pid, uint64_t addr, const char *path,
			 uint64_t dev, uint64_t ino)
{
	enum module_kind kind = kind_of(path);
	struct image *img, *found;

	if (kind == MODULE_VDSO)
		path = vdso_path(addr);
	else if (!strcmp(path, "/"))
		path = DETACHED;
	else if (kind == MODULE_ANON && !path[0])
		path = "//anon";
	/* The same address in two processes' own memory is not the same code. */
	if (kind != MODULE_ELF) {
		dev = 0;
		ino = kind == MODULE_ANON ? (uint64_t)pid : 0;
	}
	img = image_new(kind, path, dev, ino);
	if (!img)
		return NULL;
	HASH_FIND(hh, set->by_identity, &img->dev, identity_len(path), found);
	if (found || set->n == IMAGES_MAX) {
		image_free(img);
		return found;
	}
	HASH_ADD(hh, set->by_identity, dev, identity_len(path), img);
	if (!hash_added(img)) {
		image_free(img);
		return NULL;
	}
	set->n++;
	if (kind == MODULE_ANON)
		jit_owner_read(pid, &img->jit);
	return img;
}

void image_seen_from(struct images *set, struct image *img, int root)
{
	/* There was no room for its root: nothing is looked for elsewhere. */
	if (root == NS_NO_ROOT && img->root < 0)
		img->root = img->beside = NS_NO_ROOT;
	if (root < 0)
		return;
	img->root = root;
	if (img->beside == root)
		return;
	if (img->beside == -1 || ns_root_is_own(set->roots, root))
		img->beside = root;
	else if (!ns_root_is_own(set->roots, img->beside))
		img->beside = NS_NO_ROOT;
}

static void remember_module(struct images *set, struct image *img)
{
	if (img->module.ix >= set->n_by_module) {
		uint32_t n = img->module.ix * 2 + 64;
		struct image **by_module = reallocarray(set->by_module, n, sizeof(*by_module));

		if (!by_module)
			return;
		memset(by_module + set->n_by_module, 0,
		       (n - set->n_by_module) * sizeof(*by_module));
		set->by_module = by_module;
		set->n_by_module = n;
	}
	set->by_module[img->module.ix] = img;
}

module_id image_module(struct images *set, struct image *img)
{
	if (!img->module.ix) {
		img->module = dict_module(set->d, &(struct module){
							  .kind = img->kind,
							  .path = dict_string(set->d, img->path),
							  .dev = img->dev,
							  .ino = img->ino,
						  });
		if (img->module.ix)
			remember_module(set, img);
	}
	return img->module;
}

struct image *images_find(const struct images *set, module_id m)
{
	return m.ix < set->n_by_module ? set->by_module[m.ix] : NULL;
}

/* --- opening --- */

static bool is_same_file(const struct image *img, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == img->dev && st.st_ino == img->ino;
}

struct seek {
	const struct image *img;
	uint64_t start, end;
};

static int seek_range(void *ctx, const struct proc_map *map)
{
	struct seek *s = ctx;

	if (map->dev != s->img->dev || map->ino != s->img->ino || !map->ino)
		return 0;
	if (s->end && (map->start != s->start || map->end != s->end))
		return 0;
	s->start = map->start;
	s->end = map->end;
	return 1;
}

/*
 * Through a mapping that lives. overlayfs and btrfs show another device (some kernels also another
 * inode) in stat than in maps, so where they differ the kernel's own word counts: the range
 * opened must still be a mapping of that device and inode afterwards.
 */
static int open_mapped(const struct image *img, pid_t pid)
{
	_cleanup_(closep) int fd = -1;
	struct seek s = { .img = img };

	if (pid == img->pid && img->len) {
		fd = ns_open_mapped(pid, img->addr, img->addr + img->len);
		if (fd >= 0 && is_same_file(img, fd))
			return TAKE_FD(fd);
		closep(&fd);
		fd = -1;
	}
	if (proc_maps_each(pid, seek_range, &s, NULL) != 1)
		return -ENOENT;
	fd = ns_open_mapped(pid, s.start, s.end);
	if (fd < 0)
		return fd;
	if (is_same_file(img, fd) || proc_maps_each(pid, seek_range, &s, NULL) == 1)
		return TAKE_FD(fd);
	return -ESTALE;
}

static int open_by_any_mapper(struct images *set, const struct image *img)
{
	int fd = img->pid ? open_mapped(img, img->pid) : -ENOENT;

	for (uint32_t n = 0; fd < 0 && n < MAPPERS_MAX; n++) {
		pid_t pid = set->mapper(set->ctx, img, n);

		if (!pid)
			break;
		if (pid != img->pid)
			fd = open_mapped(img, pid);
	}
	return fd;
}

static bool shows_other_devices(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC);
}

static bool has_build_id(int fd, const char *build_id)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;

	return build_id[0] && elf_file_open(fd, "", &elf, NULL) == 0 &&
	       !strcmp(elf_file_build_id(elf), build_id);
}

/*
 * A file that a path leads to is the one that was mapped when its inode is the same on a file
 * system known to report two devices, or when its build ID is.
 */
static bool is_likely_same(const struct images *set, const struct image *img, int fd)
{
	struct stat st;

	if (!img->ino)
		return true;
	if (fstat(fd, &st) == 0 && st.st_ino == img->ino && shows_other_devices(fd))
		return true;
	return img->module.ix &&
	       has_build_id(fd, dict_str(set->d, dict_module_get(set->d, img->module)->build_id));
}

int image_open(struct images *set, struct image *img, struct err *e)
{
	if (img->state == IMAGE_UNREADABLE)
		return err_set(e, img->hung ? -ETIMEDOUT : -ESTALE,
			       "%s could not be read while it was mapped", img->path);
	return image_open_any(set, img, e);
}

int image_open_any(struct images *set, struct image *img, struct err *e)
{
	/* What one of several has at that path is the file if it is the same one, and no likeness of it. */
	bool trusted = img->beside != NS_NO_ROOT;
	_cleanup_(closep) int by_path = -1;
	int fd;

	if (img->kind != MODULE_ELF)
		return err_set(e, -ENOENT, "%s is not a file", img->path);
	if (img->fd >= 0) {
		fd = fcntl(img->fd, F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? err_set(e, -errno, "%s: %s", img->path, strerror(errno)) : fd;
	}
	by_path = ns_roots_open(set->roots, trusted ? img->beside : img->root, img->path);
	if (by_path >= 0 && is_same_file(img, by_path))
		return TAKE_FD(by_path);
	fd = open_by_any_mapper(set, img);
	if (fd >= 0)
		return fd;
	if (by_path >= 0 && trusted && is_likely_same(set, img, by_path))
		return TAKE_FD(by_path);
	if (by_path >= 0)
		return err_set(e, -ESTALE, "%s is no longer the file that was mapped", img->path);
	return err_set(e, by_path, "%s: %s", img->path, strerror(-by_path));
}

/* --- layout --- */

static void learn(struct images *set, struct image *img, const struct elf_file *elf)
{
	const struct elf_segment *segs = img->segs;
	struct module m = { .build_id = dict_string(set->d, elf_file_build_id(elf)) };

	for (uint32_t i = 0; i < img->n_segs; i++) {
		if (!(segs[i].flags & PF_X))
			continue;
		if (!m.limit || segs[i].vaddr < m.start) {
			m.start = segs[i].vaddr;
			m.file_off = segs[i].off;
		}
		if (segs[i].vaddr + segs[i].memsz > m.limit)
			m.limit = segs[i].vaddr + segs[i].memsz;
	}
	dict_module_learn(set->d, image_module(set, img), &m);
}

static int read_layout(struct images *set, struct image *img)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	_cleanup_(closep) int fd = image_open(set, img, NULL);
	const struct elf_segment *segs;
	uint32_t n;
	int r;

	if (fd < 0)
		return fd;
	r = elf_file_open(fd, img->path, &elf, NULL);
	if (r < 0)
		return r;
	segs = elf_file_segments(elf, &n);
	img->segs = malloc(n * sizeof(*segs));
	if (!img->segs)
		return -ENOMEM;
	memcpy(img->segs, segs, n * sizeof(*segs));
	img->n_segs = n;
	learn(set, img, elf);
	/* One that is served is asked for each time whether its server still answers. */
	if (set->fds < set->fds_max && !served_file(fd)) {
		img->fd = TAKE_FD(fd);
		set->fds++;
	}
	return 0;
}

uint64_t image_vaddr(struct images *set, struct image *img, uint64_t off)
{
	uint64_t vaddr;

	if (img->state == IMAGE_UNREAD) {
		int r = read_layout(set, img);

		img->state = r < 0 ? IMAGE_UNREADABLE : IMAGE_READ;
		img->hung = r == -ETIMEDOUT;
	}
	if (img->state == IMAGE_READ &&
	    elf_segments_off_to_vaddr(img->segs, img->n_segs, off, &vaddr))
		return vaddr;
	return off;
}

uint64_t image_bias(struct images *set, struct image *img, uint64_t addr, uint64_t len,
		    uint64_t off)
{
	uint64_t first = image_vaddr(set, img, off);
	const struct elf_segment *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; img->state == IMAGE_READ && i < img->n_segs; i++) {
		const struct elf_segment *s = &img->segs[i];
		uint64_t from = s->off > off ? s->off : off;
		uint64_t to = s->off + s->filesz < off + len ? s->off + s->filesz : off + len;

		if (s->flags & PF_X && from < to && to - from > most) {
			most = to - from;
			best = s;
		}
	}
	return best ? addr - off + best->off - best->vaddr : addr - first;
}
