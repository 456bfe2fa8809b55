#include "run/push.h"

#include "base/archive.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"
#include "model/pprof.h"
#include "run/folders.h"
#include "run/push/parts.h"
#include "run/push/protocol.h"
#include "run/run.h"
#include "run/window_room.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SAY_NS 600000000000ULL

const char *const push_drop_names[N_PUSH_DROPS] = { "refused",   "rejected", "over_limit",
						    "disk_full", "damaged",  "not_made" };

/* Ends of a sentence: "12 profiles did not come to otlp at URL: …". */
static const char *const drop_words[N_PUSH_DROPS] = {
	"it refuses them",
	"it left them out of what it took",
	"they were the oldest when --spool-limit was passed",
	"the disk of the spool is full",
	"what was read from the spool is damaged",
	"they could not be made",
};

/* --- configuration --- */

int push_spool_size(const char *text, uint64_t *ret_bytes, struct err *e)
{
	unsigned shift = 0;
	char *end;
	double n;

	errno = 0;
	n = strtod(text, &end);
	if (*end && strchr("KMGT", *end) && !end[1])
		shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 40;
	else if (*end)
		errno = EINVAL;
	n *= (double)(1ULL << shift);
	if (errno || *text < '0' || *text > '9' || n < 1 << 20 || n > 1e15)
		return err_set(
			e, -EINVAL,
			"--spool-limit takes bytes, at least 1M, like 512M or 2G: not \"%.64s\"",
			text);
	*ret_bytes = (uint64_t)n;
	return 0;
}

static const struct push_protocol *protocol_of(const char *store, const char **ret_url)
{
	for (const struct push_protocol *p = push_protocols; p->name; p++) {
		size_t len = strlen(p->name);

		if (strncmp(store, p->name, len) == 0 && store[len] == '=') {
			*ret_url = store + len + 1;
			return p;
		}
	}
	return NULL;
}

static int check_store(const char *store, struct err *e)
{
	const char *url, *rest;
	char shown[200];

	if (!protocol_of(store, &url))
		return err_set(e, -EINVAL, "--push takes pyroscope=URL or otlp=URL: not \"%.64s\"",
			       store);
	http_url_shown(url, shown, sizeof(shown));
	rest = strncmp(url, "http://", 7) == 0    ? url + 7
	       : strncmp(url, "https://", 8) == 0 ? url + 8
						  : NULL;
	if (!rest || !*rest || *rest == '/')
		return err_set(e, -EINVAL,
			       "--push: \"%s\" is no address like http://HOST:PORT or https://HOST",
			       shown);
	if (strpbrk(url, "?#") || strpbrk(url, " \t\r\n"))
		return err_set(e, -EINVAL,
			       "--push: \"%s\": the path of the protocol is added to it, "
			       "so it cannot have a '?', a '#' or a blank",
			       shown);
	return 0;
}

int push_config_check(const struct push_config *cfg, struct err *e)
{
	if (cfg->n_stores > PUSH_STORES)
		return err_set(e, -EINVAL, "--push may be given %d times, not %u", PUSH_STORES,
			       cfg->n_stores);
	if (cfg->n_headers > PUSH_HEADERS)
		return err_set(e, -EINVAL, "--push-header may be given %d times, not %u",
			       PUSH_HEADERS, cfg->n_headers);
	if (!cfg->n_stores && (cfg->n_headers || cfg->token_file || cfg->ca_file || cfg->spool))
		return err_set(e, -EINVAL, "--push-… and --spool go with --push STORE=URL");
	for (uint32_t i = 0; i < cfg->n_stores; i++) {
		if (check_store(cfg->stores[i], e) < 0)
			return -EINVAL;
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(cfg->stores[i], cfg->stores[k]) == 0)
				return err_set(e, -EINVAL, "--push: the same store twice");
	}
	for (uint32_t i = 0; i < cfg->n_headers; i++) {
		const char *h = cfg->headers[i];
		size_t len = strcspn(h, ": \t");

		if (!len || h[len] != ':' || strpbrk(h, "\r\n"))
			return err_set(e, -EINVAL,
				       "--push-header takes NAME: VALUE, like X-Scope-OrgID: team: "
				       "not \"%.64s\"",
				       h);
	}
	return 0;
}

/* --- stores --- */

static int open_store(const struct push_config *cfg, const char *store, const char *dir,
		      struct push_store *s, struct err *e)
{
	size_t len;
	const char *url;

	s->protocol = protocol_of(store, &url);
	len = strlen(url);
	while (len && url[len - 1] == '/')
		len--;
	if (len > strlen(s->protocol->path) &&
	    strncmp(url + len - strlen(s->protocol->path), s->protocol->path,
		    strlen(s->protocol->path)) == 0)
		len -= strlen(s->protocol->path);
	if (asprintf(&s->url, "%.*s%s", (int)len, url, s->protocol->path) < 0) {
		s->url = NULL;
		return err_set(e, -ENOMEM, "out of memory");
	}
	snprintf(s->shown, sizeof(s->shown), "%s at ", s->protocol->name);
	len = strlen(s->shown);
	http_url_shown(url, s->shown + len, sizeof(s->shown) - len);
	snprintf(s->dir, sizeof(s->dir), "%.3000s/%s-%016" PRIx64, dir, s->protocol->name,
		 content_hash(s->url, strlen(s->url)));
	s->stats = mmap(NULL, sizeof(*s->stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (s->stats == MAP_FAILED) {
		s->stats = NULL;
		return err_set(e, -ENOMEM, "out of memory");
	}
	s->spool = (struct spool){ s->dir, cfg->spool_bytes, &s->stats->waiting };
	return spool_open(&s->spool, e);
}

/* What waits for a store that nobody pushes to any more. */
static void say_left_over(const struct push *p, const char *dir)
{
	_cleanup_(freep) struct dirent **names = NULL;
	int n = scandir(dir, &names, NULL, NULL);

	for (int i = 0; i < n; i++) {
		struct spool_use use = { 0 };
		char path[4096], sentence[4300];
		bool ours = *names[i]->d_name == '.';

		snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
		for (uint32_t k = 0; k < p->n; k++)
			ours |= strcmp(path, p->stores[k].dir) == 0;
		if (!ours && spool_count(&(struct spool){ path, 0, &use }, NULL) == 0 &&
		    use.entries) {
			snprintf(sentence, sizeof(sentence),
				 "%" PRIu64
				 " profiles in %.3000s wait for a store that --push does "
				 "not name any more; remove them, or name it again",
				 (uint64_t)use.entries, path);
			err_notice(sentence);
		}
		free(names[i]);
	}
}

int push_open(const struct push_config *cfg, const char *dir, struct push **ret_push, struct err *e)
{
	struct push *p = calloc(1, sizeof(*p));
	int rc = p ? 0 : err_set(e, -ENOMEM, "out of memory");

	if (rc == 0 && mkdir(dir, 0700) < 0 && errno != EEXIST)
		rc = err_set(e, -errno, "cannot make the directory '%s': %m", dir);
	for (uint32_t i = 0; rc == 0 && i < cfg->n_stores; i++) {
		p->stores[i].wake = -1;
		p->n++;
		rc = open_store(cfg, cfg->stores[i], dir, &p->stores[i], e);
	}
	if (rc < 0) {
		push_close(p);
		return rc;
	}
	p->cfg = cfg;
	say_left_over(p, dir);
	*ret_push = p;
	return 0;
}

void push_close(struct push *p)
{
	for (uint32_t i = 0; p && i < p->n; i++) {
		struct push_store *s = &p->stores[i];

		if (s->wake >= 0)
			close(s->wake);
		if (s->stats)
			munmap(s->stats, sizeof(*s->stats));
		free(s->url);
	}
	free(p);
}

uint64_t push_dropped(const struct push_stats *stats)
{
	uint64_t n = 0;

	for (int i = 0; i < N_PUSH_DROPS; i++)
		n += stats->dropped[i];
	return n;
}

uint64_t push_cpu_ns(const struct push *p)
{
	clockid_t clock;
	uint64_t sum = 0;

	for (uint32_t i = 0; p && i < p->n; i++)
		if (p->stores[i].worker && clock_getcpuclockid(p->stores[i].worker, &clock) == 0)
			sum += clock_ns(clock);
	return sum;
}

void push_say_dropped(struct push_store *s, enum push_drop why, const char *detail)
{
	struct push_stats *stats = s->stats;
	uint64_t now = now_ns(), before = stats->said_ns[why], n = stats->dropped[why];
	char sentence[700];

	if ((before && now - before < SAY_NS) ||
	    !atomic_compare_exchange_strong(&stats->said_ns[why], &before, now))
		return;
	n -= atomic_exchange(&stats->said[why], n);
	snprintf(sentence, sizeof(sentence), "%s profile%s did not come to %s: %s%s%.300s",
		 unit_count((int64_t)n).s, n == 1 ? "" : "s", s->shown, drop_words[why],
		 *detail ? " (" : "", detail);
	if (*detail)
		strcat(sentence, ")");
	err_warn(sentence);
}

/* --- profiles --- */

static void drop(struct push_store *s, enum push_drop why, uint64_t n, const char *detail)
{
	if (!n)
		return;
	s->stats->dropped[why] += n;
	push_say_dropped(s, why, detail);
}

/* 128 bits of what is sent and for whom: the same for the same, and for nothing else. A UUID of version 8. */
static int make_id(const struct profile *p, const struct push_labels *labels, uint8_t ret_id[16],
		   uint64_t *ret_bytes, struct err *e)
{
	_cleanup_(sink_closep) struct sink *raw = NULL;
	int rc = sink_open_memory(&raw, e);
	uint64_t hash[2] = { 0 };
	const char *bytes;
	size_t len;

	if (rc == 0)
		rc = pprof_write(p, (module_id){ 0 }, raw, e);
	if (rc == 0)
		rc = sink_commit(raw, e);
	if (rc < 0)
		return rc;
	bytes = sink_memory(raw, &len);
	hash[0] = content_hash(bytes, len);
	for (uint32_t i = 0; i < labels->n; i++) {
		uint64_t parts[3] = {
			hash[1], content_hash(labels->list[i].name, strlen(labels->list[i].name)),
			content_hash(labels->list[i].value, strlen(labels->list[i].value))
		};

		hash[1] = content_hash(parts, sizeof(parts));
	}
	memcpy(ret_id, hash, 16);
	ret_id[6] = (uint8_t)((ret_id[6] & 0x0f) | 0x80);
	ret_id[8] = (uint8_t)((ret_id[8] & 0x3f) | 0x80);
	*ret_bytes = len;
	return 0;
}

/* Whether windows that go leave room for the spool: it is on their disk. */
static bool on_the_archives_disk(const struct push_store *s, const struct run_config *cfg)
{
	struct stat spool, archive;

	return stat(s->dir, &spool) == 0 && stat(cfg->dir, &archive) == 0 &&
	       spool.st_dev == archive.st_dev;
}

/* On a full disk the oldest of what waits go first, and then the oldest windows of the archive, which were pushed long ago. */
static int put_with_room(struct push_store *s, const struct run_config *cfg, int64_t time_ns,
			 const char *title, struct bytes body, struct spool_gone *gone,
			 struct err *e)
{
	int rc = spool_put(&s->spool, time_ns, title, body, gone, e);

	for (uint64_t n = 1;
	     archive_is_full(rc) && on_the_archives_disk(s, cfg) && window_room_make(cfg, n);
	     n *= 2)
		rc = spool_put(&s->spool, time_ns, title, body, gone, e);
	return rc;
}

static void put(struct push_store *s, const struct run_config *cfg, const struct push_item *item)
{
	_cleanup_(sink_closep) struct sink *body = NULL;
	const char *bytes, *service = push_label(item->labels, "service.name");
	struct spool_gone gone = { 0 };
	struct err e = { 0 };
	char title[128];
	size_t len;
	int rc = sink_open_memory(&body, &e);

	if (rc == 0)
		rc = s->protocol->body(item, body, &e);
	if (rc == 0)
		rc = sink_commit(body, &e);
	if (rc < 0) {
		drop(s, PUSH_DROP_NOT_MADE, 1, e.msg);
		return;
	}
	snprintf(title, sizeof(title), "%s of %.80s", profile_rows[item->kind].name,
		 service ? service : "");
	bytes = sink_memory(body, &len);
	rc = put_with_room(s, cfg, profile_get_meta(item->profile)->time_ns, title,
			   bytes_of(bytes, len), &gone, &e);
	s->stats->spooled += rc == 0;
	drop(s, PUSH_DROP_OVER_LIMIT, gone.over_limit, "");
	drop(s, PUSH_DROP_DISK_FULL, gone.no_room, "");
	if (rc < 0)
		drop(s,
		     rc == -EBUSY          ? PUSH_DROP_OVER_LIMIT
		     : archive_is_full(rc) ? PUSH_DROP_DISK_FULL
					   : PUSH_DROP_NOT_MADE,
		     1, e.msg);
}

static void drop_everywhere(struct push *push, const char *detail)
{
	for (uint32_t i = 0; i < push->n; i++)
		drop(&push->stores[i], PUSH_DROP_NOT_MADE, 1, detail);
}

/* One profile, in as many parts as it takes for each to be small enough; -E2BIG: more than `n`. */
static int put_parts(const struct run *r, struct push_item *item, const struct profile *all,
		     uint32_t n, struct err *e)
{
	struct push *push = r->serving.push;

	for (uint32_t i = 0; i < n; i++) {
		_cleanup_(profile_freep) struct profile *part = NULL;
		uint64_t bytes = 0;
		int rc = parts_take(all, i, n, &part);

		if (rc == 0)
			rc = make_id(part, item->labels, item->id, &bytes, e);
		if (rc < 0)
			return rc;
		if (i == 0 && bytes > PARTS_BYTES && n < profile_n_samples(all))
			return -E2BIG; /* of equal parts the first is as large as any */
		item->profile = part;
		for (uint32_t k = 0; k < push->n; k++)
			put(&push->stores[k], r->cfg, item);
	}
	return 0;
}

void push_profile(const struct run *r, const struct profile *p, enum profile_kind kind,
		  const char *folder)
{
	_cleanup_(push_labels_fini) struct push_labels labels = { 0 };
	_cleanup_(profile_freep) struct profile *all = NULL;
	struct push_item item = { .kind = kind, .labels = &labels };
	char name[FOLDER_NAME + 1];
	struct err e = { .msg = "out of memory" };
	int rc;

	if (!r->serving.push || (!*folder && folders_wanted(r->cfg)))
		return;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(folder, "/"), folder);
	rc = push_labels_of(r->cfg, p, *name ? name : NULL, &labels);
	if (rc == 0)
		rc = parts_reduce(p, kind, &all);
	if (rc == 0 && !all)
		return;
	if (rc == 0) {
		uint32_t n = (profile_n_samples(all) + PARTS_SAMPLES - 1) / PARTS_SAMPLES;

		while ((rc = put_parts(r, &item, all, n, &e)) == -E2BIG)
			n *= 2;
	}
	if (rc < 0)
		drop_everywhere(r->serving.push, e.msg);
}
