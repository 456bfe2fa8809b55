// Allocates and keeps in functions by known amounts, on command; built by the test that uses it,
// with tcmalloc of gperftools.
//
//	run N: N rounds; dump PATH: tcmalloc's own sample of the heap
#include <gperftools/malloc_extension.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#define NOINLINE __attribute__((noinline))

static void *volatile last;

NOINLINE static void keep_small(int n)
{
	for (int i = 0; i < n; i++)
		last = malloc(1024);
}

NOINLINE static void keep_large(int n)
{
	for (int i = 0; i < n; i++)
		last = malloc(1 << 20);
}

NOINLINE static void churn(int n)
{
	for (int i = 0; i < n; i++)
		delete[] (last = new char[4096], static_cast<char *>(last));
}

static void dump(const char *path)
{
	std::string sample;
	FILE *f = fopen(path, "w");

	MallocExtension::instance()->GetHeapSample(&sample);
	if (f && fwrite(sample.data(), 1, sample.size(), f) == sample.size() && fclose(f) == 0)
		return;
	puts("failed");
}

int main()
{
	char line[4096], path[4000];
	int n;

	setvbuf(stdout, nullptr, _IOLBF, 0);
	// The first thread has drawn its first distance before tcmalloc read its environment: 16 MiB.
	for (int i = 0; i < 64; i++)
		free(last = malloc(1 << 20));
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "run %d", &n) == 1) {
			keep_small(n);
			keep_large(n / 1000);
			churn(n);
		} else if (sscanf(line, "dump %3999s", path) == 1) {
			dump(path);
		}
		puts("end");
	}
}
