/* /healthz: what an orchestrator hears of a run that works, of one that stands still, and who hears more than that. */
#include "run_fixture.h"

#include "net/http_server.h"
#include "run/serve/serve_config.h"

static struct {
	http_fn fn;
	void *ctx;
	unsigned status;
	char text[4096];
	uint64_t read_ns;
	bool trusted;
} seen;

int http_server_open(struct loop *l, const struct http_options *opts,
		     struct http_server **ret_server, struct err *e)
{
	*ret_server = (struct http_server *)&seen;
	return 0;
}

void http_server_close(struct http_server *s)
{
}

int http_route(struct http_server *s, const char *method, const char *path, int flags, http_fn fn,
	       void *ctx)
{
	assert_string_equal(path, "/healthz");
	assert_int_equal(flags, HTTP_ALWAYS | HTTP_OPEN);
	seen.fn = fn;
	seen.ctx = ctx;
	return 0;
}

void http_answer(struct http_request *q, unsigned status, const char *type, const void *bytes,
		 size_t len)
{
	seen.status = status;
	snprintf(seen.text, sizeof(seen.text), "%.*s", (int)len, (const char *)bytes);
}

void http_error(struct http_request *q, unsigned status, const char *fmt, ...)
{
	seen.status = status;
}

bool http_is_trusted(const struct http_request *q)
{
	return seen.trusted;
}

uint64_t pipeline_read_ns(const struct run *r)
{
	return seen.read_ns;
}

static void ask(struct run *r, uint64_t read_ns, bool trusted)
{
	static char drain;

	r->drain = (struct drain *)&drain;
	seen.read_ns = read_ns;
	seen.trusted = trusted;
	*seen.text = '\0';
	seen.fn(seen.ctx, NULL);
	r->drain = NULL;
}

static bool says(const char *text)
{
	return strstr(seen.text, text) != NULL;
}

static void a_run_that_reads_nothing_for_half_a_minute_is_stalled(void **state)
{
	static const struct serve_config serve = { .http = { .n_listen = 1 } };
	static const struct run_config cfg = { .serve = &serve };
	const struct component *c = component_named("HTTP server");
	struct run *r = bare_run(&cfg);
	void *self = alone(r, "HTTP server");
	uint64_t now = now_ns(), s = 1000000000;

	(void)state;
	assert_true(c->wanted(&cfg));
	assert_int_equal(c->prepare(self, NULL, NULL), 0);
	ask(r, 0, true);
	assert_int_equal(seen.status, 200);
	assert_true(says("\"starting\""));
	ask(r, now - 29 * s, true);
	assert_int_equal(seen.status, 200);
	assert_true(says("\"ok\"") && says("seconds_since_read") && says("\"held_up\""));
	ask(r, now - 31 * s, true);
	assert_int_equal(seen.status, 503);
	assert_true(says("\"stalled\"") && says("seconds_since_read"));
	/* Without a token the status alone. */
	ask(r, now - 31 * s, false);
	assert_int_equal(seen.status, 503);
	assert_true(says("\"stalled\"") && !says("seconds_since_read") && !says("version"));
	bare_run_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_reads_nothing_for_half_a_minute_is_stalled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
