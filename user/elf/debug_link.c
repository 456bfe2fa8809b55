#include "elf/debug_link.h"

#include "base/bytes.h"
#include "elf/inflate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define DEBUG_DIR "/usr/lib/debug"

enum {
	LINK_BYTES_MAX = 4096 + 64,
	CRC_CHUNK = 256 << 10,
	CRC_BYTES_MAX = 1 << 30, /* a longer file is only taken by build ID */
	PACKED_DATA_MAX = 16 << 20,
};

/* What one search is for. */
struct want {
	const char *build_id; /* "" : by CRC */
	bool has_crc;
	uint32_t crc;
	debug_open_fn open_path;
	void *ctx;
};

void debug_file_free(struct debug_file *f)
{
	if (!f)
		return;
	elf_file_close(f->elf);
	closep(&f->fd);
	free(f);
}

static bool crc_matches(const struct elf_file *elf, uint32_t crc)
{
	_cleanup_(freep) uint8_t *buf = malloc(CRC_CHUNK);
	uint64_t size = elf_file_size(elf);
	uLong sum = crc32(0, NULL, 0);

	if (!buf || size > CRC_BYTES_MAX)
		return false;
	for (uint64_t at = 0; at < size; at += CRC_CHUNK) {
		size_t n = size - at < CRC_CHUNK ? size - at : CRC_CHUNK;

		if (elf_file_read(elf, at, buf, n, NULL) < 0)
			return false;
		sum = crc32(sum, buf, (uInt)n);
	}
	return sum == crc;
}

static bool is_wanted(const struct want *w, const struct elf_file *elf)
{
	if (w->build_id[0])
		return !strcmp(w->build_id, elf_file_build_id(elf));
	return w->has_crc && crc_matches(elf, w->crc);
}

/* Takes `fd` over; a negative one is passed on. */
static int take(const struct want *w, int fd, const char *path, bool host,
		struct debug_file **ret_file)
{
	_cleanup_(debug_file_freep) struct debug_file *f = calloc(1, sizeof(*f));
	int r = fd;

	if (!f) {
		closep(&fd);
		return -ENOMEM;
	}
	f->fd = fd;
	f->host = host;
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (r >= 0)
		r = elf_file_open_debug(f->fd, path, &f->elf, NULL);
	if (r < 0)
		return r;
	if (!is_wanted(w, f->elf))
		return -ESTALE;
	*ret_file = TAKE_PTR(f);
	return 0;
}

bool debug_link_host_path_ok(const char *path, const char *image)
{
	const char *slash = strrchr(image, '/');
	size_t dir = slash ? (size_t)(slash - image) + 1 : 0;

	if (strstr(path, "/../") || path[0] != '/')
		return false;
	return !strncmp(path, DEBUG_DIR "/", sizeof(DEBUG_DIR)) ||
	       (dir && !strncmp(path, image, dir));
}

static int try_path(const struct want *w, const char *path, bool host, struct debug_file **ret_file)
{
	return take(w, w->open_path(w->ctx, path, host), path, host, ret_file);
}

int debug_file_take(int fd, const char *path, struct elf_file *elf, struct debug_file **ret_file)
{
	struct want w = { .build_id = elf_file_build_id(elf) };

	return take(&w, fd, path, true, ret_file);
}

static int try_both(const struct want *w, const char *path, struct debug_file **ret_file)
{
	if (strlen(path) >= sizeof((*ret_file)->path))
		return -ENAMETOOLONG;
	return try_path(w, path, false, ret_file) == 0 || try_path(w, path, true, ret_file) == 0
		       ? 0
		       : -ENOENT;
}

static int try_build_id(const struct want *w, struct debug_file **ret_file)
{
	char path[sizeof(DEBUG_DIR) + 2 * ELF_BUILD_ID_MAX + 32];

	if (strlen(w->build_id) < 4)
		return -ENOENT;
	snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%.2s/%s.debug", w->build_id,
		 w->build_id + 2);
	return try_both(w, path, ret_file);
}

/* A section of a link: a file name, and behind it what must match. */
static int read_link(struct elf_file *elf, const char *section, char **ret_name,
		     struct bytes *ret_rest, uint8_t **ret_bytes)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	const struct elf_section *sec;
	struct bytes b, name;

	if (elf_file_find_section(elf, section, &sec, NULL) < 0 || sec->size > LINK_BYTES_MAX ||
	    elf_file_read_section(elf, sec, &bytes, NULL) < 0)
		return -ENOENT;
	b = bytes_of(bytes, sec->size);
	if (bytes_cstr(&b, &name) < 0 || !name.len)
		return -ENOENT;
	*ret_name = (char *)bytes;
	*ret_rest = b;
	*ret_bytes = TAKE_PTR(bytes);
	return 0;
}

/* The directory of a path, "" for one without any; with its last slash left out. */
static int dir_length(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (int)(slash - path) : 0;
}

static int try_link(struct want *w, struct elf_file *elf, struct debug_file **ret_file)
{
	static const char *const forms[] = { "%.*s/%s", "%.*s/.debug/%s", DEBUG_DIR "%.*s/%s" };
	_cleanup_(freep) uint8_t *bytes = NULL;
	const char *path = elf_file_name(elf);
	int dir = dir_length(path);
	struct bytes rest;
	char *name;
	size_t pad;

	if (read_link(elf, ".gnu_debuglink", &name, &rest, &bytes) < 0 || strchr(name, '/'))
		return -ENOENT;
	/* The CRC follows at the next multiple of four. */
	pad = (4 - (strlen(name) + 1) % 4) % 4;
	w->has_crc = bytes_skip(&rest, pad) == 0 && bytes_u32(&rest, &w->crc) == 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		_cleanup_(freep) char *full = NULL;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		if (asprintf(&full, forms[i], dir, path, name) < 0)
			return -ENOMEM;
#pragma GCC diagnostic pop
		/* The image itself, stripped in place of its debug file, is no debug file. */
		if (strcmp(full, path) != 0 && try_both(w, full, ret_file) == 0)
			return 0;
	}
	return -ENOENT;
}

int debug_link_find(struct elf_file *elf, debug_open_fn open_path, void *ctx,
		    struct debug_file **ret_file)
{
	struct want w = {
		.build_id = elf_file_build_id(elf),
		.open_path = open_path,
		.ctx = ctx,
	};

	if (try_build_id(&w, ret_file) == 0)
		return 0;
	return try_link(&w, elf, ret_file);
}

int debug_link_alt(struct elf_file *elf, const char *path, debug_open_fn open_path, void *ctx,
		   struct debug_file **ret_file)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	_cleanup_(freep) char *full = NULL;
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
	struct want w = { .build_id = build_id, .open_path = open_path, .ctx = ctx };
	struct bytes rest;
	char *name;

	if (read_link(elf, ".gnu_debugaltlink", &name, &rest, &bytes) < 0)
		return -ENOENT;
	if (!rest.len || rest.len > ELF_BUILD_ID_MAX)
		return -ESTALE;
	for (size_t i = 0; i < rest.len; i++)
		snprintf(build_id + 2 * i, 3, "%02x", rest.data[i]);
	if (try_build_id(&w, ret_file) == 0)
		return 0;
	if (asprintf(&full, "%.*s%s%s", name[0] == '/' ? 0 : dir_length(path), path,
		     name[0] == '/' ? "" : "/", name) < 0)
		return -ENOMEM;
	return try_both(&w, full, ret_file) == 0 ? 0 : -ESTALE;
}

int debug_data_open(struct elf_file *elf, uint8_t **ret_bytes, struct elf_file **ret_elf,
		    struct err *e)
{
	_cleanup_(freep) uint8_t *packed = NULL, *bytes = NULL;
	const struct elf_section *sec;
	uint64_t len;
	int r;

	r = elf_file_find_section(elf, ".gnu_debugdata", &sec, e);
	if (r < 0)
		return r;
	if (sec->size > PACKED_DATA_MAX)
		return err_set(e, -EFBIG, "%s: .gnu_debugdata is larger than %d MiB",
			       elf_file_name(elf), PACKED_DATA_MAX >> 20);
	r = elf_file_read_section(elf, sec, &packed, e);
	if (r == 0)
		r = xz_unpack(packed, sec->size, DEBUG_DATA_MAX, elf_file_name(elf), &bytes, &len,
			      e);
	if (r == 0)
		r = elf_file_open_memory(bytes, len, elf_file_name(elf), ret_elf, e);
	if (r < 0)
		return r;
	*ret_bytes = TAKE_PTR(bytes);
	return 0;
}
