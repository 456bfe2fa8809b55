/*
 * What the files of a session know of each other: bpf_session.c, session_programs.c (which programs there
 * are, and which of them this run and kernel load) and session_targets.c (who is watched). Everyone else
 * includes bpf_session.h.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_PARTS_H
#define MEMSCOPE_COLLECT_SESSION_PARTS_H

#include "collect/bpf_session.h"
#include "memscope.skel.h"

#define N_TP_LINKS 16

struct session {
	struct session_opts opts;
	struct memscope_bpf *skel;
	struct bpf_link *links[N_TP_LINKS];
	uint32_t n_links;
	int *perf_fds;
	struct bpf_link **perf_links;
	uint32_t n_perf;
	const char *event;
	bool hardware;                 /* cycles can be counted here */
	const char *why[MS_N_SOURCES]; /* a source that could not be attached */
	char why_text[MS_N_SOURCES][256];
	struct bpf_link *mapping_links[2];
	uint64_t start_ns;
	struct ms_hash seed;
};

struct btf;

/* Between opening and loading. */
void session_choose_programs(struct session *s, const struct btf *btf);

/* A list of tasks, made when it is read. Opening it takes a while, reading it does not. A descriptor. */
int session_open_tasks(const struct bpf_program *prog, struct err *e);
void session_read_tasks(int fd, session_task_fn each, void *ctx);

#endif
