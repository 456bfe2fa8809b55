/* A session's programs, and what is needed to read their records: for files of this room. */
#ifndef MEMSCOPE_COLLECT_SESSION_SESSION_WIRE_H
#define MEMSCOPE_COLLECT_SESSION_SESSION_WIRE_H

#include "abi.h"
#include "collect/session/bpf_session.h"

struct bpf_program;
struct memscope_bpf;

/* Seed of the stack hash, to verify records. */
void session_seed(const struct session *s, struct ms_hash *ret_seed);

/*
 * The probe programs of a shape: an entry and a return program or, where the kernel has sessions,
 * one for both. NULL: the shape has none; some have no return.
 */
struct bpf_program *session_alloc_prog(struct session *s, enum ms_shape shape, enum uprobe_end end);
/* Before those of MS_SHAPE_NEW and MS_SHAPE_NEW_EXIT are attached: loads them, the first time. 0 or -errno. */
int session_want_new(struct session *s);
struct bpf_program *session_count_prog(struct session *s);
/* A program that does nothing, for both ends, to measure a trap (trap_cost.h); NULL: no sessions. */
struct bpf_program *session_trap_prog(struct session *s);
/* The program of call_watch.h; NULL: it is not loaded. */
struct bpf_program *session_call_prog(struct session *s);
/* The program for a sampler's site. Before it is attached: loads those of `whats` (bit n: enum ms_sample_what) that
 * are not loaded yet. 0 or -errno. */
int session_want_samples(struct session *s, uint32_t whats);
struct bpf_program *session_sample_prog(struct session *s, enum ms_sample_what what);

/* Of events that were asked for. */
struct bpf_program *session_event_program(const struct session *s, enum ms_event_program which);

/* The i-th program's descriptor and name; -1: there is none, or it is not loaded. */
#define SESSION_PROGRAMS_MAX 64 /* more than there are */
int session_program(const struct session *s, uint32_t i, const char **ret_name);

/*
 * Duty cycles (bpf/slices.h) of SOURCE_OFFCPU and SOURCE_GROWTH: attaches and detaches what costs something at each of its events, or
 * lets it stay and return at once until it is attached again; the slice that is in force from now on; the end of that one; looks at all
 * threads once a slice of waits has begun. One thread at a time.
 */
int session_attach_slice(struct session *s, enum source source);
void session_detach_slice(struct session *s, enum source source);
void session_rest_slice(struct session *s, enum source source);
/* What a program did while the kernel's account was on; false: it cannot be asked. The same of a source's while they rested. */
bool session_program_cost(int fd, struct program_cost *ret_cost);
struct program_cost session_rest_cost(struct session *s, enum source source);
void session_slice_next(struct session *s, enum source source, const struct ms_slice *slice);
void session_slice_until(struct session *s, enum source source, uint64_t ns);
void session_slice_resume(struct session *s);

/* For files that handle some of the programs. */
struct memscope_bpf *session_skeleton(const struct session *s);

#endif
