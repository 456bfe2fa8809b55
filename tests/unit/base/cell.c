/* What a reader that was broken could try, tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cell.h"
#include "base/cleanup.h"

#define MIB (1ull << 20)

static int kept,
	shut; /* descriptors: of a file that the cell is given, and of one that it is not */
static char path[] = "/tmp/memscope-cell-XXXXXX";
static pid_t outside;

static int open_files(void **state)
{
	(void)state;
	kept = mkstemp(path);
	shut = open(path, O_RDWR | O_CLOEXEC);
	outside = getpid();
	return kept < 0 || shut < 0 || fchmod(kept, 0666) < 0;
}

static int close_files(void **state)
{
	(void)state;
	close(kept);
	close(shut);
	return unlink(path);
}

/* In a cell: what try() returns is the child's exit status. Returns what waitpid() says. */
static int in_a_cell(int (*try)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		cell_enter(&(struct cell){ .keep = &kept,
					   .n_keep = 1,
					   .data_bytes = 64 * MIB,
					   .file_bytes = 8192,
					   .cpu_s = 1 });
		_exit(try());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void it_cannot(int (*try)(void))
{
	int status = in_a_cell(try);

	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* 0: the call failed with one of these. */
static int failed(long r, int code, int other)
{
	return r < 0 && (errno == code || errno == other) ? 0 : 1;
}

static int read_what_it_has(void)
{
	char *text = malloc(1000);

	return !text || pwrite(kept, "text", 4, 0) != 4 || pread(kept, text, 4, 0) != 4 ||
	       memcmp(text, "text", 4);
}

static int use_what_it_was_not_given(void)
{
	char c;

	return failed(read(shut, &c, 1), EBADF, EBADF) || failed(write(2, "", 0), EBADF, EBADF);
}

static int touch_files(void)
{
	return failed(open(path, O_RDONLY), EPERM, EMFILE) ||
	       failed(open("/tmp/memscope-cell-new", O_CREAT | O_WRONLY, 0600), EPERM, EMFILE) ||
	       failed(unlink(path), EPERM, EACCES) ||
	       failed(rename(path, "/tmp/x"), EPERM, EACCES) ||
	       failed(mkdir("/tmp/memscope-cell-dir", 0700), EPERM, EACCES) ||
	       failed(chmod(path, 0777), EPERM, EACCES);
}

static int reach_others(void)
{
	return failed(socket(AF_UNIX, SOCK_STREAM, 0), EPERM, EMFILE) ||
	       failed(socket(AF_INET, SOCK_STREAM, 0), EPERM, EMFILE) ||
	       failed(kill(outside, 0), EPERM, EPERM) ||
	       failed(ptrace(PTRACE_ATTACH, outside, 0, 0), EPERM, EPERM) ||
	       failed(syscall(SYS_process_vm_readv, outside, NULL, 0ul, NULL, 0ul, 0ul), EPERM,
		      EPERM);
}

static int become_more(void)
{
	return failed(fork(), EPERM, EAGAIN) ||
	       failed(execl("/bin/true", "true", NULL), EPERM, EACCES) ||
	       failed(setuid(0), EPERM, EPERM) ||
	       failed(syscall(SYS_unshare, 0x10000000), EPERM, EPERM) ||
	       failed(syscall(SYS_bpf, 0, NULL, 0), EPERM, EPERM) ||
	       failed(syscall(SYS_mount, NULL, "/", NULL, 0ul, NULL), EPERM, EPERM);
}

static volatile char *shared;

static int write_to_its_parent(void)
{
	signal(SIGSEGV, SIG_DFL); /* not what catches it for the tests */
	*shared = 1;
	return 1;
}

static int ask_of_files(void)
{
	struct stat st;

	return failed(stat(path, &st), EPERM, EPERM) ||
	       failed(syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_EMPTY_PATH), EPERM, EPERM);
}

static int run_new_code(void)
{
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (data == MAP_FAILED)
		return 2;
	return failed(mprotect(data, 4096, PROT_READ | PROT_EXEC), EPERM, EPERM) ||
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		       MAP_FAILED;
}

static int take_all_memory(void)
{
	size_t taken = 0;
	char *p;

	while (taken < 1024 * MIB && (p = malloc(MIB))) {
		memset(p, 1, MIB);
		taken += MIB;
	}
	return taken < 16 * MIB ? 2 : taken > 66 * MIB;
}

static int fill_the_disk(void)
{
	char text[4096] = { 0 };
	int pages = 0;

	for (int i = 0; i < 100 && pwrite(kept, text, sizeof(text), (off_t)i * 4096) == 4096; i++)
		pages++;
	return pages != 2;
}

static int never_end(void)
{
	volatile uint64_t turns = 0;

	while (turns != UINT64_MAX)
		turns++;
	return 1;
}

static void it_reads_and_writes_what_it_was_given(void **state)
{
	(void)state;
	it_cannot(read_what_it_has); /* 0: all of it worked */
}

static void other_descriptors_are_shut(void **state)
{
	(void)state;
	it_cannot(use_what_it_was_not_given);
}

static void no_file_can_be_opened_or_changed(void **state)
{
	(void)state;
	it_cannot(touch_files);
	assert_int_equal(access(path, R_OK), 0);
	assert_int_not_equal(access("/tmp/memscope-cell-new", F_OK), 0);
}

static void nothing_is_said_of_a_file(void **state)
{
	(void)state;
	it_cannot(ask_of_files);
}

static void its_parents_memory_is_not_its_own(void **state)
{
	int status;

	(void)state;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	status = in_a_cell(write_to_its_parent);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	assert_int_equal(*shared, 0);
	munmap((void *)shared, 4096);
}

static void nobody_can_be_reached(void **state)
{
	(void)state;
	it_cannot(reach_others);
}

static void it_cannot_become_more_than_it_is(void **state)
{
	(void)state;
	it_cannot(become_more);
}

static void no_memory_becomes_code(void **state)
{
	(void)state;
	it_cannot(run_new_code);
}

static void memory_has_a_bound(void **state)
{
	(void)state;
#if defined(__SANITIZE_ADDRESS__)
	skip(); /* its malloc() does not fail: it ends the process with a report, which waits for memory for ever */
#endif
	it_cannot(take_all_memory);
}

static void a_file_has_a_bound(void **state)
{
	(void)state;
	it_cannot(fill_the_disk);
}

static void a_loop_ends(void **state)
{
	int status = in_a_cell(never_end);

	(void)state;
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
}

/* As the kernel has it, for a cell that waits. */
static void the_kernel_says_what_it_is(void **state)
{
	_cleanup_(fclosep) FILE *f = NULL;
	int wait[2], ready[2], lines = 0;
	char line[256], text[64], user[128], c;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(wait), 0);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		int keep[] = { wait[0], ready[1] };

		cell_enter(&(struct cell){
			.keep = keep, .n_keep = 2, .data_bytes = 64 * MIB, .cpu_s = 10 });
		_exit(write(ready[1], "", 1) != 1 || read(wait[0], &c, 1) != 0);
	}
	close(ready[1]);
	close(wait[0]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	snprintf(text, sizeof(text), "/proc/%d/status", (int)child);
	f = fopen(text, "re");
	assert_non_null(f);
	/* Nobody else's. */
	snprintf(user, sizeof(user), "Uid:\t%u\t%u\t%u\t%u\n", 0x70000000u + (unsigned)child,
		 0x70000000u + (unsigned)child, 0x70000000u + (unsigned)child,
		 0x70000000u + (unsigned)child);
	while (fgets(line, sizeof(line), f)) {
		lines += strcmp(line, "CapEff:\t0000000000000000\n") == 0;
		lines += strcmp(line, "CapPrm:\t0000000000000000\n") == 0;
		lines += strcmp(line, "CapAmb:\t0000000000000000\n") == 0;
		lines += strcmp(line, "NoNewPrivs:\t1\n") == 0;
		lines += strcmp(line, "Seccomp:\t2\n") == 0;
		lines += geteuid() == 0 && strcmp(line, user) == 0;
	}
	assert_int_equal(lines, geteuid() == 0 ? 6 : 5);
	close(wait[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_reads_and_writes_what_it_was_given),
		cmocka_unit_test(other_descriptors_are_shut),
		cmocka_unit_test(no_file_can_be_opened_or_changed),
		cmocka_unit_test(nothing_is_said_of_a_file),
		cmocka_unit_test(its_parents_memory_is_not_its_own),
		cmocka_unit_test(nobody_can_be_reached),
		cmocka_unit_test(it_cannot_become_more_than_it_is),
		cmocka_unit_test(no_memory_becomes_code),
		cmocka_unit_test(memory_has_a_bound),
		cmocka_unit_test(a_file_has_a_bound),
		cmocka_unit_test(a_loop_ends),
		cmocka_unit_test(the_kernel_says_what_it_is),
	};

	if (!(cell_walls() & CELL_CALLS)) {
		print_message("1..0 # SKIP no seccomp here\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, open_files, close_files);
}
