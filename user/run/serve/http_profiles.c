/*
 * Profiles over HTTP, as Go's net/http/pprof has them, for `go tool pprof http://…`, Alloy's and Parca's scrapers:
 *
 *   /debug/pprof/              a page of what there is
 *   /debug/pprof/profile       seconds= (30; a value that is none counts as 30, as with Go)
 *   /debug/pprof/heap …        at once and since the run began; with seconds=: of that time alone
 *   /debug/pprof/delta_heap    since it was last asked for with the same words
 *   /debug/pprof/cmdline       pid=: of that process, else memscope's own
 *   /debug/pprof/symbol        no symbols are given: profiles have their names in them
 *
 *   pid=, container=, comm=   of these samples alone; comm: the name of a process
 *   source=            of /profile: another kind, in memscope's own value types (offcpu, growth …)
 *   debug=1            folded stacks as text; format=NAME: any of memscope's formats
 *
 * Errors are text/plain with X-Go-Pprof: 1, without which Go's tool does not show them.
 *
 * A collection is a stretch of time: requests for as many seconds that come near its begin share it, whatever profiles they
 * ask for. In the end one child process makes all their files; requests for equal ones share that, too.
 */
#include "base/clock.h"
#include "base/small_file.h"
#include "base/strbuf.h"
#include "net/http_server.h"
#include "run/component.h"
#include "run/pipeline.h"
#include "run/serve/profile_child.h"
#include "run/serve/serve_config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

#define PATH        "/debug/pprof/"
#define DEFAULT_S   30
#define MAX_S       600
#define COLLECTIONS 8 /* at a time                                                     */
#define CHILDREN    2 /* of them, whose files are made                                 */
#define SHARED_NS   1000000000ULL /* requests so far apart share one, or a tenth of their seconds */
#define CHILD_NS    120000000000ULL /* for a child to make its files                              */
#define GONE_NS     1000000000ULL /* how often it is looked whether clients still wait               */
#define LAST_MAX    16 /* who asks for delta_heap, by words                             */

enum state { FREE, GATHERING, GATHERED, ENCODING };

struct ask {
	struct ask *next;
	struct http_request *q;
	struct profile_want want;
};

struct collection {
	struct http_profiles *of;
	enum state state;
	uint32_t seconds;  /* 0: since the run began                          */
	struct last *last; /* … or since somebody's last request; NULL        */
	uint64_t begin_ns, end_ns, child_ns;
	struct profile_since since;
	struct profile_now now;
	struct ask *asks;
	struct profile_child child;
};

/* Since when delta_heap is asked for, by words. */
struct last {
	struct profile_want want;
	struct profile_since since;
	uint64_t asked_ns; /* 0: free */
};

struct http_profiles {
	struct run *run;
	struct collection collections[COLLECTIONS];
	struct last last[LAST_MAX];
	uint64_t looked_ns; /* whether clients still wait */
};

/* --- answers --- */

static void fail(struct http_request *q, unsigned status, const char *sentence)
{
	http_header(q, "X-Go-Pprof", "1");
	http_error(q, status, "%s", sentence);
}

static const struct {
	const char *format, *type;
} content_types[] = {
	{ "pprof", "application/octet-stream" },
	{ "folded", "text/plain; charset=utf-8" },
	{ "svg", "image/svg+xml" },
	{ "csv", "text/csv; charset=utf-8" },
	{ "speedscope", "application/json" },
	{ "firefox", "application/json" },
};

static const char *content_type(const struct format *f)
{
	for (size_t i = 0; i < sizeof(content_types) / sizeof(*content_types); i++)
		if (strcmp(f->name, content_types[i].format) == 0)
			return content_types[i].type;
	return "application/octet-stream";
}

static void send_file(struct ask *a, const struct profile_file *file,
		      const struct profile_result *result, bool delta)
{
	const struct profile_want *w = &a->want;
	int fd = result->rc == 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 3) : -1;
	char disposition[100];

	if (result->rc == -ENODATA) {
		fail(a->q, 404, result->sentence);
		return;
	}
	if (fd < 0) {
		fail(a->q, 500, result->rc ? result->sentence : strerror(errno));
		return;
	}
	snprintf(disposition, sizeof(disposition), "%s; filename=\"%s%s%s\"",
		 w->format->picture || *content_type(w->format) == 't' ? "inline" : "attachment",
		 w->endpoint->name, delta && w->endpoint->at_once ? "-delta" : "",
		 strcmp(w->format->name, "pprof") == 0 ? "" : w->format->ext);
	http_header(a->q, "Content-Disposition", disposition);
	if (w->format->picture) /* its script is its own; it may load and send nothing */
		http_header(
			a->q, "Content-Security-Policy",
			"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
			"sandbox allow-scripts");
	http_answer_fd(a->q, 200, content_type(w->format), fd, result->len);
}

static struct ask *take_ask(struct collection *c)
{
	struct ask *a = c->asks;

	if (a)
		c->asks = a->next;
	return a;
}

static void collection_fini(struct collection *c)
{
	for (struct ask *a; (a = take_ask(c));)
		free(a);
	profile_child_fini(&c->child);
	profile_since_fini(&c->since);
	profile_now_fini(&c->now);
	*c = (struct collection){ .of = c->of };
}

static void fail_all(struct collection *c, unsigned status, const char *sentence)
{
	for (struct ask *a; (a = take_ask(c)); free(a))
		fail(a->q, status, sentence);
	collection_fini(c);
}

/* --- a collection's end --- */

static int on_child(void *ctx, struct err *e)
{
	struct collection *c = ctx;
	struct profile_child *kid = &c->child;

	(void)e;
	loop_fd_forget(c->of->run->loop, kid->pid_fd);
	profile_child_ended(kid, c->of->run);
	for (struct ask *a; (a = take_ask(c)); free(a))
		for (uint32_t i = 0; i < kid->n_files; i++)
			if (profile_want_same(&kid->files[i].want, &a->want)) {
				send_file(a, &kid->files[i], &kid->results[i],
					  c->seconds || c->last);
				break;
			}
	collection_fini(c);
	return 0;
}

/* Those whose profile there is, each file once; the others get an error. */
static void list_files(struct collection *c)
{
	struct profile_child *kid = &c->child;
	struct ask **at = &c->asks;

	while (*at) {
		struct ask *a = *at;
		uint32_t i = 0;

		while (i < kid->n_files && !profile_want_same(&kid->files[i].want, &a->want))
			i++;
		if (c->now.profiles[a->want.endpoint->kind] && i < PROFILE_FILES_MAX) {
			kid->files[i].want = a->want;
			kid->n_files += i == kid->n_files;
			at = &a->next;
			continue;
		}
		*at = a->next;
		if (i == PROFILE_FILES_MAX)
			fail(a->q, 503,
			     "too many different profiles are asked for: try again later");
		else
			fail(a->q, 404, "this run does not gather what is asked for");
		free(a);
	}
}

static void encode(struct collection *c)
{
	struct run *r = c->of->run;
	struct err e = { 0 };
	int rc = 0;

	list_files(c);
	if (c->asks)
		rc = profile_child_begin(&c->child, r, &c->now, &e);
	if (c->asks && rc == 0)
		rc = loop_fd(r->loop, c->child.pid_fd, on_child, c);
	if (!c->asks || rc < 0) {
		fail_all(c, 500, *e.msg ? e.msg : "out of memory");
		return;
	}
	profile_now_fini(&c->now);
	c->state = ENCODING;
	c->child_ns = now_ns();
}

static int gather(struct collection *c, struct err *e)
{
	struct profile_since *since = c->last ? &c->last->since : &c->since;
	int rc;

	since->goroutines = true;
	rc = pipeline_now(c->of->run, since, &c->now, e);

	if (rc < 0) {
		fail_all(c, 500, e->msg);
		return rc == -ENOMEM ? 0 : rc;
	}
	profile_since_fini(&c->since);
	c->since = (struct profile_since){ 0 };
	c->state = GATHERED;
	return 0;
}

/* Who has hung up waits for nothing, and holds no place. */
static void forget_gone(struct collection *c)
{
	for (struct ask **at = &c->asks, *a; (a = *at);) {
		if (!http_is_gone(a->q)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		fail(a->q, 499, "the client has closed its connection"); /* nginx' status for it */
		free(a);
	}
	if (!c->asks)
		fail_all(c, 499, "");
}

static uint64_t due(void *ctx)
{
	const struct http_profiles *h = ctx;
	uint64_t ns = LOOP_NEVER;
	int children = 0;

	for (int i = 0; i < COLLECTIONS; i++)
		children += h->collections[i].state == ENCODING;
	for (int i = 0; i < COLLECTIONS; i++) {
		const struct collection *c = &h->collections[i];
		uint64_t at = LOOP_NEVER;

		if (c->state == GATHERING)
			at = c->end_ns < h->looked_ns + GONE_NS ? c->end_ns
								: h->looked_ns + GONE_NS;
		else if (c->state == GATHERED && children < CHILDREN)
			at = 0;
		else if (c->state == ENCODING)
			at = c->child_ns + CHILD_NS;
		if (at < ns)
			ns = at;
	}
	return ns;
}

static int on_due(void *ctx, struct err *e)
{
	struct http_profiles *h = ctx;
	uint64_t now = now_ns();
	int children = 0, rc = 0;

	bool look = now - h->looked_ns >= GONE_NS;

	if (look)
		h->looked_ns = now;
	for (int i = 0; i < COLLECTIONS && rc == 0; i++) {
		struct collection *c = &h->collections[i];

		if (look && c->state == GATHERING)
			forget_gone(c);
		if (c->state == GATHERING && c->end_ns <= now)
			rc = gather(c, e);
		if (c->state == ENCODING && now - c->child_ns > CHILD_NS)
			kill(c->child.kid, SIGKILL); /* on_child() follows */
		children += c->state == ENCODING;
	}
	for (int i = 0; i < COLLECTIONS; i++)
		if (h->collections[i].state == GATHERED && children++ < CHILDREN)
			encode(&h->collections[i]);
	return rc;
}

/* --- a collection's begin --- */

/* One that has as many seconds, and began not long ago. */
static struct collection *shared(struct http_profiles *h, uint32_t seconds, const struct last *last)
{
	uint64_t apart = seconds * 100000000ULL, now = now_ns();

	if (apart < SHARED_NS)
		apart = SHARED_NS;
	for (int i = 0; i < COLLECTIONS; i++) {
		struct collection *c = &h->collections[i];

		if (c->state == GATHERING && c->seconds == seconds && c->last == last &&
		    now - c->begin_ns <= apart)
			return c;
	}
	return NULL;
}

/* Goroutines are in no profile of the run before its end. */
static bool gathers(const struct run *r, enum profile_kind kind)
{
	return kind == PROFILE_GOROUTINE ? r->profiles[kind] != NULL : pipeline_has(r, kind);
}

/* NULL: it has been answered why. */
static struct collection *begin(struct http_profiles *h, uint32_t seconds, struct last *last,
				struct http_request *q)
{
	struct collection *c = NULL;
	struct err e = { 0 };

	for (int i = 0; i < COLLECTIONS && !c; i++)
		if (h->collections[i].state == FREE)
			c = &h->collections[i];
	if (!c) {
		http_header(q, "Retry-After", "5");
		fail(q, 503, "too many profiles are being collected: try again later");
		return NULL;
	}
	if (seconds) {
		_cleanup_(profile_now_fini) struct profile_now before = { 0 };

		if (pipeline_now(h->run, &c->since, &before, &e) < 0) {
			fail(q, 500, e.msg);
			return NULL;
		}
	}
	c->of = h;
	c->state = GATHERING;
	c->seconds = seconds;
	c->last = last;
	c->begin_ns = now_ns();
	c->end_ns = c->begin_ns + seconds * 1000000000ULL;
	return c;
}

static void add_ask(struct http_profiles *h, struct http_request *q, const struct profile_want *w,
		    uint32_t seconds, struct last *last)
{
	struct collection *c = shared(h, seconds, last);
	struct ask *a;

	if (!c)
		c = begin(h, seconds, last, q);
	if (!c)
		return;
	a = calloc(1, sizeof(*a));
	if (!a) {
		fail(q, 500, "out of memory");
		return;
	}
	*a = (struct ask){ .next = c->asks, .q = q, .want = *w };
	c->asks = a;
}

/* --- what is asked for --- */

/* A positive integer; -1: something else. */
static int positive(const char *text, int max)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text < '0' || *text > '9' || *end || n <= 0 || n > max ? -1 : (int)n;
}

/* How long, 0: at once; -1: it is answered. */
static int seconds_of(const struct endpoint *to, struct http_request *q)
{
	const char *says = http_query(q, "seconds"), *debug = http_query(q, "debug");
	int n = says ? positive(says, INT32_MAX) : 0;
	char sentence[100];

	if (!to->at_once && n <= 0)
		n = DEFAULT_S; /* as Go has it */
	if (n < 0 || (says && strcmp(says, "0") == 0 && to->at_once)) {
		fail(q, 400, "invalid value for \"seconds\" - must be a positive integer");
		return -1;
	}
	if (n > MAX_S) {
		snprintf(sentence, sizeof(sentence), "a profile of at most %d seconds is made",
			 MAX_S);
		fail(q, 400, sentence);
		return -1;
	}
	if (n && to->at_once && debug && strcmp(debug, "0") != 0) {
		fail(q, 400, "seconds and debug params are incompatible");
		return -1;
	}
	return n;
}

static const struct format *format_of(struct http_request *q)
{
	const char *says = http_query(q, "format"), *debug = http_query(q, "debug");

	if (says)
		return format_find(says);
	return format_find(debug && strcmp(debug, "0") != 0 ? "folded" : "pprof");
}

/* false: it is answered. */
static bool read_want(struct http_request *q, const struct endpoint *to, struct profile_want *w)
{
	const char *pid = http_query(q, "pid"), *container = http_query(q, "container");
	const char *comm = http_query(q, "comm");

	w->endpoint = to;
	w->format = format_of(q);
	if (!w->format || w->format->of_times || w->format->with_levels) {
		fail(q, 400, "this format is not known, or not made here");
		return false;
	}
	if (pid && (w->pid = positive(pid, INT32_MAX)) < 0) {
		fail(q, 400, "invalid value for \"pid\" - must be a positive integer");
		return false;
	}
	if (container && (!*container || strlen(container) >= sizeof(w->container))) {
		fail(q, 400, "invalid value for \"container\" - must be a name or a whole id");
		return false;
	}
	if (container)
		strcpy(w->container, container);
	if (comm)
		snprintf(w->comm, sizeof(w->comm), "%s", comm);
	return true;
}

/* The endpoint of `profile?source=`; NULL: it is answered. */
static const struct endpoint *source_of(const char *says, struct http_request *q)
{
	static const struct {
		const char *source, *endpoint;
	} others[] = { { "oncpu", "profile" }, { "cpu", "profile" }, { "alloc", "allocs" } };
	const struct endpoint *to;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (strcmp(says, others[i].source) == 0)
			says = others[i].endpoint;
	to = endpoint_find(says);
	if (!to)
		fail(q, 400,
		     "invalid value for \"source\" - must be oncpu, offcpu, alloc, heap or growth");
	return to;
}

/* Whose last request counts; the one that was asked for longest ago makes way. */
static struct last *last_of(struct http_profiles *h, const struct profile_want *w)
{
	struct last *oldest = &h->last[0];

	for (int i = 0; i < LAST_MAX; i++) {
		struct last *l = &h->last[i];

		if (l->asked_ns && profile_want_same(&l->want, w)) {
			l->asked_ns = now_ns();
			return l;
		}
		if (l->asked_ns < oldest->asked_ns)
			oldest = l;
	}
	for (int i = 0; i < COLLECTIONS; i++)
		if (h->collections[i].last == oldest)
			return NULL;
	profile_since_fini(&oldest->since);
	*oldest = (struct last){ .want = *w, .asked_ns = now_ns() };
	return oldest;
}

/* Its first profile begins now. */
static int begin_last(struct http_profiles *h, struct last *l, struct err *e)
{
	_cleanup_(profile_now_fini) struct profile_now before = { 0 };

	return l->since.begin.ns ? 0 : pipeline_now(h->run, &l->since, &before, e);
}

static void on_profile(struct http_profiles *h, struct http_request *q, const struct endpoint *to)
{
	const char *source = http_query(q, "source");
	struct profile_want want = { 0 };
	struct last *last = NULL;
	struct err e = { 0 };
	int seconds = seconds_of(to, q);

	if (seconds < 0)
		return;
	if (source && !to->at_once)
		to = source_of(source, q);
	if (!to || !read_want(q, to, &want))
		return;
	while (!gathers(h->run, to->kind) && to[1].name && !to[1].help)
		to++;
	want.endpoint = to;
	if (!gathers(h->run, to->kind)) {
		fail(q, 404, "this run does not gather what is asked for");
		return;
	}
	if (to->since_last && !seconds) {
		last = last_of(h, &want);
		if (!last) {
			fail(q, 503, "too many profiles are being collected: try again later");
			return;
		}
		if (begin_last(h, last, &e) < 0) {
			fail(q, 500, e.msg);
			return;
		}
	}
	add_ask(h, q, &want, (uint32_t)seconds, last);
}

/* --- pages --- */

static void index_page(struct http_request *q)
{
	struct strbuf b = { 0 };

	strbuf_puts(&b, "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>memscope: "
			"/debug/pprof/</title><h1>/debug/pprof/</h1><table>");
	for (const struct endpoint *p = endpoints; p->name; p++)
		if (p->help)
			strbuf_printf(&b, "<tr><td><a href=\"%s\">%s</a> <td>%s", p->name, p->name,
				      p->help);
	strbuf_puts(
		&b,
		"<tr><td><a href=\"cmdline\">cmdline</a> <td>the command line, of pid= or of memscope"
		"</table><p>seconds=: of that time alone. pid=, container=, comm=: of these alone. debug=1: as text. "
		"format=svg: a flame graph.</p>");
	http_header(q, "Content-Security-Policy", "default-src 'none'");
	if (strbuf_oom(&b))
		http_error(q, 500, "out of memory");
	else
		http_answer(q, 200, "text/html; charset=utf-8", b.s, b.len);
	strbuf_free(&b);
}

static void cmdline(struct http_request *q)
{
	const char *says = http_query(q, "pid");
	int pid = says ? positive(says, INT32_MAX) : 0;
	char path[40], text[4096];
	ssize_t n;
	int fd;

	if (pid < 0) {
		fail(q, 400, "invalid value for \"pid\" - must be a positive integer");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid ? pid : (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	closep(&fd);
	if (n < 0)
		fail(q, 404, "there is no such process");
	else
		http_answer(q, 200, "text/plain; charset=utf-8", text,
			    (size_t)(n && !text[n - 1] ? n - 1 : n));
}

static void symbol(void *ctx, struct http_request *q)
{
	static const char none[] = "num_symbols: 0\n";

	(void)ctx;
	http_answer(q, 200, "text/plain; charset=utf-8", none, sizeof(none) - 1);
}

static void on_request(void *ctx, struct http_request *q)
{
	const char *name = http_path(q) + strlen(PATH);
	const struct endpoint *to = endpoint_find(name);

	if (to)
		on_profile(ctx, q, to);
	else if (!*name)
		index_page(q);
	else if (strcmp(name, "cmdline") == 0)
		cmdline(q);
	else
		fail(q, 404, "there is no such profile: see /debug/pprof/");
}

static void to_index(void *ctx, struct http_request *q)
{
	(void)ctx;
	http_header(q, "Location", PATH);
	http_error(q, 301, "see " PATH);
}

/* --- in the order of a run --- */

static bool wanted(const struct run_config *cfg)
{
	return cfg->serve && cfg->serve->http.n_listen;
}

static int ready(void *self, struct err *e)
{
	struct http_profiles *h = self;
	struct http_server *server = h->run->serving.http;

	if (!server)
		return 0;
	if (http_route(server, "GET", PATH, 0, on_request, h) < 0 ||
	    http_route(server, "GET", "/debug/pprof", 0, to_index, h) < 0 ||
	    http_route(server, "GET", PATH "symbol", 0, symbol, h) < 0 ||
	    http_route(server, "POST", PATH "symbol", 0, symbol, h) < 0 ||
	    loop_at(h->run->loop, due, on_due, h) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* The server is closed next. */
static void closing(void *self)
{
	struct http_profiles *h = self;

	for (int i = 0; i < COLLECTIONS; i++) {
		struct collection *c = &h->collections[i];

		if (c->state == ENCODING)
			loop_fd_forget(h->run->loop, c->child.pid_fd);
		if (c->state != FREE)
			fail_all(c, 503, "memscope is ending");
	}
}

static void free_profiles(void *self)
{
	struct http_profiles *h = self;

	for (int i = 0; i < COLLECTIONS; i++)
		collection_fini(&h->collections[i]);
	for (int i = 0; i < LAST_MAX; i++)
		profile_since_fini(&h->last[i].since);
}

const struct component http_profiles_component = {
	.name = "HTTP profiles",
	.size = sizeof(struct http_profiles),
	.wanted = wanted,
	.ready = ready,
	.closing = closing,
	.free = free_profiles,
};
