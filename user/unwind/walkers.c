#include "unwind/walkers.h"

#include <string.h>

/*
 * Rows with a command-line word come before those of the same runtime without. Versions: a runtime
 * that began to keep frame pointers at some version is listed by what turns it on.
 */
const struct runtime_row runtime_rows[] = {
	{ RUNTIME_V8, "V8", "node", NULL, NULL, true,
	  "V8 sets up a frame with rbp in all code that it generates (src/execution/frames.h)" },
	{ RUNTIME_V8, "V8", "libnode.so", NULL, NULL, true, "as node" },
	{ RUNTIME_V8, "V8", "deno", NULL, NULL, true, "as node" },
	{ RUNTIME_V8, "V8", "electron", NULL, NULL, true, "as node" },
	{ RUNTIME_V8, "V8", "chrome", NULL, NULL, true, "as node" },
	{ RUNTIME_V8, "V8", "chromium", NULL, NULL, true, "as node" },
	{ RUNTIME_JVM_FP, "JVM", "libjvm.so", "-XX:+PreserveFramePointer", NULL, true,
	  "HotSpot keeps rbp in compiled code when asked to" },
	{ RUNTIME_JVM, "JVM", "libjvm.so", NULL, NULL, false,
	  "HotSpot uses rbp for other things: start it with -XX:+PreserveFramePointer" },
	{ RUNTIME_DOTNET, ".NET", "libcoreclr.so", NULL, NULL, true,
	  "its JIT sets up a frame with rbp in every method that calls" },
	{ RUNTIME_LUAJIT, "LuaJIT", "libluajit", NULL, NULL, false,
	  "its traces use rbp for other things" },
	{ RUNTIME_LUAJIT, "LuaJIT", "luajit", NULL, NULL, false, "as libluajit" },
	{ RUNTIME_PHP, "PHP", "opcache.so", NULL, NULL, false, "its JIT keeps no frame pointer" },
	{ RUNTIME_RUBY_FP, "Ruby", "ruby", "--yjit-perf", NULL, true,
	  "YJIT keeps rbp when started for perf (Ruby 3.3)" },
	{ RUNTIME_RUBY_FP, "Ruby", "libruby", "--yjit-perf", NULL, true, "as ruby" },
	{ RUNTIME_RUBY, "Ruby", "ruby", NULL, NULL, false, "start it with --yjit-perf" },
	{ RUNTIME_RUBY, "Ruby", "libruby", NULL, NULL, false, "as ruby" },
	{ RUNTIME_BEAM_FP, "Erlang", "beam.smp", "+JPperf", "true", true,
	  "the BEAM's JIT keeps rbp when started for perf (OTP 25)" },
	{ RUNTIME_BEAM_FP, "Erlang", "beam.smp", "+JPperf", "fp", true, "as above" },
	{ RUNTIME_BEAM, "Erlang", "beam.smp", NULL, NULL, false, "start it with +JPperf true" },
	{ RUNTIME_JULIA, "Julia", "libjulia-internal", NULL, NULL, true,
	  "its code generator asks LLVM for frame pointers in all functions" },
	{ RUNTIME_NONE, NULL, NULL, NULL, NULL, false, NULL },
};

/* "libjvm.so" begins "libjvm.so.1 (deleted)", and "node" is not "nodejs-helper". */
static bool is_file(const char *path, const char *name)
{
	const char *base = strrchr(path, '/');
	size_t len = strlen(name);

	base = base ? base + 1 : path;
	return !strncmp(base, name, len) &&
	       (!strncmp(name, "lib", 3) || !base[len] || strchr(".-0123456789", base[len]));
}

static bool has_word(const char *cmdline, size_t len, const char *word, const char *next)
{
	const char *at = cmdline, *end = cmdline + len;

	while (at < end) {
		size_t n = strnlen(at, (size_t)(end - at));
		const char *after = at + n < end ? at + n + 1 : end;
		size_t n_after = strnlen(after, (size_t)(end - after));

		if (n == strlen(word) && !memcmp(at, word, n) &&
		    (!next || (n_after == strlen(next) && !memcmp(after, next, n_after))))
			return true;
		at = after;
	}
	return false;
}

const struct runtime_row *runtime_find(const char *(*map_path)(void *ctx, uint32_t i), void *ctx,
				       const char *cmdline, size_t len)
{
	const char *path;

	for (const struct runtime_row *row = runtime_rows; row->name; row++) {
		if (row->args && !has_word(cmdline, len, row->args, row->args2))
			continue;
		for (uint32_t i = 0; (path = map_path(ctx, i)); i++)
			if (is_file(path, row->file))
				return row;
	}
	return NULL;
}

/* The first row that fits. */
static const struct walker walkers[] = {
	{ CODE_ELF, false, MS_SPAN_TABLE, "rows" },
	{ CODE_VDSO, false, MS_SPAN_TABLE, "rows of our own vDSO, which is the kernel's for all" },
	{ CODE_NO_ROWS, false, MS_SPAN_GUESS, "the file has no unwind information" },
	{ CODE_UNREADABLE, false, MS_SPAN_GUESS, "the file cannot be read any more" },
	{ CODE_NOT_ELF, true, MS_SPAN_FP, "generated code that keeps frame pointers" },
	{ CODE_NOT_ELF, false, MS_SPAN_GUESS, "generated code that may not keep frame pointers" },
	{ CODE_ANON, true, MS_SPAN_FP, "generated code that keeps frame pointers" },
	{ CODE_ANON, false, MS_SPAN_GUESS, "generated code that may not keep frame pointers" },
	{ CODE_KERNELS, false, MS_SPAN_GUESS,
	  "a page of the kernel's, without unwind information" },
};

const struct walker *walker_choose(enum code_kind code, const struct runtime_row *runtime)
{
	const struct walker *w = walkers;

	while (w->code != code || (w->needs_fp && !(runtime && runtime->keeps_fp)))
		w++;
	return w;
}

bool walker_is_kernels(const char *path)
{
	return !strcmp(path, "[vsyscall]") || !strcmp(path, "[uprobes]") ||
	       !strcmp(path, "[vectors]") || !strcmp(path, "[sigpage]");
}
