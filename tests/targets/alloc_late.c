/*
 * Loads an allocator when it has long been running, and uses it half a second later.
 *
 *   alloc_late
 *
 * load → end
 * go   → site late_alloc CALLS BYTES LIVE_CALLS LIVE_BYTES; total …; end
 */
#include "target.h"

#include <dlfcn.h>

enum { CALLS = 200, BYTES = 100 };

static void *(*mallocx)(size_t size, int flags);
static void (*dallocx)(void *p, int flags);

static void load(const char *program)
{
	char path[512];
	void *lib;

	snprintf(path, sizeof(path), "%.*s/lib_late.so", (int)(strrchr(program, '/') - program),
		 program);
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		die(dlerror());
	*(void **)&mallocx = dlsym(lib, "je_mallocx");
	*(void **)&dallocx = dlsym(lib, "je_dallocx");
	if (!mallocx || !dallocx)
		die("lib_late.so");
}

static NOINLINE void *late_alloc(void)
{
	return mallocx(BYTES, 0);
}

static void go(void)
{
	for (int i = 0; i < CALLS; i++) {
		void *p = late_alloc();

		if (i % 4)
			dallocx(p, 0);
	}
	say("site late_alloc %d %d %d %d", CALLS, CALLS * BYTES, CALLS / 4, CALLS / 4 * BYTES);
	say("total %d %d %d %d", CALLS, CALLS * BYTES, CALLS / 4, CALLS / 4 * BYTES);
	say("frees %d", CALLS - CALLS / 4);
}

int main(int argc, char **argv)
{
	(void)argc;
	say_ready();
	for (;;) {
		const char *command = next_command();

		if (!strcmp(command, "load"))
			load(argv[0]);
		else if (!strcmp(command, "go"))
			go();
		say("end");
	}
}
