/*
 * A program without frame pointers whose mappings change: its stacks can be walked by unwind tables
 * only, and only by those of what is mapped now.
 *
 *   bare
 *
 * load PATH MS  → dlopen; works in it (library_work); address A; cpu NS; end
 * swap PATH MS  → dlclose of what was loaded last, then as load, but it works 100 ms later
 * swaps A B N MS
 *               → N times: swap to A as above, then to B, which works at once; end
 * map PATH      → dlopen; end
 * drop          → dlclose of what was loaded last; end
 * fork MS       → a child works (work_in_child) and ends; child PID NS; end
 * exec MS       → becomes itself anew and works (work_after_exec); cpu NS; end; then obeys again
 * short N MS    → N programs one after the other that each work for MS (work_in_short); end
 */
#include "target.h"

#include <dlfcn.h>
#include <sys/wait.h>

static uint64_t per_ms;
static void *loaded;

/* Frames of different sizes, whose rbp is anything. */
static NOINLINE uint64_t inner(uint64_t n, uint64_t x)
{
	for (uint64_t i = 0; i < n; i++) {
		x = x * 31 + i;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static NOINLINE uint64_t middle(uint64_t n, uint64_t x)
{
	volatile uint64_t room[37];

	room[n % 37] = inner(n, x);
	return room[n % 37] + 1;
}

#define WORK(name)                                                                                 \
	static NOINLINE void name(uint64_t ms)                                                     \
	{                                                                                          \
		uint64_t begin = cpu_ns(), x = ms;                                                 \
                                                                                                   \
		while (cpu_ns() - begin < ms * NSEC_PER_MSEC)                                      \
			x = middle(per_ms, x);                                                     \
		__asm__ volatile("" : : "r"(x));                                                   \
	}

WORK(work_in_child)
WORK(work_after_exec)
WORK(work_in_short)

static NOINLINE void *load(const char *path, uint64_t ms, useconds_t pause_us)
{
	uint64_t begin, (*work)(uint64_t);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		die(dlerror());
	*(void **)&work = dlsym(lib, "library_work");
	say("address %llu", (unsigned long long)(uintptr_t)work);
	usleep(pause_us);
	begin = cpu_ns();
	while (cpu_ns() - begin < ms * NSEC_PER_MSEC)
		work(per_ms);
	say("cpu %llu", (unsigned long long)(cpu_ns() - begin));
	return lib;
}

static void fork_child(uint64_t ms)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		work_in_child(ms);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	say("child %d", (int)pid);
}

static void run_short(const char *self, int n, const char *ms)
{
	for (int i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			execl(self, "bare-short", "short", ms, (char *)NULL);
			_exit(70);
		}
		waitpid(pid, &status, 0);
	}
}

static void swap(const char *path, uint64_t ms, useconds_t pause_us)
{
	dlclose(loaded);
	loaded = load(path, ms, pause_us);
}

static void obey(const char *line, const char *self)
{
	char path[4096], other[4096], ms[16];
	int n;

	if (sscanf(line, "load %4095s %15s", path, ms) == 2) {
		loaded = load(path, (uint64_t)atoi(ms), 0);
	} else if (sscanf(line, "swaps %4095s %4095s %d %15s", path, other, &n, ms) == 4) {
		while (n-- > 0) {
			swap(path, (uint64_t)atoi(ms), 100000);
			swap(other, (uint64_t)atoi(ms), 0);
		}
	} else if (sscanf(line, "swap %4095s %15s", path, ms) == 2) {
		swap(path, (uint64_t)atoi(ms), 100000);
	} else if (sscanf(line, "map %4095s", path) == 1) {
		if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
			die(dlerror());
	} else if (!strncmp(line, "drop", 4)) {
		dlclose(loaded);
	} else if (sscanf(line, "fork %15s", ms) == 1) {
		fork_child((uint64_t)atoi(ms));
	} else if (sscanf(line, "short %d %15s", &n, ms) == 2) {
		run_short(self, n, ms);
	} else if (sscanf(line, "exec %15s", ms) == 1) {
		execl(self, "bare", "after", ms, (char *)NULL);
		die("exec");
	} else {
		die(line);
	}
	say("end");
}

int main(int argc, char **argv)
{
	static char self[4096];
	uint64_t begin = cpu_ns();

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		die("/proc/self/exe");
	per_ms = 1 << 18;
	if (argc == 3 && !strcmp(argv[1], "short")) {
		work_in_short((uint64_t)atoi(argv[2]));
		return 0;
	}
	if (argc == 3) {
		work_after_exec((uint64_t)atoi(argv[2]));
		say("cpu %llu", (unsigned long long)(cpu_ns() - begin));
		say("end");
	} else {
		say_ready();
	}
	for (;;)
		obey(next_command(), self);
}
