/*
 * What the files of a session share: bpf_session.c, session_programs.c (which programs this run and
 * kernel load), session_load.c (loading them) and session_targets.c (what is watched). All others include
 * bpf_session.h.
 */
#ifndef MEMSCOPE_COLLECT_SESSION_SESSION_PARTS_H
#define MEMSCOPE_COLLECT_SESSION_SESSION_PARTS_H

#include "collect/session/kernel_subset.h"
#include "collect/session/session_wire.h"
#include "memscope.skel.h"

#define N_TP_LINKS 16
/* Of one source that is attached in slices (bpf/slices.h). */
#define SESSION_SLICE_LINKS 2
/* Objects of libbpf that programs are loaded by, at the start and later. Each stays, with 3 to 4 MB of its own. */
#define SESSION_PARTS    3
#define SESSION_LATER    3
#define SESSION_PROGRAMS 128

/* Programs that stay attached and return at once: whether they do, what they had done when that began, and while they did before. */
struct session_rest {
	bool on;
	struct program_cost begin, sum;
};

struct session {
	struct session_opts opts;
	struct memscope_bpf *skel;
	struct kernel_subset types; /* or all of the kernel's, where there is no such subset */
	/* That have loaded its programs, NULL: it has itself; the last ones, what was loaded later. */
	struct memscope_bpf *parts[SESSION_PARTS + SESSION_LATER];
	enum {
		SESSION_NEW_UNWANTED,
		SESSION_NEW_LATER,
		SESSION_NEW_LOADED
	} of_new; /* its programs */
	struct bpf_link *links[N_TP_LINKS];
	uint32_t n_links;
	int *perf_fds;
	struct bpf_link **perf_links;
	uint32_t n_perf;
	struct dither_thread *dither; /* NULL: the period is fixed  */
	const char *event;
	bool hardware;              /* cycles can be counted here */
	const char *why[N_SOURCES]; /* a source that could not be attached */
	char why_text[N_SOURCES][256];
	struct bpf_link *mapping_links[2];
	struct bpf_link *slice_links[2][SESSION_SLICE_LINKS]; /* of waits, of growth */
	struct session_rest rest[2];
	uint64_t start_ns;
	uint64_t map_bytes, map_bytes_ns; /* when that was; 0: not yet */
	bool results_ended;
	struct ms_hash seed;
};

struct btf;

/* Between opening and loading. */
void session_choose_programs(struct session *s, const struct btf *btf);

/* Maps, and the programs that were chosen. 0 or -errno. */
int session_load(struct session *s);
/* Those of `programs` (of the skeleton), which were not chosen: with the session's maps, SESSION_LATER times at
 * most. 0 or -errno. */
int session_load_later(struct session *s, struct bpf_program *const *programs, uint32_t n);
void session_unload(struct session *s);
/*
 * Divides programs that cost so much to load (0: not wanted) among at most `most` parts, not more than
 * there are programs that take long. Returns how many parts; ret_part[i] is where the i-th is.
 */
uint32_t session_load_parts(const uint32_t *costs, uint32_t n, uint32_t most, uint32_t *ret_part);

/* A list of tasks, made when it is read; opening it is slow, reading it is not. A descriptor. */
int session_open_tasks(const struct bpf_program *prog, struct err *e);
void session_read_tasks(int fd, session_task_fn each, void *ctx);

/* All of the time is in slices, until somebody says otherwise; before the gate opens. */
void session_slices_open(struct session *s);

/* In one place, as each that opens the skeleton brings its 1.4 MB of programs into the binary. */
struct memscope_bpf *session_skeleton_open(const struct session *s);

#endif
