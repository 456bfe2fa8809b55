#include "collect/probes/alloc_probes.h"

#include "collect/overhead/counter.h"
#include "collect/overhead/governor.h"
#include "collect/overhead/realtime.h"
#include "collect/probes/uprobes.h"
#include "collect/session/session_wire.h"
#include "collect/stream/alloc_sites_cell.h"
#include "elf/elf_syms.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define MAX_IMAGES   512
#define MAX_MAPPINGS 4096

/*
 * What a hit costs on this machine's kind, ns; measured with empty programs on Linux 6.18 in a
 * virtual machine: on an instruction that the kernel emulates, on one it must single-step, of a
 * return probe, and of our programs with a shallow stack.
 */
#define HIT_EMULATED_NS 520.0
#define HIT_STEPPED_NS  9300.0
#define RETURN_NS       330.0
#define ALLOC_PROG_NS   850.0
#define FREE_PROG_NS    170.0

/* A file, looked into once. */
struct probed_file {
	module_id module;
	int fd; /* open while there are sites */
	struct alloc_sites sites;
};

/* Probes of one file in one process (pid -1: everywhere). */
struct attachment {
	pid_t pid;
	uint32_t file;
	uint32_t n_fds;
	int fds[2 * ALLOC_SITES_MAX];
};

struct alloc_probes {
	struct session *session;
	struct dict *dict;
	struct proc_table *procs;
	bool file_scope, objects;
	struct probed_file *files;
	uint32_t n_files;
	struct attachment **attached;
	uint32_t n_attached;
	struct alloc_probes_stats stats;
	bool bursts;          /* what is attached has no descriptors                   */
	pthread_mutex_t lock; /* of files and attached, which alloc_probes_attach() reads */
};

int alloc_probes_new(struct session *s, struct dict *d, struct proc_table *procs, bool file_scope,
		     bool objects, struct alloc_probes **ret_probes, struct err *e)
{
	struct alloc_probes *ap = calloc(1, sizeof(*ap));

	if (!ap)
		return err_set(e, -ENOMEM, "out of memory");
	ap->session = s;
	ap->dict = d;
	ap->procs = procs;
	ap->file_scope = file_scope;
	ap->objects = objects;
	pthread_mutex_init(&ap->lock, NULL);
	*ret_probes = ap;
	return 0;
}

static void take_away(struct attachment *a)
{
	uprobes_detach(a->fds, a->n_fds);
	a->n_fds = 0;
}

static void attachment_free(struct attachment *a)
{
	take_away(a);
	free(a);
}

void alloc_probes_free(struct alloc_probes *ap)
{
	if (!ap)
		return;
	for (uint32_t i = 0; i < ap->n_attached; i++)
		attachment_free(ap->attached[i]);
	free(ap->attached);
	for (uint32_t i = 0; i < ap->n_files; i++) {
		alloc_sites_fini(&ap->files[i].sites);
		if (ap->files[i].fd >= 0)
			close(ap->files[i].fd);
	}
	free(ap->files);
	pthread_mutex_destroy(&ap->lock);
	free(ap);
}

struct opener {
	struct alloc_probes *ap;
	module_id module;
};

static int open_debug(void *ctx, const char *path, bool host)
{
	const struct opener *o = ctx;

	return proc_table_open_beside(o->ap->procs, o->module, path, host);
}

/* If they cannot be loaded, they cannot be attached, and that is counted. */
static void want_programs(const struct alloc_probes *ap, const struct alloc_sites *sites)
{
	for (uint32_t i = 0; i < sites->n; i++)
		if (sites->site[i].shape == MS_SHAPE_NEW)
			session_want_new(ap->session);
}

static void look_into(struct alloc_probes *ap, struct probed_file *f)
{
	struct opener opener = { ap, f->module };
	struct alloc_image image = {
		.fd = f->fd,
		.path = dict_str(ap->dict, dict_module_get(ap->dict, f->module)->path),
		.open_debug = open_debug,
		.ctx = &opener,
	};
	struct err e;

	if (alloc_sites_ask(&image, uprobes_multi(), ap->objects, &f->sites, &e) < 0) {
		ap->stats.unread++;
		snprintf(ap->stats.unread_why, sizeof(ap->stats.unread_why), "%.255s", e.msg);
	}
	want_programs(ap, &f->sites);
	ap->stats.objects |= f->sites.objects;
	if (f->sites.objects_hidden)
		snprintf(ap->stats.objects_hidden, sizeof(ap->stats.objects_hidden), "%s",
			 image.path);
	if (f->sites.nameless)
		snprintf(ap->stats.nameless, sizeof(ap->stats.nameless), "%s", image.path);
	if (f->sites.hidden) {
		snprintf(ap->stats.hidden, sizeof(ap->stats.hidden), "%s", image.path);
		ap->stats.hidden_name = f->sites.hidden;
	}
}

/* The file of a module, looked into; NULL when out of memory. */
static struct probed_file *file_get(struct alloc_probes *ap, module_id module, uint32_t *ret_ix)
{
	struct probed_file *more, *f;

	for (uint32_t i = 0; i < ap->n_files; i++)
		if (ap->files[i].module.ix == module.ix) {
			*ret_ix = i;
			return &ap->files[i];
		}
	pthread_mutex_lock(&ap->lock);
	more = realloc(ap->files, (ap->n_files + 1) * sizeof(*more));
	if (more)
		ap->files = more;
	pthread_mutex_unlock(&ap->lock);
	if (!more)
		return NULL;
	f = &ap->files[ap->n_files]; /* nobody else looks there yet */
	memset(f, 0, sizeof(*f));
	f->module = module;
	f->fd = proc_table_open_module(ap->procs, module, NULL);
	if (f->fd >= 0) {
		look_into(ap, f);
		if (!f->sites.n)
			close(TAKE_FD(f->fd));
		else
			ap->stats.files++;
	}
	for (uint32_t i = 0; i < f->sites.n; i++)
		ap->stats.functions += f->sites.site[i].shape != MS_SHAPE_NEW_EXIT;
	ap->stats.own_new |= f->sites.own_new;
	*ret_ix = ap->n_files++;
	return f;
}

static bool is_attached(const struct alloc_probes *ap, pid_t pid, uint32_t file)
{
	for (uint32_t i = 0; i < ap->n_attached; i++)
		if (ap->attached[i]->pid == pid && ap->attached[i]->file == file)
			return true;
	return false;
}

static void site_failed(struct alloc_probes *ap, int code)
{
	ap->stats.failed++;
	snprintf(ap->stats.failed_why, sizeof(ap->stats.failed_why), "%s",
		 code == -EMFILE ? "too many open files: raise the limit (ulimit -n)"
				 : strerror(-code));
}

/* Of shapes whose functions allocate. */
#define ALLOCATING (~(1ULL << MS_SHAPE_FREE | 1ULL << MS_SHAPE_NEW_EXIT))

/* `prog` on the sites of these shapes (bits). */
static void attach_prog(struct alloc_probes *ap, struct attachment *a,
			const struct bpf_program *prog, enum uprobe_end end, uint64_t shapes)
{
	const struct probed_file *f = &ap->files[a->file];
	uint64_t offsets[ALLOC_SITES_MAX], places[ALLOC_SITES_MAX];
	uint32_t n = 0;
	int r;

	for (uint32_t i = 0; i < f->sites.n; i++)
		if (shapes & (1u << f->sites.site[i].shape)) {
			offsets[n] = f->sites.site[i].off;
			places[n++] = f->sites.site[i].place | (uint64_t)f->sites.site[i].shape
								       << MS_COOKIE_SHAPE_SHIFT;
		}
	if (!n)
		return;
	r = uprobes_attach(prog, f->fd, offsets, places, n, a->pid, end, &a->fds[a->n_fds]);
	if (r == -ESRCH)
		return; /* it has ended */
	if (r < 0)
		site_failed(ap, r);
	else
		a->n_fds += (uint32_t)r;
}

/* The programs of one end; shapes that share one are attached together. */
static void attach_end(struct alloc_probes *ap, struct attachment *a, enum uprobe_end end,
		       uint64_t wanted)
{
	for (int i = 0; i < MS_N_SHAPES; i++) {
		const struct bpf_program *prog =
			session_alloc_prog(ap->session, (enum ms_shape)i, end);
		uint64_t shapes = 0;
		bool done = !prog;

		for (int j = 0; j < MS_N_SHAPES; j++)
			if (session_alloc_prog(ap->session, (enum ms_shape)j, end) == prog) {
				shapes |= 1u << j;
				done |= j < i;
			}
		if (!done)
			attach_prog(ap, a, prog, end, shapes & wanted);
	}
}

/* All sites of `file` in `pid`; with `count`, that program alone on those that allocate. */
static struct attachment *attach_file(struct alloc_probes *ap, uint32_t file, pid_t pid,
				      const struct bpf_program *count)
{
	struct attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->pid = pid;
	a->file = file;
	if (ap->bursts && !count)
		return a;
	if (count) {
		attach_prog(ap, a, count, UPROBE_ENTRY, ALLOCATING);
		return a;
	}
	attach_end(ap, a, UPROBE_RETURN, ~0ULL);
	attach_end(ap, a, UPROBE_BOTH, ~0ULL);
	attach_end(ap, a, UPROBE_ENTRY, ~0ULL);
	return a;
}

int alloc_probes_add(struct alloc_probes *ap, pid_t pid, struct err *e)
{
	struct proc_image images[MAX_IMAGES];
	struct proc *p = proc_table_live(ap->procs, pid);
	uint32_t n = p ? proc_images(ap->procs, p, images, MAX_IMAGES) : 0;
	pid_t scope = ap->file_scope ? -1 : pid;
	int fresh = 0;

	for (uint32_t i = 0; i < n && i < MAX_IMAGES; i++) {
		struct attachment **more, *a;
		struct probed_file *f;
		uint32_t file;

		if (dict_module_get(ap->dict, images[i].module)->kind != MODULE_ELF)
			continue;
		f = file_get(ap, images[i].module, &file);
		if (!f)
			return err_set(e, -ENOMEM, "out of memory");
		if (!f->sites.n || is_attached(ap, scope, file))
			continue;
		pthread_mutex_lock(&ap->lock);
		more = realloc(ap->attached, (ap->n_attached + 1) * sizeof(*more));
		if (more)
			ap->attached = more;
		pthread_mutex_unlock(&ap->lock);
		a = more ? attach_file(ap, file, scope, NULL) : NULL;
		if (!a)
			return err_set(e, -ENOMEM, "out of memory");
		if (!a->n_fds && !ap->bursts) {
			free(a);
			continue;
		}
		pthread_mutex_lock(&ap->lock);
		if (ap->bursts) /* since just now */
			take_away(a);
		ap->attached[ap->n_attached++] = a;
		pthread_mutex_unlock(&ap->lock);
		ap->stats.attached += a->n_fds;
		fresh += (int)f->sites.n;
	}
	return fresh;
}

void alloc_probes_drop(struct alloc_probes *ap, pid_t pid)
{
	pthread_mutex_lock(&ap->lock);
	for (uint32_t i = 0; i < ap->n_attached;) {
		if (ap->attached[i]->pid != pid) {
			i++;
			continue;
		}
		attachment_free(ap->attached[i]);
		ap->attached[i] = ap->attached[--ap->n_attached];
	}
	pthread_mutex_unlock(&ap->lock);
}

void alloc_probes_burst(struct alloc_probes *ap)
{
	pthread_mutex_lock(&ap->lock);
	ap->bursts = true;
	for (uint32_t i = 0; i < ap->n_attached; i++)
		take_away(ap->attached[i]);
	pthread_mutex_unlock(&ap->lock);
}

uint32_t alloc_probes_attach(struct alloc_probes *ap, bool results, int *ret_fds, uint32_t cap)
{
	uint64_t entries = ALLOCATING | (results ? 1ULL << MS_SHAPE_NEW_EXIT : 0);
	uint32_t n = 0;

	pthread_mutex_lock(&ap->lock);
	for (uint32_t i = 0; i < ap->n_attached; i++) {
		struct attachment *a = ap->attached[i];

		attach_end(ap, a, UPROBE_BOTH, ALLOCATING);
		attach_end(ap, a, UPROBE_ENTRY, entries);
		if (a->n_fds > cap - n)
			uprobes_detach(a->fds, a->n_fds);
		else
			for (uint32_t j = 0; j < a->n_fds; j++)
				ret_fds[n++] = a->fds[j];
		a->n_fds = 0;
	}
	pthread_mutex_unlock(&ap->lock);
	return n;
}

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A file with an allocator, in a process. */
struct look {
	uint32_t file;
	pid_t pid;
};

#define MAX_LOOKS 64

/* Those of `pid`; looking into files takes its time, so that is done before any is probed. */
static int add_looks(struct alloc_probes *ap, pid_t pid, struct look *looks, uint32_t *n)
{
	struct proc_image images[MAX_IMAGES];
	struct proc *p = proc_table_live(ap->procs, pid);
	uint32_t n_images = p ? proc_images(ap->procs, p, images, MAX_IMAGES) : 0;

	for (uint32_t i = 0; i < n_images && i < MAX_IMAGES && *n < MAX_LOOKS; i++) {
		struct probed_file *f;

		if (dict_module_get(ap->dict, images[i].module)->kind != MODULE_ELF)
			continue;
		looks[*n].pid = pid;
		f = file_get(ap, images[i].module, &looks[*n].file);
		if (!f)
			return -ENOMEM;
		*n += f->sites.n != 0;
	}
	return 0;
}

int alloc_probes_rate(struct alloc_probes *ap, const pid_t *pids, uint32_t n, uint32_t burst_ms,
		      uint64_t enough, double *ret_per_s, struct err *e)
{
	struct attachment *counting[MAX_LOOKS];
	struct look looks[MAX_LOOKS];
	uint32_t n_looks = 0;
	uint64_t calls, begin, end;
	struct realtime was;

	for (uint32_t i = 0; i < n; i++)
		if (add_looks(ap, pids[i], looks, &n_looks) < 0)
			return err_set(e, -ENOMEM, "out of memory");
	was = realtime_begin();
	for (uint32_t i = 0; i < n_looks; i++)
		counting[i] = attach_file(ap, looks[i].file, looks[i].pid,
					  session_count_prog(ap->session));
	begin = clock_ns();
	calls = counter_read(ap->session, STAT_RATE_CALLS);
	do {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		end = clock_ns();
	} while (end - begin < burst_ms * 1000000ULL &&
		 counter_read(ap->session, STAT_RATE_CALLS) - calls < enough);
	calls = counter_read(ap->session, STAT_RATE_CALLS) - calls;
	for (uint32_t i = 0; i < n_looks; i++)
		if (counting[i])
			attachment_free(counting[i]);
	realtime_end(&was);
	*ret_per_s = (double)calls * 1e9 / (double)(end - begin);
	return 0;
}

/* What the probes of a call cost, without their programs. */
static double hits_ns(const struct alloc_site *site)
{
	double ns = site->emulated ? HIT_EMULATED_NS : HIT_STEPPED_NS;

	if (site->shape == MS_SHAPE_NEW)
		return ns + HIT_STEPPED_NS; /* on a return instruction */
	return site->shape == MS_SHAPE_FREE ? ns : ns + RETURN_NS;
}

/* What the three probes of an allocation and its free cost, without their programs. */
static double pair_hits_ns(const struct alloc_probes *ap)
{
	double alloc_ns = HIT_EMULATED_NS + RETURN_NS, free_ns = HIT_EMULATED_NS;

	for (uint32_t i = 0; i < ap->n_files; i++)
		for (uint32_t j = 0; j < ap->files[i].sites.n; j++) {
			const struct alloc_site *site = &ap->files[i].sites.site[j];
			double *of = site->shape == MS_SHAPE_FREE ? &free_ns : &alloc_ns;

			if (site->main && hits_ns(site) > *of)
				*of = hits_ns(site);
		}
	return alloc_ns + free_ns;
}

double alloc_probes_pair_ns(const struct alloc_probes *ap)
{
	return pair_hits_ns(ap) + ALLOC_PROG_NS + FREE_PROG_NS;
}

double alloc_probes_hit_ns(const struct alloc_probes *ap, double trap_ns)
{
	return pair_hits_ns(ap) / GOVERNOR_HITS_PER_PAIR * trap_ns / HIT_EMULATED_NS;
}

bool alloc_probes_new_exits(struct alloc_probes *ap)
{
	bool has = false;

	pthread_mutex_lock(&ap->lock);
	for (uint32_t i = 0; i < ap->n_files; i++)
		for (uint32_t j = 0; j < ap->files[i].sites.n; j++)
			has |= ap->files[i].sites.site[j].shape == MS_SHAPE_NEW_EXIT;
	pthread_mutex_unlock(&ap->lock);
	return has;
}

double alloc_probes_exit_ns(struct alloc_probes *ap, double trap_ns)
{
	return alloc_probes_new_exits(ap) ? trap_ns + HIT_STEPPED_NS - HIT_EMULATED_NS
					  : trap_ns * RETURN_NS / HIT_EMULATED_NS;
}

double alloc_probes_trap_ns(const struct alloc_probes *ap, double trap_ns)
{
	double costliest = trap_ns;

	for (uint32_t i = 0; i < ap->n_files; i++)
		for (uint32_t j = 0; j < ap->files[i].sites.n; j++) {
			const struct alloc_site *site = &ap->files[i].sites.site[j];

			if (site->main && !site->emulated && ALLOCATING & 1ULL << site->shape)
				costliest = trap_ns + HIT_STEPPED_NS - HIT_EMULATED_NS;
		}
	return costliest;
}

/* --- functions without names --- */

/* false: its program headers could not be read, or it is not mapped any more. */
static bool bias_of(struct alloc_probes *ap, struct proc *p, module_id module, uint64_t *ret_bias)
{
	struct proc_mapping *maps = calloc(MAX_MAPPINGS, sizeof(*maps));
	uint32_t n = maps ? proc_mappings(ap->procs, p, maps, MAX_MAPPINGS) : 0;
	bool found = false;

	for (uint32_t i = 0; i < n && i < MAX_MAPPINGS && !found; i++) {
		found = maps[i].module.ix == module.ix && maps[i].readable;
		*ret_bias = maps[i].bias;
	}
	free(maps);
	return found;
}

bool alloc_probes_hidden(struct alloc_probes *ap, pid_t pid, struct alloc_hidden *ret_hidden)
{
	struct proc_image images[MAX_IMAGES];
	struct proc *p = proc_table_live(ap->procs, pid);
	uint32_t n = p ? proc_images(ap->procs, p, images, MAX_IMAGES) : 0;

	for (uint32_t i = 0; i < n && i < MAX_IMAGES; i++) {
		const struct module *m = dict_module_get(ap->dict, images[i].module);
		struct alloc_hidden h = { .module = images[i].module };
		struct probed_file *f;
		uint32_t file;

		if (m->kind != MODULE_ELF)
			continue;
		f = file_get(ap, images[i].module, &file);
		if (!f || !f->sites.hidden || !bias_of(ap, p, images[i].module, &h.bias))
			continue;
		h.path = dict_str(ap->dict, m->path);
		h.allocator = f->sites.hidden;
		h.fd = proc_table_open_module(ap->procs, h.module, NULL);
		if (h.fd < 0)
			continue;
		*ret_hidden = h;
		return true;
	}
	return false;
}

int alloc_probes_known(struct alloc_probes *ap, module_id module, struct alloc_known *known,
		       uint32_t n)
{
	static const enum ms_shape shapes[] = {
		[ALLOC_WAY_MALLOC] = MS_SHAPE_SIZE,
		[ALLOC_WAY_CALLOC] = MS_SHAPE_COUNT_SIZE,
		[ALLOC_WAY_ALIGNED] = MS_SHAPE_ALIGN_SIZE,
		[ALLOC_WAY_REALLOC] = MS_SHAPE_REALLOC,
		[ALLOC_WAY_NEW] = MS_SHAPE_NEW,
	};
	struct alloc_function functions[ALLOC_SITES_MAX];
	uint64_t probed[ALLOC_SITES_MAX] = { 0 };
	struct alloc_image image = { .path = "" };
	struct alloc_sites sites;
	struct probed_file *f;
	uint32_t file;
	int r;

	f = n <= ALLOC_SITES_MAX ? file_get(ap, module, &file) : NULL;
	image.fd = f ? proc_table_open_module(ap->procs, module, NULL) : -EINVAL;
	if (image.fd < 0)
		return image.fd;
	for (uint32_t i = 0; i < n; i++)
		functions[i] = (struct alloc_function){ known[i].vaddr, known[i].size,
							shapes[known[i].way] };
	r = alloc_sites_ask_of(&image, functions, n, uprobes_multi(), &sites, probed, NULL);
	if (r < 0 || !sites.n) {
		alloc_sites_fini(&sites);
		close(image.fd);
		return r;
	}
	for (uint32_t i = 0; i < n; i++)
		known[i].probed = probed[i];
	want_programs(ap, &sites);
	pthread_mutex_lock(&ap->lock);
	alloc_sites_fini(&f->sites);
	f->sites = sites;
	f->fd = image.fd;
	pthread_mutex_unlock(&ap->lock);
	ap->stats.files++;
	ap->stats.functions += sites.n;
	ap->stats.nameless[0] = ap->stats.hidden[0] = '\0';
	return (int)sites.n;
}

uint32_t alloc_probes_functions(struct elf_syms *syms)
{
	uint32_t n = 0;

	for (const struct allocator *a = allocators; a->symbol; a++)
		n += !a->via && !a->objects && elf_syms_find_name(syms, a->symbol, NULL, 0) > 0;
	return n;
}

void alloc_probes_stats(const struct alloc_probes *ap, struct alloc_probes_stats *ret_stats)
{
	*ret_stats = ap->stats;
}
