/*
 * Generated code: two loops in memory without a file, and no file that names them.
 *
 *   where           → loop ADDR SIZE, in hex, twice
 *   map FILE        maps its first page, executable, as one maps a jitdump that is written
 *   burn            works in the first for 0.9 s of CPU time, in the second for 0.3 s
 */
#include "target.h"

#if defined(__x86_64__)
/* 1: dec %rdi; jne 1b; ret */
static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const unsigned char code[] = { 0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
				      0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#else
#error "no code for this machine"
#endif

enum { APART = 256 };

typedef void (*loop_fn)(uint64_t n);

static NOINLINE void call_for(loop_fn loop, uint64_t ns)
{
	for (uint64_t end = cpu_ns() + ns; cpu_ns() < end;)
		loop(200000);
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		die(path);
	close(fd);
}

int main(void)
{
	unsigned char *memory =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *command;

	if (memory == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < 2; i++)
		memcpy(memory + i * APART, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) < 0)
		die("mprotect");
	say_ready();
	while ((command = next_command())) {
		if (!strcmp(command, "where")) {
			for (int i = 0; i < 2; i++)
				say("loop x%lx x%zx", (unsigned long)(memory + i * APART),
				    sizeof(code));
		} else if (!strncmp(command, "map ", 4)) {
			map_file(command + 4);
		} else if (!strcmp(command, "burn")) {
			call_for((loop_fn)(uintptr_t)memory, 900 * NSEC_PER_MSEC);
			call_for((loop_fn)(uintptr_t)(memory + APART), 300 * NSEC_PER_MSEC);
		}
		say("end");
	}
	return 0;
}
