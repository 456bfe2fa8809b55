/*
 * Processes that sleep and do nothing else: a host with many of them.
 *
 *   sleepers N
 *
 * A line on stdout once all are there: how many (fewer where fork() failed). They end with the first process, and
 * that ends with its stdin.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 0, made = 0;
	pid_t first = getpid(), pid = 1;
	char c;

	for (; made < n && pid > 0; made += pid > 0) {
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == first)
				pause();
			return 0;
		}
	}
	printf("%ld\n", made);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
