/*
 * Publishes what its threads do, as OpenTelemetry's OTEP 4719 and 4947 say, and divides its CPU time.
 *
 *   thread_context [LIBRARY]    the thread-local word is the program's own, or that of a library that is loaded (lib_otel.c)
 *   thread_context hostile      threads publish what is no context, at every address and of every size, and so does the process a quarter of the time
 *   thread_context spans        a new span for each piece of work, and for each wait
 *
 * At first it computes without a context, until it reads a line. Then the first thread, for ever: three parts of its time under span 1 of /search, one under span 2 of /cart, for anna, one
 * without a context. The span of /cart sets its route twice: the last one counts. From its 50th piece of work on that one has a third
 * attribute, tenant, whose name the process publishes then. The other thread works under span 3 of /worker, as long as the first
 * one in all, and waits for it in between. The first one sleeps under span 4 of /sleep.
 *
 * ready PID
 */
#include "target.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t size;
	uint8_t attributes[612];
};

#ifndef NO_VARIABLE
__thread void *otel_thread_ctx_v1;

static void **own_slot(void)
{
	return &otel_thread_ctx_v1;
}

static void **(*slot)(void) = own_slot;
#else
static void **(*slot)(void);
#endif

static void attribute(struct record *r, uint8_t key, const char *text)
{
	r->attributes[r->size++] = key;
	r->attributes[r->size++] = (uint8_t)strlen(text);
	memcpy(r->attributes + r->size, text, strlen(text));
	r->size = (uint16_t)(r->size + strlen(text));
}

static void record_set(struct record *r, uint8_t span, const char *route)
{
	r->valid = 0;
	memset(r->trace, 0xab, sizeof(r->trace));
	memset(r->span, 0, sizeof(r->span));
	r->span[7] = span;
	r->flags = 1;
	r->size = 0;
	attribute(r, 0, route);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	r->valid = 1;
}

static void publish(struct record *r)
{
	*(void *volatile *)slot() = r;
}

/* --- the process's context --- */

struct header {
	char signature[8];
	uint32_t version, payload_bytes;
	volatile uint64_t published_ns;
	const uint8_t *volatile payload;
};

static struct header *header;

static uint8_t *field(uint8_t *to, uint8_t no, const void *bytes, size_t len)
{
	*to++ = (uint8_t)(no << 3 | 2);
	if (len > 127)
		*to++ = (uint8_t)(len | 0x80);
	*to++ = (uint8_t)(len > 127 ? len >> 7 : len);
	memcpy(to, bytes, len);
	return to + len;
}

static size_t text_value(uint8_t *to, const char *text)
{
	return (size_t)(field(to, 1, text, strlen(text)) - to);
}

/* One attribute, in field `no` of the message. */
static uint8_t *key_value(uint8_t *to, uint8_t no, const char *key, const uint8_t *value,
			  size_t len)
{
	uint8_t kv[1024], *end = field(kv, 1, key, strlen(key));

	end = field(end, 2, value, len);
	return field(to, no, kv, (size_t)(end - kv));
}

/* `as_resource`: OTEP 4719's payload, else that of the profiler's own protocol. */
static size_t payload(uint8_t *to, int n_keys, bool as_resource)
{
	static const char *const keys[] = { "http.route", "pid", "tenant" };
	uint8_t value[256], list[256], array[300], *end = list, *out = to, no = as_resource ? 1 : 2;

	if (as_resource) {
		out = key_value(out, 1, "service.name", value, text_value(value, "shop"));
	} else {
		uint8_t resource[256];

		end = key_value(resource, 1, "service.name", value, text_value(value, "shop"));
		out = field(out, 1, resource, (size_t)(end - resource));
		end = list;
	}
	out = key_value(out, no, "threadlocal.schema_version", value,
			text_value(value, as_resource ? "tls_v1" : "tlsdesc_v1_dev"));
	for (int i = 0; i < n_keys; i++)
		end = field(end, 1, value, text_value(value, keys[i]));
	end = field(array, 5, list, (size_t)(end - list));
	out = key_value(out, no, "threadlocal.attribute_key_map", array, (size_t)(end - array));
	return (size_t)(out - to);
}

static void publish_process(int n_keys, bool as_resource)
{
	static uint8_t room[2][4096];
	uint8_t *to = room[n_keys & 1];
	size_t len = payload(to, n_keys, as_resource);
	int fd;

	if (!header) {
		fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, 4096))
			die("memfd");
		header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
		if (header == MAP_FAILED)
			die("mmap");
		close(fd);
		madvise(header, 4096, MADV_DONTFORK);
	}
	header->published_ns = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	header->version = 2;
	header->payload_bytes = (uint32_t)len;
	header->payload = to;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(header->signature, "OTEL_CTX", 8);
	header->published_ns = mono_ns();
}

/* --- the work --- */

static uint64_t per_ms;
static int turn;

BURNER(hot_search)
BURNER(hot_cart)
BURNER(hot_nothing)
BURNER(hot_worker)

static NOINLINE void do_sleep(uint64_t ns)
{
	sleep_ns(ns);
	__asm__ volatile("");
}

static void hand_over(int to)
{
	__atomic_store_n(&turn, to, __ATOMIC_RELEASE);
	sys(SYS_futex, (long)&turn, 1 /* FUTEX_WAKE */, 1 << 30, 0, 0, 0);
}

static void await_turn(int mine)
{
	int now;

	while ((now = __atomic_load_n(&turn, __ATOMIC_ACQUIRE)) != mine)
		sys(SYS_futex, (long)&turn, 0 /* FUTEX_WAIT */, now, 0, 0, 0);
}

static void *worker(void *arg)
{
	static struct record mine;
	uint64_t seed = 3;

	record_set(&mine, 3, "/worker");
	publish(&mine);
	for (;;) {
		await_turn(1);
		hot_worker(per_ms * (3 + random_next(&seed) % 27) / 10);
		hand_over(0);
	}
	return arg;
}

static NOINLINE void warm_up(void)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	while (poll(&input, 1, 0) == 0)
		burn(per_ms);
	next_command();
}

static void work(bool as_resource)
{
	static struct record search, cart, nap;
	static void (*const hot[])(uint64_t) = { hot_search, hot_cart, hot_nothing };
	static const double share[] = { 0.6, 0.2, 0.2 };
	uint64_t seed = 1, spent_ns[3] = { 0 }, total_ns = 0;

	record_set(&search, 1, "/search");
	record_set(&cart, 2, "/old");
	attribute(&cart, 1, "anna");
	attribute(&cart, 0, "/cart");
	record_set(&nap, 4, "/sleep");
	for (int round = 0;; round++) {
		uint64_t begin;
		int which = 0;

		await_turn(0);
		for (int i = 1; i < 3; i++)
			if (share[i] * (double)total_ns - (double)spent_ns[i] >
			    share[which] * (double)total_ns - (double)spent_ns[which])
				which = i;
		publish(which == 0 ? &search : which == 1 ? &cart : NULL);
		begin = cpu_ns();
		hot[which](per_ms * (3 + random_next(&seed) % 27) / 10);
		begin = cpu_ns() - begin;
		spent_ns[which] += begin;
		total_ns += begin;
		publish(&nap);
		do_sleep(200000);
		publish(NULL);
		if (round == 50) {
			publish_process(3, as_resource);
			attribute(&cart, 2, "blue");
		}
		hand_over(1);
	}
}

static void every_span(void)
{
	static struct record r;

	for (uint32_t i = 1;; i++) {
		record_set(&r, 1, i & 1 ? "/odd" : "/even");
		r.valid = 0;
		memcpy(r.span, &i, sizeof(i));
		r.valid = 1;
		publish(&r);
		burn(per_ms / 5);
		do_sleep(20000);
	}
}

static void hostile(void)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct record *last = (struct record *)(page + 4096 - 28);
	uint64_t seed = 1;

	if (page == MAP_FAILED || munmap(page + 4096, 4096))
		die("mmap");
	for (uint32_t i = 0;; i++) {
		static struct record r;

		for (size_t k = 0; k < sizeof(r); k++)
			((uint8_t *)&r)[k] = (uint8_t)random_next(&seed);
		r.valid = i % 4 ? 1 : r.valid;
		memcpy(last, &r, 28);
		publish(i % 5 == 0   ? (void *)0x10
			: i % 5 == 1 ? (void *)-2
			: i % 5 == 2 ? (void *)last
				     : (void *)&r);
		burn(per_ms);
		publish_process(2, false);
		if (i % 4)
			continue;
		header->payload_bytes = i % 3 ? random_next(&seed) : 300;
		header->payload = i % 3 == 1 ? (const uint8_t *)16 : (const uint8_t *)&r;
		header->published_ns = i % 7;
		memset(header->signature, i % 11 ? 'O' : 'x', i % 11 == 0);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	bool library = strchr(how, '/');
	pthread_t thread;
	void *lib;

	per_ms = burn_per_ms();
	if (library) {
		lib = dlopen(how, RTLD_NOW);
		slot = lib ? (void **(*)(void))dlsym(lib, "otel_slot") : NULL;
		if (!slot)
			die("dlopen");
	}
	publish_process(2, library);
	printf("ready %d\n", getpid());
	fflush(stdout);
	if (!strcmp(how, "hostile"))
		hostile();
	if (!strcmp(how, "spans"))
		every_span();
	warm_up();
	if (pthread_create(&thread, NULL, worker, NULL))
		die("pthread_create");
	work(library);
}
