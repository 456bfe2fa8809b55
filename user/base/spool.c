#include "base/spool.h"

#include "base/hash.h"
#include "base/new_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC     "MSSPOOL1"
#define SUFFIX    ".entry"
#define BLOCK     4096u
#define ENTRY_MAX (256u << 20)
#define ROOM_PART 16 /* where the limit is passed, so much of it is made free at once */
#define ATTEMPTS  64 /* entries that make way on a full disk for one */
#define STALE_S   3600

enum { HEAD = 20 }; /* magic, hash, length of the title */

static uint64_t on_disk(uint64_t len)
{
	return (len + BLOCK - 1) / BLOCK * BLOCK;
}

static void path_of(const struct spool *s, const char *name, char *out, size_t cap)
{
	snprintf(out, cap, "%s/%s", s->dir, name);
}

static bool is_entry(const char *name)
{
	size_t len = strlen(name);

	return len > 21 && strspn(name, "0123456789") == 20 && name[20] == '-' &&
	       strcmp(name + len - strlen(SUFFIX), SUFFIX) == 0;
}

static int of_entries(const struct dirent *d)
{
	return is_entry(d->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int spool_list(const struct spool *s, struct spool_names *ret_names, struct err *e)
{
	struct dirent **found = NULL;
	int n = scandir(s->dir, &found, of_entries, by_name);
	char **names = n > 0 ? calloc((size_t)n, sizeof(*names)) : NULL;
	bool oom = n > 0 && !names;

	if (n < 0)
		return err_set(e, -errno, "%s: cannot be read: %m", s->dir);
	for (int i = 0; i < n; i++) {
		if (names)
			names[i] = strdup(found[i]->d_name);
		oom |= names && !names[i];
		free(found[i]);
	}
	free(found);
	*ret_names = (struct spool_names){ names, names ? (uint32_t)n : 0 };
	if (!oom)
		return 0;
	spool_names_fini(ret_names);
	return err_set(e, -ENOMEM, "out of memory");
}

void spool_names_fini(struct spool_names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		free(names->names[i]);
	free(names->names);
	*names = (struct spool_names){ 0 };
}

int spool_count(const struct spool *s, struct err *e)
{
	struct spool_names names = { 0 };
	uint64_t bytes = 0, n = 0;
	int rc = spool_list(s, &names, e);

	for (uint32_t i = 0; i < names.n; i++) {
		char path[4096];
		struct stat st;

		path_of(s, names.names[i], path, sizeof(path));
		if (lstat(path, &st) < 0)
			continue;
		bytes += on_disk((uint64_t)st.st_size);
		n++;
	}
	spool_names_fini(&names);
	if (rc < 0)
		return rc;
	s->use->entries = n;
	s->use->bytes = bytes;
	return 0;
}

/* Where a file system has no files without a name, a writer that was killed has left one. */
static void remove_leavings(const struct spool *s)
{
	DIR *dir = opendir(s->dir);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		struct stat st;

		if (strstr(d->d_name, SUFFIX ".") &&
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > STALE_S)
			unlinkat(dirfd(dir), d->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

int spool_open(const struct spool *s, struct err *e)
{
	if (mkdir(s->dir, 0700) < 0 && errno != EEXIST)
		return err_set(e, -errno, "cannot make the directory '%s': %m", s->dir);
	remove_leavings(s);
	return spool_count(s, e);
}

/* --- put --- */

/* All of an entry; the caller frees it. NULL: out of memory. */
static uint8_t *make_entry(const char *title, struct bytes body, uint64_t *ret_len)
{
	uint32_t title_len = (uint32_t)strlen(title);
	uint64_t len = HEAD + title_len + body.len, hash;
	uint8_t *entry = malloc(len);

	if (!entry)
		return NULL;
	memcpy(entry + 16, &title_len, 4);
	memcpy(entry + HEAD, title, title_len);
	if (body.len)
		memcpy(entry + HEAD + title_len, body.data, body.len);
	hash = content_hash(entry + 16, len - 16);
	memcpy(entry, MAGIC, 8);
	memcpy(entry + 8, &hash, 8);
	*ret_len = len;
	return entry;
}

static int write_entry(const char *path, struct bytes entry, struct err *e)
{
	struct new_file f = { .fd = -1 };
	int rc = new_file_open(path, &f, e);

	if (rc == 0)
		rc = new_file_put(&f, 0, entry.data, entry.len);
	if (rc == 0)
		rc = new_file_commit(&f, e);
	else
		err_set(e, rc, "%s: cannot be written: %s", path, strerror(-rc));
	new_file_close(&f);
	return rc;
}

/* The oldest that nobody holds, of `names` from *at on. False: there is none. */
static bool remove_oldest(const struct spool *s, const struct spool_names *names, uint32_t *at)
{
	while (*at < names->n) {
		const char *name = names->names[(*at)++];
		_cleanup_(closep) int fd = -1;
		char path[4096];

		path_of(s, name, path, sizeof(path));
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && spool_remove(s, name) == 0)
			return true;
	}
	return false;
}

static int make_way(const struct spool *s, uint64_t bytes, struct spool_gone *gone, struct err *e)
{
	struct spool_names names = { 0 };
	uint64_t most = s->max_bytes - s->max_bytes / ROOM_PART;
	uint32_t at = 0;
	int rc;

	if (bytes > s->max_bytes)
		return err_set(e, -EFBIG, "it is larger than all that may wait");
	if (s->use->bytes + bytes <= s->max_bytes)
		return 0;
	rc = spool_count(s, e);
	if (rc == 0)
		rc = spool_list(s, &names, e);
	while (rc == 0 && s->use->bytes + bytes > most && remove_oldest(s, &names, &at))
		gone->over_limit++;
	spool_names_fini(&names);
	if (rc == 0 && s->use->bytes + bytes > s->max_bytes)
		rc = err_set(e, -EBUSY, "what waits cannot make way");
	return rc;
}

static bool is_full(int rc)
{
	return rc == -ENOSPC || rc == -EDQUOT;
}

/* On a full disk older ones make way. */
static int write_with_room(const struct spool *s, const char *path, struct bytes entry,
			   struct spool_gone *gone, struct err *e)
{
	struct spool_names names = { 0 };
	int rc = write_entry(path, entry, e);
	uint32_t at = 0;

	if (is_full(rc) && spool_list(s, &names, e) < 0)
		return rc;
	for (int i = 0; is_full(rc) && i < ATTEMPTS && remove_oldest(s, &names, &at); i++) {
		gone->no_room++;
		rc = write_entry(path, entry, e);
	}
	spool_names_fini(&names);
	return rc;
}

/* The name is on disk, too. */
static void sync_dir(const struct spool *s)
{
	_cleanup_(closep) int fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd);
}

int spool_put(const struct spool *s, int64_t time_ns, const char *title, struct bytes body,
	      struct spool_gone *gone, struct err *e)
{
	_cleanup_(freep) uint8_t *entry = NULL;
	char name[64], path[4096];
	uint64_t salt = 0, len;
	int rc;

	if (body.len > ENTRY_MAX)
		return err_set(e, -EFBIG, "it has %zu MiB", body.len >> 20);
	entry = make_entry(title, body, &len);
	if (!entry)
		return err_set(e, -ENOMEM, "out of memory");
	if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) < 0)
		salt = (uint64_t)getpid() << 32 | (s->use->entries & 0xffffffff);
	snprintf(name, sizeof(name), "%020" PRIu64 "-%016" PRIx64 SUFFIX,
		 time_ns > 0 ? (uint64_t)time_ns : 0, salt);
	path_of(s, name, path, sizeof(path));
	rc = make_way(s, on_disk(len), gone, e);
	if (rc == 0)
		rc = write_with_room(s, path, bytes_of(entry, len), gone, e);
	if (rc < 0)
		return rc;
	s->use->entries++;
	s->use->bytes += on_disk(len);
	sync_dir(s);
	return 0;
}

/* --- take --- */

static int read_all(int fd, uint8_t *to, uint64_t len)
{
	uint64_t at = 0;

	while (at < len) {
		ssize_t n = pread(fd, to + at, len - at, (off_t)at);

		if (n == 0 || (n < 0 && errno != EINTR))
			return n < 0 ? -errno : -EBADMSG;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

/* The parts of an entry; -EBADMSG: it is none. */
static int parse(const uint8_t *data, uint64_t len, struct spool_entry *entry)
{
	uint32_t title_len;
	uint64_t hash;

	if (len < HEAD || memcmp(data, MAGIC, 8) != 0)
		return -EBADMSG;
	memcpy(&hash, data + 8, 8);
	memcpy(&title_len, data + 16, 4);
	if (title_len > len - HEAD || content_hash(data + 16, len - 16) != hash)
		return -EBADMSG;
	snprintf(entry->title, sizeof(entry->title), "%.*s", (int)title_len, data + HEAD);
	entry->body = bytes_of(data + HEAD + title_len, len - HEAD - title_len);
	return 0;
}

int spool_hold(const struct spool *s, const char *name, struct spool_entry *ret_entry,
	       struct err *e)
{
	struct spool_entry entry = { 0 };
	_cleanup_(freep) uint8_t *data = NULL;
	_cleanup_(closep) int fd = -1;
	char path[4096];
	struct stat st;
	int rc;

	path_of(s, name, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0)
		return err_set(e, -errno, "%s: cannot be read: %m", path);
	if (!st.st_nlink)
		return err_set(e, -ENOENT, "%s: is gone", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > ENTRY_MAX + 65536u)
		return err_set(e, -EBADMSG, "%s: is no entry", path);
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return err_set(e, -ENOMEM, "out of memory");
	rc = read_all(fd, data, (uint64_t)st.st_size);
	if (rc == 0)
		rc = parse(data, (uint64_t)st.st_size, &entry);
	if (rc < 0)
		return err_set(e, rc, "%s: %s", path,
			       rc == -EBADMSG ? "is damaged" : strerror(-rc));
	entry.data = TAKE_PTR(data);
	entry.fd = TAKE_FD(fd);
	*ret_entry = entry;
	return 0;
}

void spool_let_go(struct spool_entry *entry)
{
	if (entry->data)
		close(entry->fd);
	free(entry->data);
	*entry = (struct spool_entry){ .fd = -1 };
}

int spool_remove(const struct spool *s, const char *name)
{
	char path[4096];
	struct stat st;
	uint64_t bytes;

	path_of(s, name, path, sizeof(path));
	if (lstat(path, &st) < 0 || unlink(path) < 0)
		return -errno;
	bytes = on_disk((uint64_t)st.st_size);
	/* What others put by another count is not in this one. */
	if (s->use->entries)
		s->use->entries--;
	s->use->bytes -= s->use->bytes < bytes ? (uint64_t)s->use->bytes : bytes;
	return 0;
}
