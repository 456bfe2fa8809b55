#include "base/large.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { AREAS_MAX = 128 };

struct area {
	void *at; /* NULL: not in use */
	size_t bytes;
	int fd;
};

static struct {
	pthread_mutex_t lock;
	const char *folder;
	size_t least;
	struct area areas[AREAS_MAX];
} large = { .lock = PTHREAD_MUTEX_INITIALIZER };

void large_use(const char *folder, size_t least)
{
	pthread_mutex_lock(&large.lock);
	large.folder = folder;
	large.least = least;
	pthread_mutex_unlock(&large.lock);
}

/* With `at` NULL: one that is not in use. */
static struct area *find(const void *at)
{
	for (int i = 0; i < AREAS_MAX; i++)
		if (large.areas[i].at == at)
			return &large.areas[i];
	return NULL;
}

static int open_nameless(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[4096];

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	if (snprintf(path, sizeof(path), "%s/memscope-XXXXXX", folder) >= (int)sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* In a file whose room is reserved: a write into the mapping cannot fail for want of it. NULL: no such file. */
static void *map(size_t bytes)
{
	_cleanup_(closep) int fd = -1;
	struct area *a = find(NULL);
	void *at;

	if (!a || !large.folder)
		return NULL;
	fd = open_nameless(large.folder);
	if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0)
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	*a = (struct area){ at, bytes, TAKE_FD(fd) };
	return at;
}

static bool grow(struct area *a, size_t bytes)
{
	void *at;

	if (bytes <= a->bytes)
		return true;
	if (posix_fallocate(a->fd, (off_t)a->bytes, (off_t)(bytes - a->bytes)) != 0)
		return false;
	at = mremap(a->at, a->bytes, bytes, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		return false;
	a->at = at;
	a->bytes = bytes;
	return true;
}

void *large_alloc(size_t n, size_t size)
{
	void *at = NULL;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	pthread_mutex_lock(&large.lock);
	if (large.folder && bytes >= large.least)
		at = map(bytes);
	pthread_mutex_unlock(&large.lock);
	return at ? at : calloc(n, size);
}

/* It is malloc()'s. */
static void *resize_small(void *at, size_t bytes)
{
	void *to = large.folder && bytes >= large.least ? map(bytes) : NULL;

	if (!to)
		return realloc(at, bytes);
	if (at) {
		size_t had = malloc_usable_size(at);

		memcpy(to, at, had < bytes ? had : bytes);
		free(at);
	}
	return to;
}

void *large_resize(void *at, size_t n, size_t size)
{
	struct area *a;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	pthread_mutex_lock(&large.lock);
	a = at ? find(at) : NULL;
	if (!a)
		at = resize_small(at, bytes);
	else
		at = grow(a, bytes) ? a->at : NULL;
	pthread_mutex_unlock(&large.lock);
	return at;
}

void large_free(void *at)
{
	struct area *a;

	if (!at)
		return;
	pthread_mutex_lock(&large.lock);
	a = find(at);
	if (a) {
		munmap(a->at, a->bytes);
		close(a->fd);
		a->at = NULL;
	}
	pthread_mutex_unlock(&large.lock);
	if (!a)
		free(at);
}
