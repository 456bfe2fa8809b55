/*
 * A program whose calls do not return the way they came: it throws through frames that own memory,
 * catches bad_alloc, leaves functions by longjmp (also out of a signal handler, and out of operator
 * new by way of its new_handler), and runs on stacks of its own (swapcontext, C++20 coroutines).
 *
 *   alloc_jumps
 *
 * go   → running; end   a thread for each kind works, with a short sleep between rounds
 * stop → site jump_alloc CALLS BYTES LIVE_CALLS LIVE_BYTES; frames N (coroutine frames);
 *        throws N; caught N; jumps N; switches N; rounds N; end
 */
#include "target.h"

#include <coroutine>
#include <csetjmp>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <ucontext.h>

static volatile size_t huge_size = (size_t)1 << 62;
static struct gate start;
static int stop, n_stopped;
static uint64_t calls, bytes, live_calls, live_bytes;
static uint64_t frames, throws, caught, jumps, switches, rounds;

static void count(uint64_t *to, uint64_t n)
{
	__atomic_add_fetch(to, n, __ATOMIC_RELAXED);
}

extern "C" NOINLINE void *jump_alloc(size_t size)
{
	void *p = malloc(size);

	if (!p)
		die("malloc");
	count(&calls, 1);
	count(&bytes, size);
	count(&live_calls, 1);
	count(&live_bytes, size);
	return p;
}

static NOINLINE void jump_free(void *p, size_t size)
{
	free(p);
	count(&live_calls, (uint64_t)-1);
	count(&live_bytes, (uint64_t)0 - size);
}

struct owned {
	size_t size;
	void *p;
	explicit owned(size_t n) : size(n), p(jump_alloc(n)) {}
	~owned() { jump_free(p, size); }
	owned(const owned &) = delete;
	owned &operator=(const owned &) = delete;
};

/* --- exceptions --- */

static NOINLINE void throw_at(int depth)
{
	owned mine((size_t)40 + (size_t)depth);

	if (depth > 0) {
		throw_at(depth - 1);
		return;
	}
	count(&throws, 1);
	throw std::bad_exception();
}

static NOINLINE void throwing()
{
	try {
		throw_at(7);
	} catch (const std::bad_exception &) {
		count(&caught, 1);
	}
	try {
		owned mine(33);

		count(&throws, 1);
		::operator delete(::operator new(huge_size));
	} catch (const std::bad_alloc &) {
		count(&caught, 1);
	}
}

/* --- longjmp --- */

static __thread sigjmp_buf back;
static __thread void *left;

static NOINLINE void jump_at(int depth)
{
	if (depth > 0) {
		jump_at(depth - 1);
		return;
	}
	left = jump_alloc(77);
	siglongjmp(back, 1);
}

static void on_signal(int)
{
	left = jump_alloc(78);
	siglongjmp(back, 2);
}

static __thread bool jump_out_of_new;

static void on_new_failed()
{
	if (!jump_out_of_new)
		throw std::bad_alloc();
	jump_out_of_new = false;
	left = jump_alloc(79);
	siglongjmp(back, 3);
}

static NOINLINE void jumping()
{
	switch (sigsetjmp(back, 1)) {
	case 0:
		jump_at(5);
		die("longjmp");
	case 1:
		count(&jumps, 1);
		jump_free(left, 77);
		pthread_kill(pthread_self(), SIGUSR1);
		die("the signal");
	case 2:
		count(&jumps, 1);
		jump_free(left, 78);
		jump_out_of_new = true;
		::operator delete(::operator new(huge_size));
		die("operator new");
	case 3:
		count(&jumps, 1);
		jump_free(left, 79);
	}
}

/* --- stacks of its own --- */

#define N_CONTEXTS 4

static ucontext_t main_context, contexts[N_CONTEXTS];

static NOINLINE void context_main(int ix)
{
	for (;;) {
		void *p = jump_alloc((size_t)200 + (size_t)ix);

		count(&switches, 1);
		swapcontext(&contexts[ix], &main_context); /* the block lives meanwhile */
		jump_free(p, (size_t)200 + (size_t)ix);
	}
}

static void make_contexts()
{
	static char stacks[N_CONTEXTS][64 * 1024];

	for (int i = 0; i < N_CONTEXTS; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
		contexts[i].uc_link = nullptr;
		makecontext(&contexts[i], (void (*)())context_main, 1, i);
	}
}

static NOINLINE void switching()
{
	static bool made;

	if (!made)
		make_contexts();
	made = true;
	for (int i = 0; i < N_CONTEXTS; i++)
		swapcontext(&main_context, &contexts[i]);
}

struct task {
	struct promise_type {
		static NOINLINE void *operator new(size_t size)
		{
			count(&frames, 1);
			return jump_alloc(size);
		}
		static NOINLINE void operator delete(void *p, size_t size) { jump_free(p, size); }
		task get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend() noexcept { return {}; }
		std::suspend_always final_suspend() noexcept { return {}; }
		void return_void() {}
		void unhandled_exception() { count(&caught, 1); }
	};
	std::coroutine_handle<promise_type> handle;
};

static task steps(int n)
{
	for (int i = 0; i < n; i++) {
		owned mine((size_t)300 + (size_t)i);

		co_await std::suspend_always{};
	}
	count(&throws, 1);
	throw std::bad_exception();
}

static NOINLINE void resuming()
{
	task one = steps(5), two = steps(9);

	while (!one.handle.done() || !two.handle.done()) {
		if (!one.handle.done())
			one.handle.resume();
		if (!two.handle.done())
			two.handle.resume();
	}
	one.handle.destroy();
	two.handle.destroy();
}

/* --- */

static void *work(void *arg)
{
	void (*round)() = (void (*)())arg;

	gate_wait(&start);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		for (int i = 0; i < 20; i++)
			round();
		count(&rounds, 20);
		sleep_ns(NSEC_PER_MSEC / 5);
	}
	__atomic_add_fetch(&n_stopped, 1, __ATOMIC_ACQ_REL);
	wait_for_ever();
	return arg;
}

int main()
{
	static void (*const kinds[])() = { throwing, jumping, switching, resuming };
	pthread_t t;

	signal(SIGUSR1, on_signal);
	std::set_new_handler(on_new_failed);
	for (auto kind : kinds)
		if (pthread_create(&t, nullptr, work, (void *)kind))
			die("pthread_create");
	say_ready();
	next_command();
	gate_open(&start);
	say("running");
	say("end");
	next_command();
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&n_stopped, __ATOMIC_ACQUIRE) < 4)
		sleep_ns(NSEC_PER_MSEC);
	say("site jump_alloc %llu %llu %llu %llu", (unsigned long long)calls, (unsigned long long)bytes,
	    (unsigned long long)live_calls, (unsigned long long)live_bytes);
	say("frames %llu", (unsigned long long)frames);
	say("throws %llu", (unsigned long long)throws);
	say("caught %llu", (unsigned long long)caught);
	say("jumps %llu", (unsigned long long)jumps);
	say("switches %llu", (unsigned long long)switches);
	say("rounds %llu", (unsigned long long)rounds);
	say("end");
	for (;;)
		next_command();
}
