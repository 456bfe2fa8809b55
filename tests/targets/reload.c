/*
 * Loads one library, works in it, unloads it, and loads another of the same shape, which lands at
 * the same address: the same pc is two functions in one run.
 *
 *   reload MS
 *
 * go → address A B (where each library's function was); first CPU_NS ON_NS; second CPU_NS ON_NS; end
 */
#include "target.h"

#include <dlfcn.h>
#include <libgen.h>

static uint64_t per_ms, want_ns;

static struct work_clock work_in(const char *dir, const char *name, void **ret_address)
{
	char path[4200];
	void (*work)(uint64_t);
	struct work_clock clock;
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		die(dlerror());
	*(void **)&work = dlsym(lib, "library_work");
	*ret_address = *(void **)&work;
	clock = work_begin();
	while (cpu_ns() - clock.cpu_ns < want_ns)
		work(per_ms);
	work_end(&clock);
	dlclose(lib);
	return clock;
}

int main(int argc, char **argv)
{
	static char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct work_clock first, second;
	void *a, *b;
	char *dir;

	if (argc != 2 || n <= 0)
		die("usage: reload MS");
	dir = dirname(self);
	want_ns = (uint64_t)atoi(argv[1]) * NSEC_PER_MSEC;
	per_ms = burn_per_ms();
	say_ready();
	next_command();
	first = work_in(dir, "lib_first.so", &a);
	second = work_in(dir, "lib_second.so", &b);
	say("address %llu %llu", (unsigned long long)(uintptr_t)a,
	    (unsigned long long)(uintptr_t)b);
	say("first %llu %llu", (unsigned long long)first.cpu_ns, (unsigned long long)first.on_ns);
	say("second %llu %llu", (unsigned long long)second.cpu_ns,
	    (unsigned long long)second.on_ns);
	say("end");
	for (;;)
		next_command();
}
