#include "net/http_client.h"

#include "base/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void http_url_shown(const char *url, char *out, size_t cap)
{
	const char *scheme = strstr(url, "://"), *host = scheme ? scheme + 3 : url;
	const char *at = memchr(host, '@', strcspn(host, "/?#"));

	snprintf(out, cap, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

#if __has_include(<curl/curl.h>)

#include <curl/curl.h>

#define CONNECT_MS 10000UL

/* No more of the library than this. */
struct library {
	CURLcode (*global_init)(long);
	CURL *(*init)(void);
	void (*cleanup)(CURL *);
	CURLcode (*setopt)(CURL *, CURLoption, ...);
	CURLcode (*perform)(CURL *);
	CURLcode (*getinfo)(CURL *, CURLINFO, ...);
	const char *(*say)(CURLcode);
	struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
	void (*slist_free_all)(struct curl_slist *);
};

struct http_client {
	struct library lib;
	struct http_client_options opts;
	CURL *curl;
	char *body;
	size_t len;
	bool too_long, oom;
	char why[CURL_ERROR_SIZE];
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
	{ "curl_slist_append", offsetof(struct library, slist_append) },
	{ "curl_slist_free_all", offsetof(struct library, slist_free_all) },
};

/* The library stays: others in it may have begun threads. */
static int load(const char *option, struct library *lib, struct err *e)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	void *handle = NULL;

	for (size_t i = 0; !handle && i < sizeof(names) / sizeof(*names); i++)
		handle = library_open(names[i]);
	if (!handle)
		return err_set(e, -EOPNOTSUPP, "%s needs libcurl, " LIBRARY_MISSING("libcurl4"),
			       option);
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *fn = library_function(handle, functions[i].name);

		if (!fn)
			return err_set(e, -EOPNOTSUPP, "libcurl has no %s", functions[i].name);
		memcpy((char *)lib + functions[i].at, &fn, sizeof(fn));
	}
	return 0;
}

/* What is too much ends the transfer. */
static size_t on_data(char *data, size_t size, size_t n, void *ctx)
{
	struct http_client *c = ctx;
	size_t more = size * n, room = c->opts.answer_max - c->len,
	       taken = more < room ? more : room;
	char *body = realloc(c->body, c->len + taken + 1);

	if (!body) {
		c->oom = true;
		return 0;
	}
	c->body = body;
	memcpy(body + c->len, data, taken);
	c->len += taken;
	body[c->len] = '\0';
	c->too_long |= taken < more;
	return taken;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t up, curl_off_t down)
{
	const struct http_client *c = ctx;

	(void)a, (void)b, (void)up, (void)down;
	return c->opts.stop && c->opts.stop(c->opts.ctx);
}

static int set_up(struct http_client *c, struct err *e)
{
	const struct http_client_options *o = &c->opts;
	char shown[256];

	if (c->lib.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(c->curl = c->lib.init()))
		return err_set(e, -EOPNOTSUPP, "libcurl cannot be used here");
	http_url_shown(o->url, shown, sizeof(shown));
	if ((strncmp(o->url, "http://", 7) != 0 && strncmp(o->url, "https://", 8) != 0) ||
	    c->lib.setopt(c->curl, CURLOPT_URL, o->url) != CURLE_OK)
		return err_set(e, -EINVAL, "%s: \"%s\" is no address of HTTP", o->option, shown);
	if (o->ca_file && c->lib.setopt(c->curl, CURLOPT_CAINFO, o->ca_file) != CURLE_OK)
		return err_set(e, -EINVAL, "libcurl takes no file of certificates here");
	if (o->no_proxy)
		c->lib.setopt(c->curl, CURLOPT_PROXY, "");
	c->lib.setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
	c->lib.setopt(c->curl, CURLOPT_FOLLOWLOCATION, 0L);
	c->lib.setopt(c->curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	c->lib.setopt(c->curl, CURLOPT_TIMEOUT_MS, (long)o->timeout_ms);
	c->lib.setopt(c->curl, CURLOPT_CONNECTTIMEOUT_MS,
		      (long)(o->timeout_ms < CONNECT_MS ? o->timeout_ms : CONNECT_MS));
	c->lib.setopt(c->curl, CURLOPT_USERAGENT, "memscope");
	c->lib.setopt(c->curl, CURLOPT_ACCEPT_ENCODING, "gzip");
	c->lib.setopt(c->curl, CURLOPT_ERRORBUFFER, c->why);
	c->lib.setopt(c->curl, CURLOPT_WRITEFUNCTION, on_data);
	c->lib.setopt(c->curl, CURLOPT_WRITEDATA, c);
	c->lib.setopt(c->curl, CURLOPT_NOPROGRESS, 0L);
	c->lib.setopt(c->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	c->lib.setopt(c->curl, CURLOPT_XFERINFODATA, c);
	return 0;
}

int http_client_new(const struct http_client_options *o, struct http_client **ret_client,
		    struct err *e)
{
	_cleanup_(http_client_freep) struct http_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_set(e, -ENOMEM, "out of memory");
	c->opts = *o;
	rc = load(o->option, &c->lib, e);
	if (rc == 0)
		rc = set_up(c, e);
	if (rc == 0)
		*ret_client = TAKE_PTR(c);
	return rc;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	if (c->curl)
		c->lib.cleanup(c->curl);
	free(c->body);
	free(c);
}

static int error_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_ABORTED_BY_CALLBACK:
		return -ECANCELED;
	case CURLE_COULDNT_CONNECT:
		return -ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return -EHOSTUNREACH;
	default:
		return -EPROTO;
	}
}

static int perform(struct http_client *c, struct http_answer *ret, struct err *e)
{
	curl_off_t retry = 0;
	char *type = NULL;
	long status = 0;
	CURLcode code;

	c->len = 0;
	c->too_long = c->oom = false;
	*c->why = '\0';
	code = c->lib.perform(c->curl);
	if (c->oom)
		return err_set(e, -ENOMEM, "out of memory");
	if (code != CURLE_OK && !c->too_long)
		return err_set(e, error_of(code), "%s", *c->why ? c->why : c->lib.say(code));
	c->lib.getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	c->lib.getinfo(c->curl, CURLINFO_CONTENT_TYPE, &type);
	c->lib.getinfo(c->curl, CURLINFO_RETRY_AFTER, &retry);
	*ret = (struct http_answer){
		.status = (int)status,
		.retry_after_s = retry > 0 ? (uint64_t)retry : 0,
		.type = type ? type : "",
		.body = bytes_of(c->body, c->len),
		.too_long = c->too_long,
	};
	return 0;
}

int http_client_get(struct http_client *c, struct http_answer *ret_answer, struct err *e)
{
	c->lib.setopt(c->curl, CURLOPT_HTTPGET, 1L);
	return perform(c, ret_answer, e);
}

int http_client_post(struct http_client *c, const char *const *headers, uint32_t n,
		     struct bytes body, struct http_answer *ret_answer, struct err *e)
{
	/* Without this the body would wait for a server's "100 Continue". */
	struct curl_slist *list = c->lib.slist_append(NULL, "Expect:");
	int rc;

	for (uint32_t i = 0; list && i < n; i++) {
		struct curl_slist *more = c->lib.slist_append(list, headers[i]);

		if (!more) {
			c->lib.slist_free_all(list);
			list = NULL;
		} else {
			list = more;
		}
	}
	if (!list)
		return err_set(e, -ENOMEM, "out of memory");
	c->lib.setopt(c->curl, CURLOPT_POST, 1L);
	c->lib.setopt(c->curl, CURLOPT_POSTFIELDS, body.len ? (const char *)body.data : "");
	c->lib.setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	c->lib.setopt(c->curl, CURLOPT_HTTPHEADER, list);
	rc = perform(c, ret_answer, e);
	c->lib.setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
	c->lib.slist_free_all(list);
	return rc;
}

#else /* built without its headers */

int http_client_new(const struct http_client_options *o, struct http_client **ret_client,
		    struct err *e)
{
	(void)ret_client;
	return err_set(e, -EOPNOTSUPP, "%s needs libcurl, which this memscope was built without",
		       o->option);
}

void http_client_free(struct http_client *c)
{
	(void)c;
}

int http_client_get(struct http_client *c, struct http_answer *ret_answer, struct err *e)
{
	(void)c, (void)ret_answer;
	return err_set(e, -EOPNOTSUPP, "there is no libcurl");
}

int http_client_post(struct http_client *c, const char *const *headers, uint32_t n,
		     struct bytes body, struct http_answer *ret_answer, struct err *e)
{
	(void)c, (void)headers, (void)n, (void)body, (void)ret_answer;
	return err_set(e, -EOPNOTSUPP, "there is no libcurl");
}

#endif
