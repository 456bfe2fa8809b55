/*
 * A program that means harm: code in files that it is given, mappings, threads, names and programs without number.
 *
 *   code FILE OFF   the page of FILE at OFF is run from now on, one function of them all
 *   memfd HEX       the same from a memfd of that name
 *   where           → addr ADDR (hex): where the last of them is mapped
 *   burn MS         works in each of them in turn, or here where there is none, for so much CPU time
 *   maps N          N mappings more, every second one executable
 *   threads N       N threads that sleep → threads, how many there are
 *   name HEX        its name
 *   worker HEX      a thread of that name that works while `burn` does
 *   storm MS        forks children that execute this program and end, as fast as it can → programs N
 *   seize           a child of its own traces it (PTRACE_SEIZE)
 *   release         … no more
 *   stack FILE      a thread that is blocked, with its stack in a mapping of FILE of which the next pages are not there
 *   environ         its arguments and its environment are 64 GiB of nothing, by what it says of itself
 *   shrink FILE     FILE is cut to nothing and filled again, without end, by a child
 */
#include "target.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { PAGE = 4096, CODES_MAX = 512, STACK_BYTES = 16384 };

#if defined(__x86_64__)
/* 1: dec %rdi; jne 1b; ret */
static const unsigned char loop[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const unsigned char loop[] = { 0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
				      0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6 };
#else
#error "no code for this machine"
#endif

typedef void (*loop_fn)(uint64_t n);

static loop_fn codes[CODES_MAX];
static uint32_t n_codes;
static int working;

static NOINLINE void call_code(loop_fn fn, uint64_t n)
{
	fn(n);
	__asm__ volatile("");
}

static NOINLINE void work_here(uint64_t n)
{
	burn(n);
	__asm__ volatile("");
}

static NOINLINE void burn_for(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	__atomic_store_n(&working, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; cpu_ns() < end; i++) {
		if (n_codes)
			call_code(codes[i % n_codes], 300000);
		else
			work_here(300000);
	}
	__atomic_store_n(&working, 0, __ATOMIC_RELEASE);
}

static void map_code(int fd, long off)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, off);

	if (at == MAP_FAILED)
		die("mmap of code");
	if (n_codes == CODES_MAX)
		die("too much code");
	codes[n_codes++] = (loop_fn)(uintptr_t)at;
	close(fd);
}

static const char *unhex(const char *hex)
{
	static char text[256];
	size_t n = 0;
	unsigned byte;

	for (; n < sizeof(text) - 1 && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		text[n] = (char)byte;
	text[n] = '\0';
	return text;
}

static void code_of_file(const char *args)
{
	const char *space = strrchr(args, ' ');
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%.*s", (int)(space - args), args);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	map_code(fd, strtol(space, NULL, 10));
}

static void code_of_memfd(const char *hex)
{
	int fd = memfd_create(unhex(hex), MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE) < 0 ||
	    pwrite(fd, loop, sizeof(loop), 0) != (ssize_t)sizeof(loop))
		die("memfd");
	map_code(fd, 0);
}

/* Neighbours that differ do not become one. */
static void map_many(long n)
{
	char *room = mmap(NULL, (size_t)n * PAGE, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		die("mmap");
	for (long i = 0; i < n; i += 2)
		if (mprotect(room + i * PAGE, PAGE, PROT_READ | PROT_EXEC) < 0)
			die("mprotect");
}

static void *sleep_on(void *arg)
{
	(void)arg;
	wait_for_ever();
	return NULL;
}

/* All stacks are of one mapping. */
static long start_threads(long n)
{
	char *stacks = mmap(NULL, (size_t)n * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;
	pthread_t t;
	long i = 0;

	if (stacks == MAP_FAILED)
		die("mmap");
	madvise(stacks, (size_t)n * STACK_BYTES, MADV_NOHUGEPAGE);
	pthread_attr_init(&attr);
	for (; i < n; i++) {
		pthread_attr_setstack(&attr, stacks + i * STACK_BYTES, STACK_BYTES);
		if (pthread_create(&t, &attr, sleep_on, NULL) != 0)
			break;
	}
	return i;
}

static void *work_on(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;) {
		if (__atomic_load_n(&working, __ATOMIC_ACQUIRE))
			work_here(300000);
		else
			sleep_ns(NSEC_PER_MSEC);
	}
	return NULL;
}

static uint64_t storm(uint64_t ms)
{
	static char *const argv[] = { (char *)"hostile", (char *)"end", NULL };
	uint64_t end = mono_ns() + ms * NSEC_PER_MSEC, n = 0;
	pid_t pid;

	for (; mono_ns() < end; n++) {
		if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, NULL) != 0)
			die("posix_spawn");
		waitpid(pid, NULL, 0);
	}
	return n;
}

static pid_t tracer;

static void seize(void)
{
	pid_t target = getpid();
	int ready[2];
	char c;

	if (pipe(ready) < 0)
		die("pipe");
	prctl(PR_SET_PTRACER, -1L); /* Yama */
	tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c = ptrace(PTRACE_SEIZE, target, NULL, NULL) == 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		wait_for_ever();
	}
	if (read(ready[0], &c, 1) != 1)
		c = 'n';
	close(ready[0]);
	close(ready[1]);
	say("seized %c", c);
}

static void release(void)
{
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
}

static void shrink(const char *path)
{
	static char bytes[4 << 20];
	ssize_t n;
	int fd;

	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(path, O_RDWR | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	while (n > 0) {
		if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, (size_t)n, 0) != n)
			break;
	}
	_exit(0);
}

static struct gate laid_out;

/* One page is there, as it was written to. The rest of the file is dropped as far as nobody maps it. */
static void *block_on(void *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	char *room = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (fd < 0 || room == MAP_FAILED)
		die("mmap of a stack");
	memset(room, 1, PAGE);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	gate_open(&laid_out);
#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; mov %1, %%eax; syscall; mov %%rbx, %%rsp"
			 :
			 : "r"(room + PAGE - 64), "i"(SYS_pause)
			 : "rax", "rbx", "rcx", "r11", "memory");
#else
	wait_for_ever();
#endif
	return NULL;
}

static void lay_out_stack(const char *file)
{
	pthread_t t;

	pthread_create(&t, NULL, block_on, strdup(file));
	gate_wait(&laid_out);
}

/* The numbers of /proc/self/stat from `first` on (proc(5)). */
static void read_stat(int first, int n, unsigned long long *ret)
{
	char text[2048], *at;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len <= 0)
		die("/proc/self/stat");
	close(fd);
	text[len] = '\0';
	at = strrchr(text, ')') + 1; /* behind the second */
	for (int i = 3; i < first; i++)
		at = strchr(at + 1, ' ');
	for (int i = 0; i < n; i++)
		ret[i] = strtoull(at, &at, 10);
}

static void lie_about_environ(void)
{
	const size_t bytes = 64ul << 30;
	char *room =
		mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long long code[3], data[3];
	struct prctl_mm_map map = { .exe_fd = (uint32_t)-1 };

	if (room == MAP_FAILED)
		die("mmap");
	read_stat(26, 3, code);
	read_stat(45, 3, data);
	map.start_code = code[0];
	map.end_code = code[1];
	map.start_stack = code[2];
	map.start_data = data[0];
	map.end_data = data[1];
	map.start_brk = data[2];
	map.brk = (uintptr_t)sbrk(0);
	map.arg_start = map.env_start = (uintptr_t)room;
	map.arg_end = map.env_end = (uintptr_t)room + bytes;
	say("lied %d", prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) == 0);
}

static bool starts(const char *command, const char *word, const char **ret_rest)
{
	size_t n = strlen(word);

	*ret_rest = command + n;
	return strncmp(command, word, n) == 0;
}

static void obey(const char *command)
{
	const char *rest;
	pthread_t t;

	if (starts(command, "code ", &rest))
		code_of_file(rest);
	else if (starts(command, "memfd ", &rest))
		code_of_memfd(rest);
	else if (starts(command, "where", &rest))
		say("addr x%lx", n_codes ? (unsigned long)(uintptr_t)codes[n_codes - 1] : 0ul);
	else if (starts(command, "burn ", &rest))
		burn_for(strtoull(rest, NULL, 10) * NSEC_PER_MSEC);
	else if (starts(command, "maps ", &rest))
		map_many(strtol(rest, NULL, 10));
	else if (starts(command, "threads ", &rest))
		say("threads %ld", start_threads(strtol(rest, NULL, 10)));
	else if (starts(command, "name ", &rest))
		prctl(PR_SET_NAME, unhex(rest));
	else if (starts(command, "worker ", &rest))
		pthread_create(&t, NULL, work_on, strdup(unhex(rest)));
	else if (starts(command, "storm ", &rest))
		say("programs %llu", (unsigned long long)storm(strtoull(rest, NULL, 10)));
	else if (starts(command, "seize", &rest))
		seize();
	else if (starts(command, "release", &rest))
		release();
	else if (starts(command, "stack ", &rest))
		lay_out_stack(rest);
	else if (starts(command, "environ", &rest))
		lie_about_environ();
	else if (starts(command, "shrink ", &rest))
		shrink(rest);
}

int main(int argc, char **argv)
{
	const char *command;

	if (argc > 1 && strcmp(argv[1], "end") == 0)
		return 0;
	say_ready();
	while ((command = next_command())) {
		obey(command);
		say("end");
	}
	return 0;
}
