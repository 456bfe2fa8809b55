/*
 * A program that allocates in signals' handlers, wherever these come, and counts each call.
 *
 *   alloc_signals      links lib_safe.so, whose malloc may be called there
 *
 * run MODE MS → site NAME CALLS BYTES LIVE LIVE_BYTES (each); total …; signals N; errors N; end
 *
 * A thread allocates at changing depths, and a timer sends it a signal a few µs after the last one's handler. MODE is where the
 * handler runs and what it does:
 *
 *   same     on the stack of what it has interrupted
 *   below, above, within   on an alternate stack: below the thread's stack, above it, in its outermost frame
 *   fork     now and then there is a child, too, which ends at once
 *   swap     it changes to a coroutine that allocates, and later back: on the alternate stack `above`
 *   task     the coroutine's own stack is what handlers run on and interrupt
 *   jump     now and then it leaves by siglongjmp. What it has interrupted is not counted for sure: then
 *            `begun` says how many calls were begun.
 *
 * Each block's contents are checked when it is freed, and errno after each call: `errors`.
 */
#include "target.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <ucontext.h>

#define STACK (256u << 10)
#define HELD  64

/* clang-format off */
#define SITES(X) X(in_main) X(in_handler) X(in_task)
/* clang-format on */

enum site_id {
#define X(name) SITE_##name,
	SITES(X)
#undef X
		N_SITES
};

static struct site {
	const char *name;
	uint64_t calls, bytes, live, live_bytes;
} sites[N_SITES] = {
#define X(site_name) [SITE_##site_name] = { .name = #site_name },
	SITES(X)
#undef X
};

struct held {
	uint8_t *p;
	size_t size;
};

static uint8_t *region; /* [alternate stack][thread's stack][alternate stack][coroutine's] */
static char mode[16];
static uint64_t until, begun, signals, errors;
static struct held held_main[HELD], held_handler[HELD], held_task[HELD];
static uint64_t seeds[N_SITES] = { 1, 2, 3 };
static sigjmp_buf outermost;
static ucontext_t main_context, task_context;
static volatile bool may_jump;
static timer_t timer;

static uint32_t next_random(enum site_id site)
{
	seeds[site] = seeds[site] * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seeds[site] >> 33);
}

/* One instruction each on x86-64: a handler may come between any two. */
static void count(uint64_t *at, uint64_t n)
{
	__atomic_add_fetch(at, n, __ATOMIC_RELAXED);
}

static NOINLINE void release(struct held *h, enum site_id site)
{
	uint8_t *p = h->p;

	if (!p)
		return;
	h->p = NULL; /* first: who is left by a jump frees nothing twice */
	for (size_t i = 0; i < h->size; i++)
		if (p[i] != (uint8_t)h->size) {
			count(&errors, 1);
			break;
		}
	errno = 33;
	count(&sites[site].live, (uint64_t)-1);
	count(&sites[site].live_bytes, -(uint64_t)h->size);
	free(p);
	count(&errors, errno != 33);
}

static void fill(struct held *h, uint8_t *p, size_t size, enum site_id site)
{
	count(&errors, errno != 44 || !p);
	memset(p, (int)(uint8_t)size, size);
	count(&sites[site].calls, 1);
	count(&sites[site].bytes, size);
	count(&sites[site].live, 1);
	count(&sites[site].live_bytes, size);
	h->size = size;
	h->p = p;
}

#define ALLOCATES(site)                                                                            \
	static NOINLINE void site(struct held *h)                                                  \
	{                                                                                          \
		size_t size = 16 + next_random(SITE_##site) % 200;                                 \
                                                                                                   \
		release(h, SITE_##site);                                                           \
		errno = 44;                                                                        \
		begun++;                                                                           \
		fill(h, malloc(size), size, SITE_##site);                                          \
	}

ALLOCATES(in_main)
ALLOCATES(in_handler)
ALLOCATES(in_task)

static NOINLINE void deeper(int depth)
{
	if (depth > 0)
		deeper(depth - 1);
	else
		in_main(&held_main[next_random(SITE_in_main) % HELD]);
	__asm__ volatile("");
}

static NOINLINE void deeper_in_handler(int depth)
{
	if (depth > 0)
		deeper_in_handler(depth - 1);
	else
		in_handler(&held_handler[next_random(SITE_in_handler) % HELD]);
	__asm__ volatile("");
}

static void task(void)
{
	for (;;) {
		in_task(&held_task[next_random(SITE_in_task) % HELD]);
		if (strcmp(mode, "swap") == 0) {
			swapcontext(&task_context, &main_context);
		} else if (mono_ns() >= until) {
			swapcontext(&task_context, &main_context);
		}
	}
}

/* Behind a handler, not while it runs: on a busy machine nothing but handlers would run. */
static void next_signal(void)
{
	struct itimerspec once = { .it_value.tv_nsec =
					   1000 + next_random(SITE_in_handler) % 16384 };

	timer_settime(timer, 0, &once, NULL);
}

static void on_signal(int number)
{
	int before = errno;

	(void)number;
	signals++;
	deeper_in_handler((int)(next_random(SITE_in_handler) % 6));
	if (strcmp(mode, "swap") == 0 && signals % 3 == 0)
		swapcontext(&main_context, &task_context);
	if (strcmp(mode, "fork") == 0 && signals % 512 == 0) {
		pid_t child = fork();

		if (child == 0) {
			deeper_in_handler(3);
			_exit(0);
		}
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
	}
	next_signal();
	errno = before;
	if (may_jump && signals % 16 == 0)
		siglongjmp(outermost, 1);
}

static bool on_alternate(void)
{
	return strcmp(mode, "same") && strcmp(mode, "jump") && strcmp(mode, "fork") &&
	       strcmp(mode, "task");
}

static void *work(void *ctx)
{
	uint8_t within[STACK / 4] __attribute__((aligned(16)));
	stack_t alternate = { .ss_sp = region, .ss_size = STACK };
	struct sigaction act = { .sa_handler = on_signal };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };

	(void)ctx;
	if (strcmp(mode, "above") == 0 || strcmp(mode, "swap") == 0)
		alternate.ss_sp = region + 2 * STACK;
	if (strcmp(mode, "within") == 0) {
		alternate.ss_sp = within;
		alternate.ss_size = sizeof(within);
	}
	if (on_alternate()) {
		sigaltstack(&alternate, NULL);
		act.sa_flags = SA_ONSTACK;
	}
	getcontext(&task_context);
	task_context.uc_stack.ss_sp = region + 3 * STACK;
	task_context.uc_stack.ss_size = STACK;
	sigaddset(&task_context.uc_sigmask, SIGUSR1);
	if (strcmp(mode, "task") == 0)
		sigdelset(&task_context.uc_sigmask, SIGUSR1);
	makecontext(&task_context, task, 0);
	sigaction(SIGUSR1, &act, NULL);
	event._sigev_un._tid = self_tid();
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		die("timer_create");
	next_signal();
	if (strcmp(mode, "task") == 0) {
		swapcontext(&main_context, &task_context);
	}
	while (mono_ns() < until) {
		may_jump = false;
		sigsetjmp(outermost, 1);
		may_jump = strcmp(mode, "jump") == 0;
		deeper((int)(next_random(SITE_in_main) % 12));
	}
	may_jump = false;
	timer_delete(timer);
	act.sa_handler = SIG_IGN;
	sigaction(SIGUSR1, &act, NULL);
	alternate.ss_flags = SS_DISABLE;
	sigaltstack(&alternate, NULL);
	return NULL;
}

static void run(unsigned ms)
{
	pthread_attr_t attr;
	pthread_t thread;
	uint64_t calls = 0, bytes = 0, live = 0, live_bytes = 0;

	until = mono_ns() + ms * NSEC_PER_MSEC;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, region + STACK, STACK);
	/* Nothing of pthread_create() is in the truth: its calls are made in an arena of the C library. */
	if (pthread_create(&thread, &attr, work, NULL))
		die("pthread_create");
	pthread_join(thread, NULL);
	for (int i = 0; i < N_SITES; i++) {
		const struct site *s = &sites[i];

		say("site %s %llu %llu %llu %llu", s->name, (unsigned long long)s->calls,
		    (unsigned long long)s->bytes, (unsigned long long)s->live,
		    (unsigned long long)s->live_bytes);
		calls += s->calls;
		bytes += s->bytes;
		live += s->live;
		live_bytes += s->live_bytes;
	}
	say("total %llu %llu %llu %llu", (unsigned long long)calls, (unsigned long long)bytes,
	    (unsigned long long)live, (unsigned long long)live_bytes);
	say("begun %llu", (unsigned long long)begun);
	say("signals %llu", (unsigned long long)signals);
	say("errors %llu", (unsigned long long)errors);
	say("end");
}

int main(void)
{
	unsigned ms;

	region = mmap(NULL, 4 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		die("mmap");
	say_ready();
	for (;;) {
		const char *c = next_command();

		if (sscanf(c, "run %15s %u", mode, &ms) == 2)
			run(ms);
	}
}
