#include "screen/runtimes.h"
#include "base/hash.h"
#include "lang/which.h"
#include "proc/namespace.h"
#include "proc/proc_maps.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

enum { QUEUE = 256 };

struct file_key {
	uint64_t dev, ino;
};

struct known_file {
	struct file_key key;
	const char *runtime; /* NULL: none */
	UT_hash_handle hh;
};

struct asked {
	pid_t pid;
	uint64_t start;
	struct runtime_of is;
};

struct runtimes {
	struct known_file *files;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, end;
	struct asked in[QUEUE], out[QUEUE];
	uint32_t n_in, n_out;
};

struct runtimes *runtimes_new(void)
{
	struct runtimes *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	return r;
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	if (r->started) {
		pthread_mutex_lock(&r->lock);
		r->end = true;
		pthread_cond_signal(&r->changed);
		pthread_mutex_unlock(&r->lock);
		pthread_join(r->thread, NULL);
	}
	hash_free(r->files);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* --- looking --- */

/* Allocators whose structures heap/census.c walks, by the names of their libraries. */
static const struct {
	const char *begin, *heap;
} allocators[] = {
	{ "libjemalloc.so", "jemalloc" },
	{ "libmimalloc.so", "mimalloc" },
	{ "libtcmalloc", "tcmalloc" },
	{ "libc.so.6", "glibc" },
	{ "libc-2.", "glibc" },
	{ "ld-musl-", "musl" },
	{ "libc.so", "musl" },
};
enum { N_ALLOCATORS = sizeof(allocators) / sizeof(*allocators) };

struct look {
	struct runtimes *runtimes;
	pid_t pid;
	struct file_key last;
	const char *runtime;
	uint32_t allocator; /* the first row of the table that is mapped; N_ALLOCATORS: none */
	uint32_t files, unreadable;
};

/* map_files is for root alone (CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN); of one's own processes the path will do. */
static int open_file(const struct look *l, const struct proc_map *map)
{
	struct stat st;
	int fd = ns_open_mapped(l->pid, map->start, map->end);

	if (fd >= 0)
		return fd;
	fd = ns_open_seen(l->pid, map->path);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_ino != map->ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* False: it cannot be read. */
static bool runtime_of_file(const struct look *l, const struct proc_map *map,
			    const char **ret_runtime)
{
	_cleanup_(closep) int fd = open_file(l, map);

	*ret_runtime = fd >= 0 ? lang_runtime_in(fd, map->path) : NULL;
	return fd >= 0;
}

static int on_map(void *ctx, const struct proc_map *map)
{
	struct look *l = ctx;
	struct file_key key = { map->dev, map->ino };
	const char *base = strrchr(map->path, '/');
	struct known_file *f;

	if (!(map->perms & PROC_MAP_EXEC) || !base || memcmp(&key, &l->last, sizeof(key)) == 0)
		return 0;
	l->last = key;
	l->files++;
	for (uint32_t i = 0; i < l->allocator; i++)
		if (strncmp(base + 1, allocators[i].begin, strlen(allocators[i].begin)) == 0)
			l->allocator = i;
	HASH_FIND(hh, l->runtimes->files, &key, sizeof(key), f);
	if (!f) {
		const char *runtime;

		if (!runtime_of_file(l, map, &runtime)) {
			l->unreadable++;
			return 0;
		}
		f = hash_new(l->runtimes->files, key, &key);
		if (!f)
			return 0;
		f->runtime = runtime;
	}
	if (!l->runtime)
		l->runtime = f->runtime;
	return 0;
}

struct runtime_of runtimes_look(struct runtimes *r, pid_t pid)
{
	struct look l = { .runtimes = r, .pid = pid, .allocator = N_ALLOCATORS };
	struct runtime_of is = { "-", "" };

	if (proc_maps_each(pid, on_map, &l, NULL) < 0 || !l.files)
		return is;
	is.runtime = l.runtime ? l.runtime : l.unreadable ? "-" : "native";
	if (l.allocator < N_ALLOCATORS)
		is.heap = allocators[l.allocator].heap;
	if (l.runtime && (strcmp(l.runtime, "CPython") == 0 || strcmp(l.runtime, "GHC") == 0))
		is.heap = l.runtime;
	return is;
}

/* --- in a thread --- */

static void *work(void *arg)
{
	struct runtimes *r = arg;

	pthread_mutex_lock(&r->lock);
	while (!r->end) {
		struct asked a;

		if (!r->n_in || r->n_out == QUEUE) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		a = r->in[0];
		memmove(r->in, r->in + 1, --r->n_in * sizeof(*r->in));
		pthread_mutex_unlock(&r->lock);
		a.is = runtimes_look(r, a.pid);
		pthread_mutex_lock(&r->lock);
		r->out[r->n_out++] = a;
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

bool runtimes_start(struct runtimes *r)
{
	sigset_t all, before;

	/* Signals are for the thread that has the terminal. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r->started = pthread_create(&r->thread, NULL, work, r) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r->started;
}

bool runtimes_ask(struct runtimes *r, pid_t pid, uint64_t start)
{
	bool room;

	pthread_mutex_lock(&r->lock);
	room = r->n_in < QUEUE;
	if (room)
		r->in[r->n_in++] = (struct asked){ .pid = pid, .start = start };
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	return room;
}

bool runtimes_answer(struct runtimes *r, pid_t *ret_pid, uint64_t *ret_start,
		     struct runtime_of *ret)
{
	struct asked a;
	bool any;

	pthread_mutex_lock(&r->lock);
	any = r->n_out > 0;
	if (any) {
		a = r->out[--r->n_out];
		*ret_pid = a.pid;
		*ret_start = a.start;
		*ret = a.is;
		pthread_cond_signal(&r->changed);
	}
	pthread_mutex_unlock(&r->lock);
	return any;
}
