/*
 * Locks and conditions of the C++ library: two workers in lookup() want `registry`, which a thread holds for 10 ms at a time in
 * rebuild(); a thread in consume() waits for what another gives it in produce(). Prints "ready PID TID" (of who holds the lock), and
 * goes on until it is ended.
 */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static std::mutex registry, queue_lock;
static std::condition_variable arrived;
static std::deque<int> queue;
static long entries;

static void pause_ms(int ms)
{
	std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

static NOINLINE void lookup()
{
	std::lock_guard<std::mutex> held(registry);
	entries++;
}

static NOINLINE void rebuild()
{
	static const struct timespec time = { 0, 10000000 };
	std::lock_guard<std::mutex> held(registry);

	nanosleep(&time, nullptr); /* in the C library: the program's own function is this one */
	entries++;
}

static NOINLINE void produce()
{
	std::lock_guard<std::mutex> held(queue_lock);
	queue.push_back(1);
	arrived.notify_one();
}

static NOINLINE void consume()
{
	std::unique_lock<std::mutex> held(queue_lock);
	arrived.wait(held, [] { return !queue.empty(); });
	queue.pop_front();
}

template <class F> static void forever(F work, int every_ms)
{
	for (;;) {
		work();
		if (every_ms)
			pause_ms(every_ms);
	}
}

int main()
{
	std::thread workers[2];

	for (auto &w : workers)
		w = std::thread([] { forever(lookup, 1); });
	std::thread consumer([] { forever(consume, 0); });
	std::thread producer([] { forever(produce, 3); });
	std::thread keeper([] {
		printf("ready %d %ld\n", getpid(), syscall(SYS_gettid));
		fflush(stdout);
		forever(rebuild, 3);
	});
	keeper.join();
}
