/*
 * A program that lives by catching bad_alloc from every form of new. Unwinding an exception walks
 * through return addresses: a return probe on a throwing function ends such a program.
 *
 *   bad_alloc
 *
 * go → `running`, then it throws and catches until `stop`
 * stop → tried N; caught N; nulls N; ok N; end    (caught + nulls = tried)
 */
#include "target.h"

#include <new>
#include <pthread.h>

static volatile size_t huge = (size_t)1 << 62;
static const std::align_val_t wide{ 64 };
static struct gate start, stopped;
static int stop;
static uint64_t tried, caught, nulls, ok;

template <typename F> static NOINLINE void attempt(F make)
{
	tried++;
	try {
		if (!make())
			nulls++;
	} catch (const std::bad_alloc &) {
		caught++;
	}
}

static void round_of_all()
{
	attempt([] { return ::operator new(huge); });
	attempt([] { return ::operator new[](huge); });
	attempt([] { return ::operator new(huge, std::nothrow); });
	attempt([] { return ::operator new[](huge, std::nothrow); });
	attempt([] { return ::operator new(huge, wide); });
	attempt([] { return ::operator new[](huge, wide); });
	attempt([] { return ::operator new(huge, wide, std::nothrow); });
	attempt([] { return ::operator new[](huge, wide, std::nothrow); });
	/* Ones that succeed, so that the probes are seen to be there. */
	::operator delete(::operator new(24));
	::operator delete[](::operator new[](40));
	ok += 2;
}

static void *work(void *arg)
{
	gate_wait(&start);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		round_of_all();
		sleep_ns(NSEC_PER_MSEC / 10);
	}
	gate_open(&stopped);
	wait_for_ever();
	return arg;
}

int main()
{
	pthread_t t;

	if (pthread_create(&t, nullptr, work, nullptr))
		die("pthread_create");
	say_ready();
	next_command();
	gate_open(&start);
	say("running");
	say("end");
	next_command();
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	gate_wait(&stopped);
	say("tried %llu", (unsigned long long)tried);
	say("caught %llu", (unsigned long long)caught);
	say("nulls %llu", (unsigned long long)nulls);
	say("ok %llu", (unsigned long long)ok);
	say("end");
	for (;;)
		next_command();
}
