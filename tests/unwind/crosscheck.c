/*
 * memscope's walker against libdw's, frame by frame, on samples of a running program.
 *
 *     crosscheck [-F HZ] [-n SAMPLES] [-d SEC] [-b STACK_BYTES] [-s] [-v] [-w SHAPE=FILE] -- COMMAND…
 *
 * -s: at context switches instead of by the CPU clock; -v: some stacks of each kind of difference;
 * -w: the first stack of a shape (case.c), on which both agree, as a case of tests/replay/.
 * Prints, one a line:
 *     samples N                     compared
 *     lost N                        records for which the kernel had no room
 *     agree N                       the same frames, however they end
 *     short N                       libdw ends early, for it wanted a register from below sp: in an
 *                                   epilogue, what was popped is not in the copy
 *     complete N                    of all, by memscope's verdict
 *     class COUNT TEXT              each way in which frames or ends differ, and where
 *     frames N                      memscope's, of all samples
 *     walk_ns N                     of the host's walker, in all
 */
#include "case.h"
#include "dwfl_walk.h"

#include "unwind/host_walk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHOWN = 3 };

struct class
{
	char *text;
	uint32_t n;
	UT_hash_handle hh;
};

struct check {
	struct world world;
	bool verbose;
	enum case_shape shape;
	const char *path; /* of the case to write; NULL: none, or it is written */
	struct class *classes;
	uint64_t n, agree, libdw_short, complete, frames, walk_ns;
	uint64_t ours[MS_MAX_FRAMES], theirs[MS_MAX_FRAMES + 1];
};

static const char *const verdict_words[MS_N_VERDICTS] = {
	"complete", "truncated", "no table", "unreadable", "guessed", "lost",
};

/* One walk of one sample. */
struct outcome {
	enum ms_verdict verdict;
	uint32_t n, n_theirs;
	const char *end; /* theirs */
	bool below;      /* it wanted memory below sp */
	uint32_t same;   /* frames, from the leaf on */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void describe(const struct process *p, uint64_t frame, char *to, size_t size)
{
	const struct mapping *m = process_at(p, frame & MS_FRAME_ADDR_MASK);
	const char *name = m && m->image ? strrchr(m->image->name, '/') : NULL;

	name = name ? name + 1 : m && m->image ? m->image->name : "no file";
	snprintf(to, size, "%s+0x%llx", name, (frame & MS_FRAME_ADDR_MASK) - (m ? m->bias : 0));
}

static void print_stack(struct check *c, const struct process *p, const struct outcome *o)
{
	for (uint32_t i = o->same > 8 ? o->same - 8 : 0; i < o->n || i < o->n_theirs; i++) {
		char a[96] = "-", b[96] = "-";

		if (i < o->n)
			describe(p, c->ours[i], a, sizeof(a));
		if (i < o->n_theirs)
			describe(p, c->theirs[i], b, sizeof(b));
		fprintf(stderr, "#   %3u %-40s %-40s%s\n", i, a, b, i == o->same ? "  <--" : "");
		if (i > o->same + 4)
			break;
	}
}

/* In what way they differ, and in which module the last common frame is. */
static void note(struct check *c, const struct process *p, const struct outcome *o)
{
	char text[256], at[96];
	struct class *k;

	describe(p, o->same ? c->ours[o->same - 1] : c->ours[0], at, sizeof(at));
	if (o->same < o->n && o->same < o->n_theirs)
		snprintf(text, sizeof(text), "other caller of %s (%s; libdw: %s)", at,
			 verdict_words[o->verdict], o->end ? o->end : "complete");
	else if (o->same < o->n_theirs)
		snprintf(text, sizeof(text), "memscope ends (%s) and libdw goes on at %s",
			 verdict_words[o->verdict], at);
	else
		snprintf(text, sizeof(text), "libdw ends (%s) at %s, memscope %s, %s",
			 o->end ? o->end : "complete", at, verdict_words[o->verdict],
			 o->same < o->n ? "with more frames" : "with the same frames");
	HASH_FIND_STR(c->classes, text, k);
	if (!k) {
		k = calloc(1, sizeof(*k));
		k->text = strdup(text);
		HASH_ADD_KEYPTR(hh, c->classes, k->text, strlen(k->text), k);
	}
	if (k->n++ < SHOWN && c->verbose) {
		fprintf(stderr, "# %s\n", text);
		print_stack(c, p, o);
	}
}

/* What a signal interrupted is exact for both; for libdw the return from the signal is, too. */
static bool same(uint64_t ours, uint64_t theirs)
{
	return ours == theirs || ours == (theirs & MS_FRAME_ADDR_MASK);
}

static int check_sample(struct check *c, struct process *p, const struct sample *s, struct err *e)
{
	struct ms_space space;
	uint64_t regs[MS_N_REGS] = { 0 };
	struct host_stack stack = { .pc = s->regs[16],
				    .regs = regs,
				    .addr = s->regs[7],
				    .bytes = s->stack,
				    .len = s->stack_len,
				    .space = &space };
	struct outcome o = { 0 };
	uint64_t missing, begin_ns;
	const char *why;
	int r = world_space(&c->world, p, &space, e);

	if (r < 0)
		return r;
	if (p->other_gen != p->gen) {
		if (p->other)
			dwfl_walk_free(p->other);
		p->other = dwfl_walk_new(p, &why);
		if (!p->other)
			return err_set(e, -EIO, "libdw: %s", why);
		p->other_gen = p->gen;
	}
	memcpy(regs, s->regs, 16 * sizeof(*regs));
	begin_ns = now_ns();
	o.verdict = host_walk(&c->world.mem, &stack, c->ours, &o.n, &missing);
	c->walk_ns += now_ns() - begin_ns;
	o.n_theirs = dwfl_walk_stack(p->other, s, c->theirs, MS_MAX_FRAMES + 1, &o.end, &o.below);
	while (o.same < o.n && o.same < o.n_theirs && same(c->ours[o.same], c->theirs[o.same]))
		o.same++;
	c->n++;
	c->frames += o.n;
	c->complete += o.verdict == MS_COMPLETE;
	c->agree += o.same == o.n && o.same == o.n_theirs;
	c->libdw_short += o.below && o.same < o.n && o.same == o.n_theirs;
	if (o.same != o.n || o.same != o.n_theirs ||
	    (o.end ? o.verdict != MS_UNREADABLE : o.verdict != MS_COMPLETE))
		note(c, p, &o);
	if (!c->path || o.same != o.n || o.n != o.n_theirs)
		return 0;
	r = case_write(c->path, c->shape, &c->world, p, s, &space, e);
	if (r > 0)
		c->path = NULL;
	return r < 0 ? r : 0;
}

static int check_all(struct check *c, const struct samples *all, struct err *e)
{
	int r = 0;

	for (uint32_t i = 0; i < all->n && r == 0; i++) {
		uint64_t regs[SAMPLES_N_REGS];
		const struct perf_event_header *h = all->recs[i].h;
		struct process *p;
		struct sample s;

		if (h->type != PERF_RECORD_SAMPLE) {
			r = world_take(&c->world, h);
			continue;
		}
		s = sample_read(h, regs);
		p = world_process(&c->world, (uint32_t)s.pid);
		/* In the middle of an exec there are neither. */
		if (s.regs && s.regs[16] && p && p->n)
			r = check_sample(c, p, &s, e);
	}
	return r;
}

static int by_count(const struct class *a, const struct class *b)
{
	return a->n < b->n ? 1 : a->n > b->n ? -1 : 0;
}

static void print(struct check *c, const struct samples *all)
{
	struct class *k, *next;

	printf("samples %" PRIu64 "\nlost %" PRIu64 "\nagree %" PRIu64 "\ncomplete %" PRIu64
	       "\nshort %" PRIu64 "\nframes %" PRIu64 "\nwalk_ns %" PRIu64 "\n",
	       c->n, all->lost, c->agree, c->complete, c->libdw_short, c->frames, c->walk_ns);
	HASH_SORT(c->classes, by_count);
	HASH_ITER (hh, c->classes, k, next) {
		printf("class %u %s\n", k->n, k->text);
		HASH_DEL(c->classes, k);
		free(k->text);
		free(k);
	}
}

int main(int argc, char **argv)
{
	struct sample_opts o = { .hz = 999, .stack_bytes = 32 << 10, .max = 5000, .seconds = 10 };
	struct check *c = calloc(1, sizeof(*c));
	struct samples all = { 0 };
	struct err e = { 0 };
	int opt, r;

	while ((opt = getopt(argc, argv, "+F:n:d:b:svw:")) != -1) {
		switch (opt) {
		case 'F':
			o.hz = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			o.max = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'd':
			o.seconds = strtod(optarg, NULL);
			break;
		case 'b':
			o.stack_bytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 's':
			o.at_switches = true;
			break;
		case 'v':
			c->verbose = true;
			break;
		case 'w':
			c->path = strchr(optarg, '=');
			if (!c->path)
				return 2;
			*(char *)c->path++ = '\0';
			c->shape = case_shape_find(optarg);
			if (c->shape == N_CASE_SHAPES)
				return 2;
			break;
		default:
			return 2;
		}
	}
	if (optind == argc || !c)
		return 2;
	c->world.drop_other = dwfl_walk_free;
	r = samples_take(&o, argv + optind, &all, &e);
	if (r == 0)
		r = world_init(&c->world, &e);
	if (r == 0)
		r = check_all(c, &all, &e);
	if (r < 0) {
		fprintf(stderr, "crosscheck: %s\n", e.msg[0] ? e.msg : strerror(-r));
		return 1;
	}
	print(c, &all);
	if (c->path)
		fprintf(stderr, "crosscheck: no stack of that shape\n");
	world_fini(&c->world);
	samples_fini(&all);
	free(c);
	return 0;
}
