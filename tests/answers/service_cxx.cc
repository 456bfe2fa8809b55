// The same service in C++: its own library's threads, locks, containers.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#define NOINLINE __attribute__((noinline))

static volatile uint64_t sink;

static void sleep_us(int us)
{
	std::this_thread::sleep_for(std::chrono::microseconds(us));
}

namespace shop {

NOINLINE uint64_t parse(uint64_t n)
{
	uint64_t h = n;

	for (int i = 0; i < 2000; i++)
		h = h * 31 + static_cast<uint64_t>(i);
	return h;
}

struct Index {
	std::vector<uint64_t> keys = std::vector<uint64_t>(512, 7);

	NOINLINE uint64_t rank_offers(uint64_t n)
	{
		uint64_t h = n;

		for (int i = 0; i < 40; i++)
			for (auto &k : keys)
				h = (h ^ k) * 1099511628211u;
		return h;
	}
};

struct Sessions {
	std::list<std::vector<char>> all;

	NOINLINE void remember(uint64_t n)
	{
		all.emplace_back(16384, static_cast<char>(n));
	}
};

struct Totals {
	std::mutex m;
	uint64_t sum = 0;

	NOINLINE void add_order(uint64_t n)
	{
		std::lock_guard<std::mutex> hold(m);

		sum += n;
		sleep_us(3000);
	}
};

struct Journal {
	int fd;

	NOINLINE void commit(uint64_t n)
	{
		std::string line(4096, static_cast<char>('a' + n % 26));

		if (pwrite(fd, line.data(), line.size(), static_cast<off_t>(n % 64 * 4096)) < 0 || fsync(fd) < 0)
			exit(1);
	}
};

struct Backend {
	int fd;

	NOINLINE void fetch_price(uint64_t n)
	{
		char answer[64];

		if (write(fd, &n, sizeof(n)) < 0 || read(fd, answer, sizeof(answer)) <= 0)
			exit(1);
	}
};

struct Cache {
	std::unordered_map<uint64_t, std::string> all;

	NOINLINE void put(uint64_t n)
	{
		all[n % 4096] = std::string(16384 + n % 2, 'x');
	}
};

struct Pool {
	std::mutex m;
	std::condition_variable filled;
	std::queue<int> jobs;

	void run()
	{
		for (;;) {
			std::unique_lock<std::mutex> hold(m);

			filled.wait(hold, [this] { return !jobs.empty(); });
			jobs.pop();
		}
	}
};

} // namespace shop

int main(int argc, char **argv)
{
	std::string mode = argc > 1 ? argv[1] : "", arg = argc > 2 ? argv[2] : "";
	static shop::Pool pool;
	static shop::Totals totals;
	static shop::Cache cache;
	std::vector<std::thread> threads;

	auto write_journal = [arg] {
		shop::Journal j{ open(arg.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) };
		for (uint64_t n = 0;; n++) {
			sink = sink + shop::parse(n);
			j.commit(n);
		}
	};

	for (int i = 0; i < 4; i++)
		threads.emplace_back([] { pool.run(); });
	if (mode == "mix")
		threads.emplace_back(write_journal);
	if (mode == "hot" || mode == "mix") {
		threads.emplace_back([] {
			shop::Index index;
			for (uint64_t n = 0;; n++)
				sink = sink + index.rank_offers(shop::parse(n));
		});
	} else if (mode == "leak") {
		threads.emplace_back([] {
			shop::Sessions sessions;
			for (uint64_t n = 0;; n++) {
				sink = sink + shop::parse(n);
				sessions.remember(n);
				sleep_us(2000);
			}
		});
	} else if (mode == "lock") {
		for (int i = 0; i < 6; i++)
			threads.emplace_back([] {
				for (uint64_t n = 0;; n++)
					totals.add_order(shop::parse(n));
			});
	} else if (mode == "disk") {
		threads.emplace_back(write_journal);
	} else if (mode == "peer") {
		threads.emplace_back([arg] {
			sockaddr_in a = {};
			a.sin_family = AF_INET;
			a.sin_port = htons(static_cast<uint16_t>(atoi(arg.c_str())));
			a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
			shop::Backend b{ socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
			if (connect(b.fd, reinterpret_cast<sockaddr *>(&a), sizeof(a)) < 0)
				exit(1);
			for (uint64_t n = 0;; n++)
				b.fetch_price(shop::parse(n));
		});
	} else if (mode == "cache") {
		for (uint64_t n = 0; n < 4096; n++)
			cache.put(n);
		threads.emplace_back([] {
			for (uint64_t n = 0;; n++) {
				cache.put(shop::parse(n));
				sleep_us(500);
			}
		});
	} else if (mode != "idle") {
		return 2;
	}
	puts("ready");
	fflush(stdout);
	threads[0].join();
}
