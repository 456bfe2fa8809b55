/*
 * A program whose library does something before it begins (lib_starts.c). Writes to the file named
 * by its second argument what came of it (`result 7`: all went well) and who still traces it, and
 * exits with 5.
 */
#include "target.h"

extern int starts_is_child, starts_result;
void starts_join(void);

static int tracer(void)
{
	char line[256];
	int pid = -1;
	FILE *f = fopen("/proc/thread-self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "TracerPid: %d", &pid);
	if (f)
		fclose(f);
	return pid;
}

int main(int argc, char **argv)
{
	struct sigaction chld;
	FILE *out;

	if (argc != 3)
		return 2;
	if (starts_is_child)
		return tracer() == 0 ? 7 : 8;
	if (strcmp(argv[1], "thread") == 0)
		starts_join();
	sigaction(SIGCHLD, NULL, &chld);
	out = fopen(argv[2], "w");
	if (!out)
		return 3;
	fprintf(out, "result %d\ntracer %d\nchld_ignored %d\n", starts_result, tracer(),
		chld.sa_handler == SIG_IGN);
	fclose(out);
	return 5;
}
