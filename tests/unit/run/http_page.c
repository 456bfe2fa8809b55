/* The live page and what it is made of, of a run without a kernel; a client in a process of its own. */
#include "run_fixture.h"

#include "net/http_server.h"
#include "run/serve/serve_config.h"

#include <cjson/cJSON.h>
#include <netinet/in.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/memscope-unit-page-XXXXXX";
static uint16_t port;
static char answer[1 << 20];

uint64_t session_map_bytes(struct session *s)
{
	return 4096;
}

static unsigned get(const char *path)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned status = 0;
	size_t len = 0;
	char text[500];
	ssize_t n;

	snprintf(text, sizeof(text),
		 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    send(fd, text, strlen(text), 0) < 0)
		_exit(90);
	while ((n = recv(fd, answer + len, sizeof(answer) - 1 - len, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	close(fd);
	sscanf(answer, "HTTP/1.1 %u", &status);
	return status;
}

static int holds(bool is, int line)
{
	if (!is)
		fprintf(stderr, "line %d: %.400s\n", line, answer);
	return is ? 0 : 1;
}

#define HOLDS(what)                                                                                \
	do {                                                                                       \
		if (holds((what), __LINE__))                                                       \
			return 1;                                                                  \
	} while (0)

static int on_client(void *ctx, struct err *e)
{
	loop_end(((struct run *)ctx)->loop);
	return 0;
}

static void use(struct run *r, const char *comm, int64_t cpu_ns)
{
	const struct label l[] = { { .key = dict_string(r->dict, "pid"), .num = getpid() },
				   { .key = dict_string(r->dict, "comm"),
				     .str = dict_string(r->dict, comm) } };
	const int64_t values[2] = { 1, cpu_ns };

	assert_int_equal(profile_add(r->profiles[PROFILE_ONCPU], (stack_id){ 0 },
				     dict_labels(r->dict, l, 2), values),
			 0);
}

static void with(int (*client)(void))
{
	static const char *const listen[] = { "127.0.0.1:0" };
	struct serve_config serve = { .http = { .listen = listen, .n_listen = 1 } };
	struct run_config cfg = { .serve = &serve, .hz = 100, .interval_s = 1, .dir = dir };
	struct run *r = bare_run(&cfg);
	const struct component *service = component_named("HTTP server"),
			       *page = component_named("HTTP page");
	void *s = alone(r, "HTTP server"), *p = alone(r, "HTTP page");
	const struct profile_row *row = &profile_rows[PROFILE_ONCPU];
	struct err e = { 0 };
	int status, fd;
	pid_t pid;

	r->profiles[PROFILE_ONCPU] = profile_new(r->dict, row->types, row->n_types);
	assert_int_equal(service->prepare(s, NULL, &e), 0);
	assert_int_equal(page->ready(p, &e), 0);
	use(r, "</script>\"", 250000000);
	page->row(p, now_ns());
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
	page->closing(p);
	service->closed(s);
	close(fd);
	bare_run_free(r);
}

static int page_client(void)
{
	HOLDS(get("/") == 200);
	HOLDS(strstr(answer, "Content-Security-Policy: default-src 'none'; style-src 'sha256-"));
	HOLDS(!strstr(answer, "@STYLE@") && !strstr(answer, "@SCRIPT@") &&
	      !strstr(answer, "@THEME@"));
	HOLDS(!strstr(answer, "src=\"http") && strstr(answer, "</html>"));
	return 0;
}

static void the_page_is_whole_and_its_policy_lets_nothing_else_in(void **state)
{
	with(page_client);
}

static int targets_client(void)
{
	const cJSON *json, *target;

	HOLDS(get("/api/targets") == 200);
	json = cJSON_Parse(strstr(answer, "\r\n\r\n") + 4);
	target = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "targets"), 0);
	HOLDS(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(target, "name")), "</script>\"") ==
	      0);
	HOLDS(cJSON_GetNumberValue(
		      cJSON_GetArrayItem(cJSON_GetObjectItem(target, "cpu_percent"), 0)) == 25);
	HOLDS(cJSON_GetNumberValue(cJSON_GetArrayItem(cJSON_GetObjectItem(target, "rss_kb"), 0)) >
	      100);
	HOLDS(cJSON_GetNumberValue(
		      cJSON_GetObjectItem(cJSON_GetObjectItem(json, "own"), "map_bytes")) == 4096);
	return 0;
}

static void targets_have_names_and_figures(void **state)
{
	with(targets_client);
}

static int windows_client(void)
{
	const cJSON *json, *window;

	HOLDS(get("/api/windows") == 200);
	json = cJSON_GetObjectItem(cJSON_Parse(strstr(answer, "\r\n\r\n") + 4), "windows");
	HOLDS(cJSON_GetArraySize(json) == 2);
	window = cJSON_GetArrayItem(json, 0);
	HOLDS(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(window, "stamp")),
		     "20261124-100200") == 0);
	HOLDS(cJSON_GetArraySize(cJSON_GetObjectItem(window, "files")) == 2);
	HOLDS(get("/api/windows/oncpu-20261124-100000.pb.gz") == 200);
	HOLDS(strstr(answer, "\r\n\r\nnot a profile"));
	HOLDS(get("/api/windows/oncpu-20261124-100000.pb.gz?format=svg") == 500);
	HOLDS(get("/api/windows/oncpu-20261124-100000.pb.gz?format=none") == 400);
	HOLDS(get("/api/windows/oncpu-20261124-235959.pb.gz") == 404);
	HOLDS(get("/api/windows/oncpu-20261124-235959.pb.gz?format=svg") == 404);
	return 0;
}

static int outside_client(void)
{
	static const char *const paths[] = { "",
					     "..",
					     "../secret.pb.gz",
					     "..%2fsecret.pb.gz",
					     "/etc/passwd",
					     ".hidden.pb.gz",
					     "link-1.pb.gz",
					     "sub/oncpu-1.pb.gz",
					     "secret-1.txt",
					     "secret.pb.gz%00" };
	char path[200];

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snprintf(path, sizeof(path), "/api/windows/%s", paths[i]);
		HOLDS(get(path) == 404);
	}
	return 0;
}

static void put(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void windows_are_listed_by_time_and_sent(void **state)
{
	with(windows_client);
}

static void nothing_but_windows_is_sent(void **state)
{
	with(outside_client);
}

static int make_files(void **state)
{
	char link[200];

	if (!mkdtemp(dir))
		return -1;
	put("oncpu-20261124-100000.pb.gz", "not a profile");
	put("oncpu-20261124-100200.pb.gz", "x");
	put("offcpu-20261124-100200.pb.gz", "x");
	put("oncpu-20261124-100200.times.csv.gz", "x");
	put("secret-1.txt", "x");
	put(".hidden.pb.gz", "x");
	snprintf(link, sizeof(link), "%s/link-1.pb.gz", dir);
	return symlink("/etc/passwd", link);
}

static int remove_files(void **state)
{
	char command[200];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_page_is_whole_and_its_policy_lets_nothing_else_in),
		cmocka_unit_test(targets_have_names_and_figures),
		cmocka_unit_test(windows_are_listed_by_time_and_sent),
		cmocka_unit_test(nothing_but_windows_is_sent),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
