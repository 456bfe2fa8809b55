/*
 * Go's runtime: which version a program was built with, where a goroutine has its pprof labels, and what they are.
 *
 * From Go 1.18 on a program has its version as text (.go.buildinfo, debug/buildinfo); layouts are fixed within a minor
 * version. Labels are a map[string]string up to Go 1.23 (runtime/map.go, runtime/pprof/label.go).
 */
#ifndef MEMSCOPE_LANG_GO_H
#define MEMSCOPE_LANG_GO_H

#include "elf/elf_file.h"
#include "lang/lang.h"

/* 1.19.8: 0x011308. 0: it is no Go program, or does not say. */
uint32_t go_version(struct elf_file *elf);
/* The same of its text: "go1.19.8", "go1.22rc1". */
uint32_t go_version_of(const char *text);

/* Offsets in runtime.g and runtime.m, and of g from the thread's base. */
struct go_layout {
	int32_t tls;
	uint16_t g_m, m_curg, g_labels;
	bool untested;
};

/* -EOPNOTSUPP: labels of this version are not read. */
int go_layout_find(uint32_t version, struct go_layout *ret_layout);

enum { GO_LABELS_MAX = 8, GO_LABEL_BYTES = 128 };

struct go_label {
	char key[GO_LABEL_BYTES], value[GO_LABEL_BYTES]; /* longer ones are cut */
};

/*
 * The labels in the map at `at`, whose second word is `cookie` but for its flags, by key; at most GO_LABELS_MAX. Their
 * number; -ESTALE: it is another map, or none; -EIO: it cannot be read.
 */
int go_labels_decode(const struct lang_memory *mem, uint64_t at, uint64_t cookie,
		     struct go_label ret_labels[GO_LABELS_MAX]);

#endif
