/*
 * A program that is not asked anything: it makes a known number of calls, from its first instruction to its end.
 *
 *   alloc_calls N [spin|wait|fork FILE]
 *
 * A constructor makes 10 of 48 bytes, main() N of 96, half of which are freed. Then it ends; or, `spin`, goes on
 * computing without any system call, with an allocation now and then; or, `wait`, writes FILE when it was
 * not ended for two seconds; or, `fork`, has a child make N more, and another program run.
 */
#include "target.h"

#include <sys/wait.h>

static void *volatile kept;

static NOINLINE void calls(long n, size_t size)
{
	for (long i = 0; i < n; i++) {
		kept = malloc(size);
		if (i % 2)
			free(kept);
	}
}

static void __attribute__((constructor)) begin(void)
{
	calls(10, 48);
}

static NOINLINE void spin(void)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 1;; i++) {
		sum += i * sum;
		if (i % 1000000 == 0) {
			kept = malloc(64);
			free(kept);
		}
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	long n = argc > 1 ? atol(argv[1]) : 0;

	calls(n, 96);
	if (!strcmp(how, "spin")) {
		say_ready();
		spin();
	}
	if (!strcmp(how, "fork")) {
		pid_t child = fork();

		if (!child) {
			calls(n, 96);
			execl("/bin/true", "true", NULL);
		}
		waitpid(child, NULL, 0);
	}
	if (!strcmp(how, "wait") && argc > 3) {
		usleep(2000000);
		calls(n, 96);
		close(open(argv[3], O_CREAT | O_WRONLY, 0600));
	}
	return 7;
}
