#include "symbolize/debuginfod.h"
#include "base/clock.h"
#include "base/library.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { BUILD_ID_BYTES_MAX = 64 };

/* elfutils' debuginfod.h, which only comes with its development package. */
struct debuginfod_client;
typedef int (*progress_fn)(struct debuginfod_client *c, long a, long b);

struct debuginfod {
	void *library;
	struct debuginfod_client *client;
	int64_t left_ns; /* of all fetches      */
	int64_t end_ns;  /* of the present one  */
	bool failed;

	struct debuginfod_client *(*begin)(void);
	void (*end)(struct debuginfod_client *c);
	int (*find)(struct debuginfod_client *c, const unsigned char *build_id, int len,
		    char **path);
	void (*set_progress)(struct debuginfod_client *c, progress_fn fn);
};

static int64_t seconds_allowed(void)
{
	const char *text = getenv("DEBUGINFOD_MAXTIME");
	long own = text ? strtol(text, NULL, 10) : 0;

	return own > 0 && own < DEBUGINFOD_SECONDS_MAX ? own : DEBUGINFOD_SECONDS_MAX;
}

static bool load(struct debuginfod *s)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "debuginfod_begin", &s->begin },
		{ "debuginfod_end", &s->end },
		{ "debuginfod_find_debuginfo", &s->find },
		{ "debuginfod_set_progressfn", &s->set_progress },
	};

	s->library = library_open("libdebuginfod.so.1");
	if (!s->library)
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *address = library_function(s->library, functions[i].name);

		if (!address)
			return false;
		memcpy(functions[i].to, &address, sizeof(address));
	}
	return true;
}

/* The one whose fetch is under way: older libraries have no data for their callback. */
static struct debuginfod *fetching;

/* Anything but 0 ends the fetch. */
static int progress(struct debuginfod_client *c, long a, long b)
{
	return !fetching || now_ns() > (uint64_t)fetching->end_ns;
}

struct debuginfod *debuginfod_new(void)
{
	_cleanup_(debuginfod_freep) struct debuginfod *s = NULL;
	const char *urls = getenv("DEBUGINFOD_URLS");

	if (!urls || !urls[strspn(urls, " ")])
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s || !load(s))
		return NULL;
	s->client = s->begin();
	if (!s->client)
		return NULL;
	s->set_progress(s->client, progress);
	s->left_ns = seconds_allowed() * 1000000000ll;
	return TAKE_PTR(s);
}

void debuginfod_free(struct debuginfod *s)
{
	if (!s)
		return;
	if (s->client)
		s->end(s->client);
	/* The library stays loaded: what it loaded in turn has threads and exit handlers. */
	free(s);
}

static int from_hex(const char *hex, unsigned char out[BUILD_ID_BYTES_MAX])
{
	int n = 0;

	for (; hex[0] && hex[1] && n < BUILD_ID_BYTES_MAX; hex += 2) {
		char byte[3] = { hex[0], hex[1], '\0' }, *end;

		out[n++] = (unsigned char)strtoul(byte, &end, 16);
		if (*end)
			return 0;
	}
	return *hex ? 0 : n;
}

int debuginfod_open(struct debuginfod *s, const char *build_id)
{
	unsigned char id[BUILD_ID_BYTES_MAX];
	int64_t start = (int64_t)now_ns();
	int n = from_hex(build_id, id), fd;

	if (!n)
		return -ENOENT;
	if (s->failed || s->left_ns <= 0)
		return -ETIMEDOUT;
	s->end_ns = start + s->left_ns;
	fetching = s;
	fd = s->find(s->client, id, n, NULL);
	fetching = NULL;
	s->left_ns -= (int64_t)now_ns() - start;
	/* -ENOENT is an answer; -ENOSYS: no servers. */
	if (fd < 0 && fd != -ENOENT)
		s->failed = true;
	return fd < 0 && fd != -ENOENT ? -ETIMEDOUT : fd;
}
