#include "run/push/worker.h"

#include "base/clock.h"
#include "base/units.h"
#include "run/let_go.h"
#include "run/push/backoff.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ANSWER_MAX (256 << 10)
#define LOCK_MS    1000
#define LAST_NS    2000000000ULL
#define SETTLE_MS  50 /* after a new entry: those of a window come together */
#define NO_BACKOFF 0

struct worker {
	const struct push_config *cfg;
	struct push_store *store;
	struct push_stats *stats;
	int wake, news, lock; /* a pipe, inotify, the spool's lock; -1: it is another's */
	struct http_client *client;
	char authorization[9000]; /* ""; */
	struct backoff backoff;
	uint64_t due_ns;    /* CLOCK_MONOTONIC: the store is left alone till then */
	uint64_t failed_ns; /* since when it fails, CLOCK_MONOTONIC; 0: it does not */
	struct push_attempts attempts;
	uint64_t before_ns; /* CPU time of those that sent before, in this run */
};

/* --- the token --- */

static void base64(const char *text, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i += 3) {
		uint32_t three = 0;

		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < len ? (uint8_t)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*out++ = i + k > len ? '=' : digits[three >> (18 - 6 * k) & 63];
	}
	*out = '\0';
}

int push_authorization(const char *file, char *out, size_t cap, struct err *e)
{
	_cleanup_(fclosep) FILE *f = fopen(file, "re");
	char line[4096], coded[2 * sizeof(line)];

	if (!f || !fgets(line, sizeof(line), f))
		return err_set(e, f ? -ENODATA : -errno, "%s: %s", file,
			       f ? "there is no token in it" : strerror(errno));
	line[strcspn(line, "\r\n")] = '\0';
	if (!*line)
		return err_set(e, -ENODATA, "%s: its first line is empty", file);
	if (strchr(line, ':')) {
		base64(line, coded);
		snprintf(out, cap, "Authorization: Basic %s", coded);
	} else {
		snprintf(out, cap, "Authorization: Bearer %s", line);
	}
	return 0;
}

/* It may be another one since; where it cannot be read, the last one stays. */
static void read_token(struct worker *w)
{
	if (w->cfg->token_file)
		push_authorization(w->cfg->token_file, w->authorization, sizeof(w->authorization),
				   NULL);
}

/* --- what is next --- */

enum push_next push_attempt(struct push_attempts *a, const char *name, enum push_verdict verdict,
			    const char **ret_drop)
{
	static char guilty[sizeof(a->suspect)];
	bool known = strcmp(a->suspect, name) == 0;

	*ret_drop = NULL;
	switch (verdict) {
	case PUSH_TAKEN:
		if (*a->suspect && !known && a->failures >= PUSH_FAILURES) {
			memcpy(guilty, a->suspect, sizeof(guilty));
			*ret_drop = guilty;
		}
		*a->suspect = '\0';
		a->failures = 0;
		return PUSH_NEXT_ENTRY;
	case PUSH_REFUSED:
		if (known)
			*a = (struct push_attempts){ 0 };
		return PUSH_NEXT_ENTRY;
	case PUSH_FAILED:
		if (!*a->suspect || (known && a->failures < PUSH_FAILURES)) {
			snprintf(a->suspect, sizeof(a->suspect), "%s", name);
			a->failures++;
		}
		return known && a->failures >= PUSH_FAILURES ? PUSH_NEXT_SKIP : PUSH_NEXT_WAIT;
	case PUSH_LATER:
		break;
	}
	return PUSH_NEXT_WAIT;
}

static void note_cpu(struct worker *w)
{
	w->stats->cpu_ns = w->before_ns + clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* --- sentences --- */

static void say_failing(struct worker *w, const char *why)
{
	char sentence[900];
	uint64_t bytes = w->stats->waiting.bytes;

	if (w->failed_ns)
		return;
	w->failed_ns = now_ns();
	w->stats->failing_since_ns = wall_ns();
	snprintf(sentence, sizeof(sentence),
		 "%s does not take profiles: %.300s; they are kept, up to %s (%s now)",
		 w->store->shown, why, unit_bytes((int64_t)w->cfg->spool_bytes).s,
		 unit_bytes((int64_t)bytes).s);
	err_warn(sentence);
}

static void say_working(struct worker *w)
{
	char sentence[500];

	if (w->failed_ns) {
		snprintf(sentence, sizeof(sentence),
			 "%s takes profiles again after %s; %s wait to be sent", w->store->shown,
			 unit_ns((int64_t)(now_ns() - w->failed_ns)).s,
			 unit_count((int64_t)w->stats->waiting.entries).s);
		err_notice(sentence);
	}
	w->failed_ns = 0;
	w->stats->failing_since_ns = 0;
}

static void drop(struct worker *w, enum push_drop why, uint64_t n, const char *detail)
{
	w->stats->dropped[why] += n;
	push_say_dropped(w->store, why, detail);
}

/* --- one request --- */

static bool is_over(void *ctx)
{
	const struct worker *w = ctx;
	uint64_t stop_ns = w->stats->stop_ns;

	return stop_ns && now_ns() >= stop_ns;
}

static int open_client(struct worker *w, struct err *e)
{
	const struct http_client_options opts = {
		.url = w->store->url,
		.option = "--push",
		.ca_file = w->cfg->ca_file,
		.timeout_ms = (uint64_t)(w->cfg->timeout_s * 1000),
		.answer_max = ANSWER_MAX,
		.stop = is_over,
		.ctx = w,
	};

	return w->client ? 0 : http_client_new(&opts, &w->client, e);
}

static int post(struct worker *w, struct bytes body, struct http_answer *ret_answer, struct err *e)
{
	const char *headers[3 + PUSH_HEADERS + 1];
	uint32_t n = 0;

	for (int i = 0; i < 3 && w->store->protocol->headers[i]; i++)
		headers[n++] = w->store->protocol->headers[i];
	for (uint32_t i = 0; i < w->cfg->n_headers; i++)
		headers[n++] = w->cfg->headers[i];
	if (*w->authorization)
		headers[n++] = w->authorization;
	return http_client_post(w->client, headers, n, body, ret_answer, e);
}

static enum push_verdict send_entry(struct worker *w, const struct spool_entry *entry,
				    uint64_t *ret_retry_after_s)
{
	struct http_answer answer = { 0 };
	enum push_verdict verdict = PUSH_LATER;
	uint64_t rejected = 0;
	struct err e = { 0 };
	char why[300] = "";
	int rc = post(w, entry->body, &answer, &e);

	if (rc == 0) {
		verdict = w->store->protocol->verdict(&answer, &rejected, why, sizeof(why));
		*ret_retry_after_s = answer.retry_after_s;
	} else {
		snprintf(why, sizeof(why), "%.299s", e.msg);
	}
	if (rc == -ECANCELED)
		return PUSH_LATER;
	if (verdict == PUSH_TAKEN) {
		w->stats->pushed++;
		w->stats->pushed_bytes += entry->body.len;
	} else if (verdict != PUSH_REFUSED) {
		w->stats->retries++;
		say_failing(w, why);
	}
	if (verdict == PUSH_TAKEN || verdict == PUSH_REFUSED)
		say_working(w);
	if (verdict == PUSH_REFUSED) {
		char detail[500];

		snprintf(detail, sizeof(detail), "%s: %s", entry->title, why);
		drop(w, PUSH_DROP_REFUSED, 1, detail);
	}
	/* An entry is one profile, whatever number a collector gives. */
	if ((int64_t)rejected > 0)
		drop(w, PUSH_DROP_REJECTED, 1, why);
	return verdict;
}

static void leave_alone(struct worker *w, uint64_t retry_after_s)
{
	uint32_t chance = 0;

	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = (uint32_t)now_ns();
	w->due_ns = now_ns() + backoff_next_ms(&w->backoff, chance, retry_after_s) * 1000000;
}

/* What is next after the entry `name`. */
static enum push_next take_entry(struct worker *w, const char *name)
{
	struct spool_entry entry = { .fd = -1 };
	enum push_verdict verdict;
	enum push_next next;
	uint64_t retry_after_s = 0;
	const char *guilty;
	struct err e = { 0 };
	int rc = spool_hold(&w->store->spool, name, &entry, &e);

	if (rc == -EBADMSG && spool_remove(&w->store->spool, name) == 0)
		drop(w, PUSH_DROP_DAMAGED, 1, e.msg);
	if (rc < 0)
		return PUSH_NEXT_ENTRY;
	verdict = send_entry(w, &entry, &retry_after_s);
	next = push_attempt(&w->attempts, name, verdict, &guilty);
	if (verdict == PUSH_TAKEN || verdict == PUSH_REFUSED) {
		spool_remove(&w->store->spool, name);
		w->backoff.failures = 0;
	}
	spool_let_go(&entry);
	if (guilty && spool_remove(&w->store->spool, guilty) == 0)
		drop(w, PUSH_DROP_REFUSED, 1,
		     "it failed at one again and again, and not at the next");
	if (next == PUSH_NEXT_WAIT)
		leave_alone(w, retry_after_s);
	note_cpu(w);
	return next;
}

/* --- the spool --- */

/* One process at a time sends. */
static bool have_lock(struct worker *w)
{
	char path[4096];

	if (w->lock >= 0)
		return true;
	snprintf(path, sizeof(path), "%s/.lock", w->store->dir);
	w->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (w->lock >= 0 && flock(w->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	closep(&w->lock);
	w->lock = -1;
	return false;
}

/* It was removed for want of room: the next one that fails is suspected. */
static void forget_gone(struct push_attempts *a, const struct spool_names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (strcmp(names->names[i], a->suspect) == 0)
			return;
	*a = (struct push_attempts){ 0 };
}

/* Sends what is there; false: the store is to be left alone. */
static bool send_all(struct worker *w)
{
	struct spool_names names = { 0 };
	enum push_next next = PUSH_NEXT_ENTRY;
	struct err e = { 0 };

	if (spool_count(&w->store->spool, &e) < 0 || spool_list(&w->store->spool, &names, &e) < 0) {
		say_failing(w, e.msg);
		leave_alone(w, 0);
		return false;
	}
	if (names.n && open_client(w, &e) < 0) {
		err_print(e.msg);
		_exit(EXIT_FAILURE);
	}
	if (names.n)
		read_token(w);
	forget_gone(&w->attempts, &names);
	for (uint32_t i = 0; i < names.n && next != PUSH_NEXT_WAIT && !is_over(w); i++)
		next = take_entry(w, names.names[i]);
	spool_names_fini(&names);
	if (next == PUSH_NEXT_SKIP) /* there was no other to try */
		leave_alone(w, 0);
	return next == PUSH_NEXT_ENTRY;
}

static void swallow(int fd)
{
	char buf[4096];

	while (read(fd, buf, sizeof(buf)) > 0)
		;
}

/* Until something is new, the store may be asked again, or the run ends. `sent`: there is nothing left to be sent. */
static void wait_for_news(struct worker *w, bool sent)
{
	struct pollfd fds[] = { { w->wake, POLLIN, 0 }, { w->news, POLLIN, 0 } };
	uint64_t now = now_ns();
	int ms = w->lock < 0 ? LOCK_MS : -1;

	if (!sent && w->lock >= 0)
		ms = w->due_ns > now ? (int)((w->due_ns - now) / 1000000 + 1) : 0;
	/* What is new changes nothing while the store is left alone. */
	poll(fds, sent ? 2 : 1, ms);
	swallow(w->wake);
	if (sent && fds[1].revents) {
		poll(fds, 1, SETTLE_MS);
		swallow(w->news);
	}
}

static void work(struct worker *w)
{
	for (;;) {
		bool locked = have_lock(w), sent = false;

		swallow(w->news);
		if (locked && now_ns() >= w->due_ns)
			sent = send_all(w);
		note_cpu(w);
		/* At the end of a run there is no wait for a store that does not answer. */
		if (w->stats->stop_ns && (!sent || is_over(w) || !w->stats->waiting.entries))
			return;
		if (!w->stats->stop_ns)
			wait_for_news(w, sent);
	}
}

/* --- the process --- */

/* Nothing of root's but its files: the spool is its own. */
static void drop_rights(const struct worker *w)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	struct stat st;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (stat(w->store->dir, &st) == 0 && st.st_uid == geteuid())
		syscall(SYS_capset, &head, none);
}

static void run_worker(const struct push_config *cfg, struct push_store *s, int wake)
{
	static struct worker w;

	w = (struct worker){ .cfg = cfg,
			     .store = s,
			     .stats = s->stats,
			     .wake = wake,
			     .lock = -1,
			     .before_ns = s->stats->cpu_ns };
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "memscope-push", 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, 19);
	let_go_of_the_kernel();
	w.news = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w.news < 0 || inotify_add_watch(w.news, s->dir, IN_CREATE | IN_MOVED_TO) < 0)
		_exit(EXIT_FAILURE);
	read_token(&w);
	drop_rights(&w);
	work(&w);
	_exit(EXIT_SUCCESS);
}

int push_worker_check(const struct push_config *cfg, struct push_store *s, struct err *e)
{
	struct worker w = { .cfg = cfg, .store = s, .stats = s->stats };
	struct err why = { 0 };
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(e, -errno, "cannot begin to push: %m");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int rc = open_client(&w, &why);

		_exit(rc < 0 && write(ends[1], why.msg, strlen(why.msg)) > 0 ? EXIT_FAILURE
									     : EXIT_SUCCESS);
	}
	close(ends[1]);
	n = pid > 0 ? read(ends[0], why.msg, sizeof(why.msg) - 1) : 0;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (n <= 0)
		return 0;
	why.msg[n] = '\0';
	return err_set(e, -EINVAL, "%s", why.msg);
}

int push_worker_start(const struct push_config *cfg, struct push_store *s, struct err *e)
{
	pid_t parent = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_set(e, -errno, "cannot begin to push: %m");
	fflush(NULL);
	s->worker = fork();
	if (s->worker < 0) {
		s->worker = 0;
		close(ends[0]);
		close(ends[1]);
		return err_set(e, -errno, "cannot begin to push: %m");
	}
	if (s->worker == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		if (getppid() == parent)
			run_worker(cfg, s, ends[0]);
		_exit(EXIT_FAILURE);
	}
	close(ends[0]);
	if (s->wake >= 0)
		close(s->wake);
	s->wake = ends[1];
	s->started_ns = now_ns();
	return 0;
}

void push_worker_stop(struct push_store *s, uint64_t wait_ns)
{
	if (!s->worker)
		return;
	s->stats->stop_ns = now_ns() + (wait_ns ? wait_ns : LAST_NS);
	if (write(s->wake, "", 1) < 0)
		return; /* it is full: it has been told */
}

bool push_worker_ended(struct push_store *s, uint64_t until_ns)
{
	while (s->worker) {
		pid_t ended = waitpid(s->worker, NULL, WNOHANG);

		if (ended != 0) { /* or it is not our child */
			s->worker = 0;
		} else if (!until_ns) {
			return false;
		} else if (now_ns() >= until_ns) {
			kill(s->worker, SIGKILL);
			waitpid(s->worker, NULL, 0);
			s->worker = 0;
		} else {
			usleep(10000);
		}
	}
	return true;
}
