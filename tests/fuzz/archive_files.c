/* The groups of files in an archive's list: what is taken leads to files of windows alone, and back to the same text. */
#include "base/archive_files.h"
#include "base/window_name.h"

#include <stdlib.h>
#include <string.h>

#define STAMP "20260101-000000-2"
enum { FEW = 4096 };

struct walk {
	struct archive_folders *folders;
	struct window_files files;
	int64_t n;
};

static int on_file(void *ctx, const char *name)
{
	struct walk *w = ctx;
	char stamp[32];

	if (!is_window_name(name, stamp, sizeof(stamp)) || strcmp(stamp, STAMP) != 0)
		abort();
	w->n++;
	if (strlen(name) < 256 && window_files_add(&w->files, w->folders, name) < 0)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct archive_folders folders = { 0 };
	struct walk w = { .folders = &folders };
	struct strbuf out = { 0 };
	char *text = malloc(len + 1);
	int64_t files;

	memcpy(text, data, len);
	text[len] = '\0';
	archive_folders_set(&folders, 1, "web");
	archive_folders_set(&folders, 2, "db");
	files = window_groups_count(text, &folders, STAMP);
	if (files > 0 && files < FEW) {
		window_groups_each(text, &folders, STAMP, on_file, &w);
		if (w.n != files)
			abort();
		if (w.files.n && window_files_print(&w.files, &out) == (size_t)files &&
		    window_groups_count(out.s, &folders, STAMP) != files)
			abort();
	}
	window_groups_have(text, 1, "oncpu-" STAMP ".pb.gz");
	strbuf_free(&out);
	window_files_fini(&w.files);
	archive_folders_fini(&folders);
	free(text);
	return 0;
}
