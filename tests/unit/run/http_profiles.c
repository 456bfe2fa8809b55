/* Profiles over HTTP, of a run without a kernel; a client in a process of its own. */
#include "run_fixture.h"

#include "model/pprof.h"
#include "net/http_server.h"
#include "run/output/files.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int taken; /* profiles */

/* Of two processes, one of them in a container; each call brings one sample more. */
int pipeline_now(struct run *r, struct profile_since *since, struct profile_now *ret_now,
		 struct err *e)
{
	location_id at[2] = { dict_location(r->dict, (module_id){ 0 }, 4096),
			      dict_location(r->dict, (module_id){ 0 }, 8192) };
	const int64_t values[4] = { 1, 10, 2, 20 };
	const struct label first[] = { { .key = dict_string(r->dict, "pid"), .num = 11 } };
	const struct label second[] = { { .key = dict_string(r->dict, "pid"), .num = 12 },
					{ .key = dict_string(r->dict, "container"),
					  .str = dict_string(r->dict, "web") } };

	*ret_now = (struct profile_now){ .time_ns = 1000000000,
					 .duration_ns = (int64_t)(now_ns() - since->begin.ns) };
	if (!since->begin.ns)
		ret_now->duration_ns = 3600000000000;
	since->begin.ns = now_ns();
	taken++;
	for (int kind = 0; kind < profile_kinds(); kind++) {
		const struct profile_row *row = &profile_rows[kind];
		struct profile *p = profile_new(r->dict, row->types, row->n_types);
		const int64_t v[PROFILE_MAX_TYPES] = { values[0], values[1], values[2], values[3] };

		if (!pipeline_has(r, (enum profile_kind)kind)) {
			profile_free(p);
			continue;
		}
		assert_int_equal(profile_add(p, dict_stack(r->dict, &at[0], 1),
					     dict_labels(r->dict, first, 1), v),
				 0);
		assert_int_equal(profile_add(p, dict_stack(r->dict, &at[1], 1),
					     dict_labels(r->dict, second, 2), v),
				 0);
		ret_now->profiles[kind] = p;
	}
	return 0;
}

bool pipeline_has(const struct run *r, enum profile_kind kind)
{
	return kind == PROFILE_ONCPU || kind == PROFILE_OFFCPU || kind == PROFILE_HEAP;
}

int output_set_meta(const struct run *r, struct profile *p, struct profile_meta *meta,
		    const char *comment)
{
	return profile_set_meta(p, meta);
}

int output_name(struct run *r, bool lines, struct symbolize_stats *ret_stats, struct err *e)
{
	return 0;
}

/* --- the client: each fact is a function that runs in its own process; 0: it holds --- */

static uint16_t port;
static char answer[1 << 20];
static size_t answer_len;

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		_exit(90);
	return fd;
}

static int send_get(const char *path)
{
	char text[500];
	int fd = dial();

	snprintf(text, sizeof(text),
		 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	if (send(fd, text, strlen(text), 0) < 0)
		_exit(91);
	return fd;
}

static unsigned status_of(int fd)
{
	unsigned status = 0;
	ssize_t n;

	answer_len = 0;
	while ((n = recv(fd, answer + answer_len, sizeof(answer) - 1 - answer_len, 0)) > 0)
		answer_len += (size_t)n;
	answer[answer_len] = '\0';
	close(fd);
	sscanf(answer, "HTTP/1.1 %u", &status);
	return status;
}

static unsigned get(const char *path)
{
	return status_of(send_get(path));
}

static bool has(const char *part)
{
	return memmem(answer, answer_len, part, strlen(part)) != NULL;
}

/* The profile of the last answer; NULL: it is none. */
static struct profile *profile_of(struct dict *d)
{
	const char *body = memmem(answer, answer_len, "\r\n\r\n", 4);
	struct profile *p = NULL;
	struct err e = { 0 };

	if (!body ||
	    pprof_read(d, body + 4, answer_len - (size_t)(body + 4 - answer), "answer", &p, &e) < 0)
		return NULL;
	return p;
}

static int holds(bool is, int line)
{
	if (!is)
		fprintf(stderr, "line %d: %.300s\n", line, answer);
	return is ? 0 : 1;
}

#define HOLDS(what)                                                                                \
	do {                                                                                       \
		if (holds((what), __LINE__))                                                       \
			return 1;                                                                  \
	} while (0)

/* --- the run --- */

static int on_client(void *ctx, struct err *e)
{
	struct run *r = ctx;

	loop_end(r->loop);
	return 0;
}

static void with(int (*client)(void))
{
	static const char *const listen[] = { "127.0.0.1:0" };
	struct serve_config serve = { .http = { .listen = listen, .n_listen = 1 } };
	struct run_config cfg = { .serve = &serve, .hz = 100 };
	struct run *r = bare_run(&cfg);
	const struct component *service = component_named("HTTP server"),
			       *profiles = component_named("HTTP profiles");
	void *s = alone(r, "HTTP server"), *p = alone(r, "HTTP profiles");
	struct err e = { 0 };
	int status, fd;
	pid_t pid;

	taken = 0;
	assert_int_equal(service->prepare(s, NULL, &e), 0);
	assert_int_equal(profiles->ready(p, &e), 0);
	port = http_server_port(r->serving.http, 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		_exit(client());
	}
	fd = pidfd_open(pid, 0);
	assert_int_equal(loop_fd(r->loop, fd, on_client, r), 0);
	assert_int_equal(loop_run(r->loop, &e), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	profiles->closing(p);
	service->closed(s);
	close(fd);
	bare_run_free(r);
}

/* --- facts --- */

static int heap_client(void)
{
	struct dict *d = dict_new();
	struct profile *p;

	HOLDS(get("/debug/pprof/heap") == 200);
	HOLDS(has("Content-Type: application/octet-stream"));
	HOLDS(has("Content-Disposition: attachment; filename=\"heap\""));
	p = profile_of(d);
	HOLDS(p != NULL);
	HOLDS(profile_n_types(p) == 4 && profile_find_type(p, "inuse_space/bytes") == 3);
	HOLDS(profile_get_meta(p)->default_type == 3);
	HOLDS(profile_n_samples(p) == 2);
	HOLDS(profile_get_meta(p)->duration_ns == 3600000000000);
	HOLDS(get("/debug/pprof/allocs") == 200);
	p = profile_of(d);
	HOLDS(p && profile_get_meta(p)->default_type == 1);
	return 0;
}

static void heap_is_of_the_whole_run_at_once(void **state)
{
	with(heap_client);
}

static int seconds_client(void)
{
	struct dict *d = dict_new();
	struct profile *p;
	uint64_t begin = now_ns();

	HOLDS(get("/debug/pprof/profile?seconds=1") == 200);
	HOLDS(now_ns() - begin > 900000000ull);
	p = profile_of(d);
	HOLDS(p && profile_find_type(p, "cpu/nanoseconds") == 1 &&
	      profile_find_type(p, "samples/count") == 0);
	HOLDS(profile_get_meta(p)->duration_ns > 900000000 &&
	      profile_get_meta(p)->duration_ns < 5000000000);
	HOLDS(get("/debug/pprof/heap?seconds=1") == 200);
	HOLDS(has("filename=\"heap-delta\""));
	return 0;
}

static void seconds_are_of_that_time_alone(void **state)
{
	with(seconds_client);
	assert_int_equal(taken, 4); /* before and after */
}

static int types_client(void)
{
	struct dict *d = dict_new();
	struct profile *p;

	HOLDS(get("/debug/pprof/block") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_types(p) == 2 && profile_find_type(p, "contentions/count") == 0 &&
	      profile_find_type(p, "delay/nanoseconds") == 1);
	HOLDS(profile_total(p, 0) == 2 && profile_total(p, 1) == 20);
	HOLDS(get("/debug/pprof/offcpu") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_types(p) == 4);
	HOLDS(get("/debug/pprof/profile?seconds=1&source=offcpu") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_types(p) == 4);
	return 0;
}

static void waits_have_the_types_that_are_asked_for(void **state)
{
	with(types_client);
}

static int filter_client(void)
{
	struct dict *d = dict_new();
	struct profile *p;

	HOLDS(get("/debug/pprof/offcpu?pid=11") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_samples(p) == 1);
	HOLDS(dict_label_find(d, profile_sample(p, 0).labels, "pid")->num == 11);
	HOLDS(get("/debug/pprof/offcpu?container=web") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_samples(p) == 1);
	HOLDS(dict_label_find(d, profile_sample(p, 0).labels, "pid")->num == 12);
	HOLDS(get("/debug/pprof/offcpu?container=web&pid=11") == 200);
	p = profile_of(d);
	HOLDS(p && profile_n_samples(p) == 0);
	return 0;
}

static void samples_of_one_process_or_container_are_kept(void **state)
{
	with(filter_client);
}

static int errors_client(void)
{
	static const struct {
		const char *path;
		unsigned status;
	} bad[] = {
		{ "/debug/pprof/heap?seconds=x", 400 },
		{ "/debug/pprof/heap?seconds=0", 400 },
		{ "/debug/pprof/heap?seconds=-1", 400 },
		{ "/debug/pprof/heap?seconds=1&debug=1", 400 },
		{ "/debug/pprof/heap?seconds=601", 400 },
		{ "/debug/pprof/heap?pid=0", 400 },
		{ "/debug/pprof/heap?pid=12x", 400 },
		{ "/debug/pprof/heap?container=", 400 },
		{ "/debug/pprof/heap?format=none", 400 },
		{ "/debug/pprof/profile?seconds=1&source=x", 400 },
		{ "/debug/pprof/growth", 404 },
		{ "/debug/pprof/goroutine", 404 },
		{ "/debug/pprof/trace", 404 },
		{ "/debug/pprof/heap/more", 404 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		HOLDS(get(bad[i].path) == bad[i].status);
		HOLDS(has("X-Go-Pprof: 1"));
		HOLDS(has("Content-Type: text/plain"));
	}
	return 0;
}

static void errors_have_the_form_that_gos_tool_shows(void **state)
{
	with(errors_client);
}

static int equal_client(void)
{
	int fds[20];

	for (int i = 0; i < 10; i++)
		fds[i] = send_get("/debug/pprof/profile?seconds=1");
	for (int i = 10; i < 15; i++)
		fds[i] = send_get(i % 2 ? "/debug/pprof/heap?seconds=1"
					: "/debug/pprof/block?seconds=1&pid=11");
	for (int i = 0; i < 15; i++)
		HOLDS(status_of(fds[i]) == 200);
	return 0;
}

static void requests_that_come_together_share_one_collection(void **state)
{
	with(equal_client);
	assert_int_equal(taken, 2);
}

static int many_client(void)
{
	char path[100];
	int fds[9], refused = 0;

	for (int i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "/debug/pprof/profile?seconds=%d", 100 + i);
		fds[i] = send_get(path);
		if (i < 8)
			usleep(20000);
	}
	refused = status_of(fds[8]) == 503;
	HOLDS(refused && has("Retry-After") && has("X-Go-Pprof: 1"));
	HOLDS(get("/healthz") == 200);
	return 0;
}

static void too_many_collections_are_refused_and_health_is_answered(void **state)
{
	with(many_client);
}

static int delta_client(void)
{
	struct dict *d = dict_new();
	struct profile *p;

	HOLDS(get("/debug/pprof/delta_heap") == 200);
	usleep(300000);
	HOLDS(get("/debug/pprof/delta_heap") == 200);
	p = profile_of(d);
	HOLDS(p && profile_get_meta(p)->duration_ns > 250000000 &&
	      profile_get_meta(p)->duration_ns < 5000000000);
	return 0;
}

static void delta_heap_is_since_the_last_request(void **state)
{
	with(delta_client);
	assert_int_equal(taken, 3); /* it begins with the first */
}

static int text_client(void)
{
	HOLDS(get("/debug/pprof/heap?debug=1") == 200);
	HOLDS(has("Content-Type: text/plain"));
	HOLDS(get("/debug/pprof/heap?format=svg") == 200);
	HOLDS(has("<svg") && has("Content-Security-Policy: default-src 'none'") &&
	      has("sandbox allow-scripts"));
	HOLDS(get("/debug/pprof/") == 200);
	HOLDS(has("href=\"delta_heap\""));
	HOLDS(get("/debug/pprof") == 301);
	HOLDS(has("Location: /debug/pprof/"));
	HOLDS(get("/debug/pprof/cmdline") == 200);
	HOLDS(has("http_profiles"));
	HOLDS(get("/debug/pprof/cmdline?pid=4194305") == 404);
	HOLDS(get("/debug/pprof/symbol") == 200);
	HOLDS(has("num_symbols: 0"));
	return 0;
}

static void text_pictures_and_the_small_pages_are_there(void **state)
{
	with(text_client);
}

static int gone_client(void)
{
	for (int i = 0; i < 5; i++)
		close(send_get("/debug/pprof/profile?seconds=1"));
	HOLDS(get("/debug/pprof/profile?seconds=2") == 200);
	send_get("/debug/pprof/profile?seconds=100"); /* the run ends before it is answered */
	usleep(50000);
	return 0;
}

static void clients_that_go_and_a_run_that_ends_harm_nobody(void **state)
{
	with(gone_client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_is_of_the_whole_run_at_once),
		cmocka_unit_test(seconds_are_of_that_time_alone),
		cmocka_unit_test(waits_have_the_types_that_are_asked_for),
		cmocka_unit_test(samples_of_one_process_or_container_are_kept),
		cmocka_unit_test(errors_have_the_form_that_gos_tool_shows),
		cmocka_unit_test(requests_that_come_together_share_one_collection),
		cmocka_unit_test(too_many_collections_are_refused_and_health_is_answered),
		cmocka_unit_test(delta_heap_is_since_the_last_request),
		cmocka_unit_test(text_pictures_and_the_small_pages_are_there),
		cmocka_unit_test(clients_that_go_and_a_run_that_ends_harm_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
