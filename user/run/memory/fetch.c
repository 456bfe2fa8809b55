#include "run/memory/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<curl/curl.h>)

#include "base/clock.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BODY_MAX   (4 << 20)
#define TIMEOUT_MS 5000L

/* No more of the library than this; loaded, so that nobody else has to have it. */
struct library {
	CURLcode (*global_init)(long);
	CURL *(*init)(void);
	void (*cleanup)(CURL *);
	CURLcode (*setopt)(CURL *, CURLoption, ...);
	CURLcode (*perform)(CURL *);
	CURLcode (*getinfo)(CURL *, CURLINFO, ...);
	const char *(*say)(CURLcode);
};

struct fetch {
	struct library lib;
	void *handle;
	CURL *curl;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool asked, stopping;
	char *done; /* the newest that has come */
	int64_t done_ns;
	struct fetch_stats stats;
	/* The thread's own. */
	char *body;
	size_t len;
};

static const struct {
	const char *name;
	size_t at;
} functions[] = {
	{ "curl_global_init", offsetof(struct library, global_init) },
	{ "curl_easy_init", offsetof(struct library, init) },
	{ "curl_easy_cleanup", offsetof(struct library, cleanup) },
	{ "curl_easy_setopt", offsetof(struct library, setopt) },
	{ "curl_easy_perform", offsetof(struct library, perform) },
	{ "curl_easy_getinfo", offsetof(struct library, getinfo) },
	{ "curl_easy_strerror", offsetof(struct library, say) },
};

static int load(struct fetch *f, struct err *e)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };

	for (size_t i = 0; !f->handle && i < sizeof(names) / sizeof(*names); i++)
		f->handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!f->handle)
		return err_set(e, -EOPNOTSUPP,
			       "--series of an address needs libcurl, which is not installed "
			       "(libcurl4)");
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *fn = dlsym(f->handle, functions[i].name);

		if (!fn)
			return err_set(e, -EOPNOTSUPP, "libcurl has no %s", functions[i].name);
		memcpy((char *)&f->lib + functions[i].at, &fn, sizeof(fn));
	}
	return 0;
}

static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct fetch *f = ctx;
	size_t more = size * n;
	char *body = f->len + more <= BODY_MAX ? realloc(f->body, f->len + more + 1) : NULL;

	if (!body)
		return 0; /* ends it with an error */
	f->body = body;
	memcpy(body + f->len, data, more);
	f->len += more;
	body[f->len] = '\0';
	return more;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct fetch *f = ctx;
	bool stopping;

	(void)a, (void)b, (void)c, (void)d;
	pthread_mutex_lock(&f->lock);
	stopping = f->stopping;
	pthread_mutex_unlock(&f->lock);
	return stopping;
}

static void fetch_once(struct fetch *f)
{
	CURLcode code;
	long status = 0;

	f->len = 0;
	code = f->lib.perform(f->curl);
	f->lib.getinfo(f->curl, CURLINFO_RESPONSE_CODE, &status);
	pthread_mutex_lock(&f->lock);
	if (code == CURLE_OK && status == 200 && f->body) {
		free(f->done);
		f->done = TAKE_PTR(f->body);
		f->done_ns = wall_ns();
		f->stats.fetched++;
	} else {
		f->stats.failed++;
		if (code != CURLE_OK)
			snprintf(f->stats.why, sizeof(f->stats.why), "%s", f->lib.say(code));
		else
			snprintf(f->stats.why, sizeof(f->stats.why), "status %ld", status);
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

static int set_up(struct fetch *f, const char *url, struct err *e)
{
	if (f->lib.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(f->curl = f->lib.init()))
		return err_set(e, -EOPNOTSUPP, "libcurl cannot be used here");
	if (f->lib.setopt(f->curl, CURLOPT_URL, url) != CURLE_OK)
		return err_set(e, -EINVAL, "--series: libcurl does not take \"%s\"", url);
	f->lib.setopt(f->curl, CURLOPT_NOSIGNAL, 1L);
	f->lib.setopt(f->curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	f->lib.setopt(f->curl, CURLOPT_PROXY, ""); /* what is profiled is near */
	f->lib.setopt(f->curl, CURLOPT_USERAGENT, "memscope");
	f->lib.setopt(f->curl, CURLOPT_WRITEFUNCTION, on_data);
	f->lib.setopt(f->curl, CURLOPT_WRITEDATA, f);
	f->lib.setopt(f->curl, CURLOPT_NOPROGRESS, 0L);
	f->lib.setopt(f->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	f->lib.setopt(f->curl, CURLOPT_XFERINFODATA, f);
	return 0;
}

int fetch_new(const char *url, struct fetch **ret, struct err *e)
{
	_cleanup_(fetch_freep) struct fetch *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_set(e, -ENOMEM, "out of memory");
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wake, NULL);
	rc = load(f, e);
	if (rc == 0)
		rc = set_up(f, url, e);
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
	if (f->curl)
		f->lib.cleanup(f->curl);
	pthread_cond_destroy(&f->wake);
	pthread_mutex_destroy(&f->lock);
	free(f->body);
	free(f->done);
	free(f); /* the library stays: others in it may have begun threads */
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

#else /* built without its headers */

int fetch_new(const char *url, struct fetch **ret, struct err *e)
{
	(void)url, (void)ret;
	return err_set(
		e, -EOPNOTSUPP,
		"--series of an address needs libcurl, which this memscope was built without");
}

void fetch_free(struct fetch *f)
{
	(void)f;
}

void fetch_ask(struct fetch *f)
{
	(void)f;
}

char *fetch_take(struct fetch *f, int64_t *ret_wall_ns)
{
	(void)f, (void)ret_wall_ns;
	return NULL;
}

void fetch_stats(struct fetch *f, struct fetch_stats *ret_stats)
{
	(void)f;
	*ret_stats = (struct fetch_stats){ 0 };
}

#endif
