/*
 * A program that embeds CPython, by name at run time: loads a library, runs some code, finalizes and unloads it, and goes on
 * with the next, TURNS times in all. For test_python.py.
 *
 *   py_exchange TURNS LIBRARY CODE [LIBRARY CODE …]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *function(void *lib, const char *name)
{
	void *f = dlsym(lib, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return f;
}

static void turn(const char *library, const char *code)
{
	void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*run)(const char *code, void *flags), (*finalize)(void);
	void (*initialize)(int signals);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&initialize = function(lib, "Py_InitializeEx");
	*(void **)&run = function(lib, "PyRun_SimpleStringFlags");
	*(void **)&finalize = function(lib, "Py_FinalizeEx");
	initialize(0);
	if (run(code, NULL))
		exit(1);
	finalize();
	dlclose(lib);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, pairs = (argc - 2) / 2;

	for (int i = 0; i < n && pairs > 0; i++)
		turn(argv[2 + i % pairs * 2], argv[3 + i % pairs * 2]);
	return 0;
}
