#include "run/memory/fetch.h"

#include "base/clock.h"
#include "net/http_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX   (4 << 20)
#define TIMEOUT_MS 5000

struct fetch {
	struct http_client *client; /* the thread's own */
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool asked, stopping;
	char *done; /* the newest that has come */
	int64_t done_ns;
	struct fetch_stats stats;
};

static bool is_stopping(void *ctx)
{
	struct fetch *f = ctx;
	bool stopping;

	pthread_mutex_lock(&f->lock);
	stopping = f->stopping;
	pthread_mutex_unlock(&f->lock);
	return stopping;
}

static void fetch_once(struct fetch *f)
{
	struct http_answer answer = { 0 };
	struct err why = { 0 };
	int rc = http_client_get(f->client, &answer, &why);
	char *body = NULL;

	if (rc == 0 && (answer.status != 200 || !answer.body.len))
		rc = err_set(&why, -EPROTO, "status %d", answer.status);
	else if (rc == 0 && answer.too_long)
		rc = err_set(&why, -EFBIG, "more than %d MiB", BODY_MAX >> 20);
	if (rc == 0)
		body = strdup((const char *)answer.body.data);
	pthread_mutex_lock(&f->lock);
	if (body) {
		free(f->done);
		f->done = body;
		f->done_ns = wall_ns();
		f->stats.fetched++;
	} else {
		f->stats.failed++;
		snprintf(f->stats.why, sizeof(f->stats.why), "%.255s", why.msg);
	}
	f->asked = false;
	pthread_mutex_unlock(&f->lock);
}

static void *fetch_loop(void *ctx)
{
	struct fetch *f = ctx;
	bool stopping = false;

	while (!stopping) {
		bool asked;

		pthread_mutex_lock(&f->lock);
		while (!f->asked && !f->stopping)
			pthread_cond_wait(&f->wake, &f->lock);
		stopping = f->stopping;
		asked = f->asked && !stopping;
		pthread_mutex_unlock(&f->lock);
		if (asked)
			fetch_once(f);
	}
	return NULL;
}

int fetch_new(const char *url, struct fetch **ret, struct err *e)
{
	_cleanup_(fetch_freep) struct fetch *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wake, NULL);
	rc = http_client_new(
		&(struct http_client_options){ .url = url,
					       .option = "--series",
					       .timeout_ms = TIMEOUT_MS,
					       .answer_max = BODY_MAX,
					       .no_proxy = true, /* what is profiled is near */
					       .stop = is_stopping,
					       .ctx = f },
		&f->client, e);
	if (rc < 0)
		return rc;
	rc = pthread_create(&f->thread, NULL, fetch_loop, f);
	if (rc)
		return err_set(e, -rc, "cannot begin a thread: %s", strerror(rc));
	f->running = true;
	*ret = TAKE_PTR(f);
	return 0;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	if (f->running) {
		pthread_mutex_lock(&f->lock);
		f->stopping = true;
		pthread_cond_signal(&f->wake);
		pthread_mutex_unlock(&f->lock);
		pthread_join(f->thread, NULL);
	}
	http_client_free(f->client);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f->done);
	free(f);
}

void fetch_ask(struct fetch *f)
{
	pthread_mutex_lock(&f->lock);
	f->asked = true;
	pthread_cond_signal(&f->wake);
	pthread_mutex_unlock(&f->lock);
}

char *fetch_take(struct fetch *f, int64_t *ret_wall_ns)
{
	char *done;

	pthread_mutex_lock(&f->lock);
	done = TAKE_PTR(f->done);
	*ret_wall_ns = f->done_ns;
	pthread_mutex_unlock(&f->lock);
	return done;
}

void fetch_stats(struct fetch *f, struct fetch_stats *ret_stats)
{
	pthread_mutex_lock(&f->lock);
	*ret_stats = f->stats;
	pthread_mutex_unlock(&f->lock);
}
