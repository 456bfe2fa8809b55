#include "unwind/builder.h"
#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

enum { THREADS_MAX = 8 };

struct queue {
	struct build *first, **last;
};

struct builder {
	builder_make_fn make;
	void *ctx;
	uint32_t n_wanted, n_threads;
	pthread_t threads[THREADS_MAX];
	int event_fd;
	uint32_t pending; /* of the main thread */
	pthread_mutex_t lock;
	pthread_cond_t work;
	/* Under the lock. */
	struct queue todo, done;
	bool large_under_way;
	uint64_t done_bytes;
	bool stop;
};

static void queue_put(struct queue *q, struct build *b)
{
	b->next = NULL;
	*q->last = b;
	q->last = &b->next;
}

static struct build *queue_get(struct queue *q)
{
	struct build *b = q->first;

	if (!b)
		return NULL;
	q->first = b->next;
	if (!q->first)
		q->last = &q->first;
	b->next = NULL;
	return b;
}

static uint64_t bytes_of(const struct build *b)
{
	const struct unwind_table *t = b->table;

	return t ? ((uint64_t)t->n_rows + t->n_pages) * sizeof(*t->rows) : 0;
}

/* The first that may be begun, NULL: none may. */
static struct build *next_to_do(struct builder *b)
{
	struct build *before = NULL, *found = b->todo.first;

	if (b->done_bytes > BUILDER_DONE_BYTES)
		return NULL;
	while (found && found->large && b->large_under_way) {
		before = found;
		found = found->next;
	}
	if (!found || !before)
		return found ? queue_get(&b->todo) : NULL;
	before->next = found->next;
	if (!found->next)
		b->todo.last = &before->next;
	found->next = NULL;
	return found;
}

void build_free(struct build *b)
{
	if (!b)
		return;
	closep(&b->fd);
	unwind_table_free(b->table);
	free(b->name);
	free(b);
}

int builder_new(uint32_t n_threads, builder_make_fn make, void *ctx, struct builder **ret_builder,
		struct err *e)
{
	struct builder *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(e, -ENOMEM, "out of memory");
	b->make = make;
	b->ctx = ctx;
	b->n_wanted = n_threads < 1 ? 1 : n_threads > THREADS_MAX ? THREADS_MAX : n_threads;
	b->todo.last = &b->todo.first;
	b->done.last = &b->done.first;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->work, NULL);
	b->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->event_fd < 0) {
		int r = -errno;

		builder_free(b);
		return err_set(e, r, "cannot make an event descriptor: %s", strerror(-r));
	}
	*ret_builder = b;
	return 0;
}

void builder_free(struct builder *b)
{
	struct build *left;

	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stop = true;
	pthread_cond_broadcast(&b->work);
	pthread_mutex_unlock(&b->lock);
	for (uint32_t i = 0; i < b->n_threads; i++)
		pthread_join(b->threads[i], NULL);
	while ((left = queue_get(&b->todo)) || (left = queue_get(&b->done)))
		build_free(left);
	pthread_cond_destroy(&b->work);
	pthread_mutex_destroy(&b->lock);
	closep(&b->event_fd);
	free(b);
}

static void make_one(const struct builder *b, struct build *build)
{
	uint64_t began = now_ns(), cpu_began = thread_cpu_ns();
	int r = b->make(b->ctx, build->fd, build->name, &build->table, &build->error);

	if (r < 0) {
		build->table = NULL;
		build->error.code = r;
	}
	close(TAKE_FD(build->fd));
	build->took_ns = now_ns() - began;
	build->cpu_ns = thread_cpu_ns() - cpu_began;
	if (build->table)
		build->cpu_ns += (uint64_t)build->table->cpu_ns;
}

static void *work(void *arg)
{
	static const uint64_t one = 1;
	struct builder *b = arg;
	struct build *build;

	pthread_mutex_lock(&b->lock);
	while (!b->stop) {
		build = next_to_do(b);
		if (!build) {
			pthread_cond_wait(&b->work, &b->lock);
			continue;
		}
		b->large_under_way |= build->large;
		pthread_mutex_unlock(&b->lock);
		make_one(b, build);
		pthread_mutex_lock(&b->lock);
		if (build->large) { /* its turn may be that of one who waits */
			b->large_under_way = false;
			pthread_cond_broadcast(&b->work);
		}
		b->done_bytes += bytes_of(build);
		queue_put(&b->done, build);
		(void)!write(b->event_fd, &one, sizeof(one));
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* One more while there is more to do than threads to do it. */
static int start_thread(struct builder *b, struct err *e)
{
	int r;

	if (b->n_threads == b->n_wanted || b->n_threads > b->pending)
		return 0;
	r = pthread_create(&b->threads[b->n_threads], NULL, work, b);
	if (r == 0)
		b->n_threads++;
	return r == 0 || b->n_threads ? 0
				      : err_set(e, -r, "cannot start a thread: %s", strerror(r));
}

int builder_add(struct builder *b, int fd, const char *name, const struct publish_key *key,
		struct err *e)
{
	_cleanup_(build_freep) struct build *build = calloc(1, sizeof(*build));
	struct stat st;
	int r;

	if (!build) {
		close(fd);
		return err_set(e, -ENOMEM, "out of memory");
	}
	build->fd = fd;
	build->key = *key;
	build->large = fstat(fd, &st) == 0 && st.st_size >= BUILDER_LARGE_BYTES;
	build->name = strdup(name);
	if (!build->name)
		return err_set(e, -ENOMEM, "out of memory");
	r = start_thread(b, e);
	if (r < 0)
		return r;
	b->pending++;
	pthread_mutex_lock(&b->lock);
	queue_put(&b->todo, TAKE_PTR(build));
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

int builder_fd(const struct builder *b)
{
	return b->event_fd;
}

struct build *builder_take(struct builder *b)
{
	struct build *build;
	uint64_t n;

	pthread_mutex_lock(&b->lock);
	build = queue_get(&b->done);
	if (build && b->done_bytes > BUILDER_DONE_BYTES)
		pthread_cond_broadcast(&b->work);
	b->done_bytes -= build ? bytes_of(build) : 0;
	if (!b->done.first)
		(void)!read(b->event_fd, &n, sizeof(n));
	pthread_mutex_unlock(&b->lock);
	b->pending -= build != NULL;
	return build;
}

uint32_t builder_pending(const struct builder *b)
{
	return b->pending;
}

bool builder_wait(struct builder *b, uint64_t until_ns)
{
	struct pollfd pfd = { .fd = b->event_fd, .events = POLLIN };
	uint64_t now = now_ns();
	struct timespec left = { 0 };
	int r = -1;

	while (b->pending && now < until_ns) {
		left.tv_sec = (time_t)((until_ns - now) / 1000000000);
		left.tv_nsec = (long)((until_ns - now) % 1000000000);
		r = ppoll(&pfd, 1, &left, NULL);
		if (r >= 0 || errno != EINTR)
			break;
		now = now_ns();
	}
	return r > 0;
}
