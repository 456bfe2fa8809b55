#include "collect/probes/sample_probes.h"

#include "collect/probes/sampler_places.h"
#include "collect/probes/sampler_site.h"
#include "collect/probes/uprobes.h"
#include "collect/session/session_wire.h"
#include "lang/image_cell.h"
#include "proc/peek.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#define MAX_IMAGES 512

/* A file, looked into once. */
struct looked_at {
	module_id module;
	uint32_t alloc_sites;
	int fds[MS_N_SAMPLE_WHATS * SAMPLE_NOTES_MAX];
	uint32_t n_fds;
	bool pending; /* it is looked into again, in a process that maps it */
};

struct sample_probes {
	struct session *session;
	struct dict *dict;
	struct proc_table *procs;
	struct looked_at *files;
	uint32_t n_files;
	uint32_t n_places; /* in the map of sites */
	struct sample_probes_stats stats;
};

int sample_probes_new(struct session *s, struct dict *d, struct proc_table *procs,
		      struct sample_probes **ret_probes, struct err *e)
{
	struct sample_probes *sp = calloc(1, sizeof(*sp));

	if (!sp)
		return err_set(e, -ENOMEM, "out of memory");
	sp->session = s;
	sp->dict = d;
	sp->procs = procs;
	*ret_probes = sp;
	return 0;
}

void sample_probes_free(struct sample_probes *sp)
{
	if (!sp)
		return;
	for (uint32_t i = 0; i < sp->n_files; i++)
		uprobes_detach(sp->files[i].fds, sp->files[i].n_fds);
	free(sp->files);
	free(sp);
}

struct opener {
	struct sample_probes *sp;
	module_id module;
};

static int open_debug(void *ctx, const char *path, bool host)
{
	const struct opener *o = ctx;

	return proc_table_open_beside(o->sp->procs, o->module, path, host);
}

static const char *path_of(const struct sample_probes *sp, const struct looked_at *f)
{
	return dict_str(sp->dict, dict_module_get(sp->dict, f->module)->path);
}

/* Places to be probed with one program. */
struct places {
	uint64_t offs[SAMPLE_NOTES_MAX], semaphores[SAMPLE_NOTES_MAX], cookies[SAMPLE_NOTES_MAX];
	uint32_t n;
};

static void failed(struct sample_probes *sp, uint32_t n, const char *why)
{
	sp->stats.failed += n;
	snprintf(sp->stats.failed_why, sizeof(sp->stats.failed_why), "%.159s", why);
}

/* The cookie for a probe at `site`. */
static int cookie_for(struct sample_probes *sp, const struct ms_site *site, uint64_t *ret_cookie)
{
	uint32_t key = sp->n_places;

	if (!uprobes_cookies())
		return -ENOSYS;
	if (key >= MS_SITES_MAX || bpf_map_update_elem(session_map_fd(sp->session, SESSION_SITES),
						       &key, site, BPF_ANY) < 0)
		return -EOPNOTSUPP;
	sp->n_places++;
	*ret_cookie = key + 1;
	return 0;
}

/*
 * The cookie of a site by its arguments: 0 where they are those of a call. -EOPNOTSUPP: they are elsewhere, in a way that is not
 * understood; -ENOSYS: this kernel's probes have no cookies.
 */
static int cookie_of(struct sample_probes *sp, const struct sample_site *from, uint64_t *ret_cookie)
{
#if defined(__x86_64__)
	static const uint8_t of_call[SAMPLE_ARGS_MAX] = { 5, 4, 1 };
#else
	static const uint8_t of_call[SAMPLE_ARGS_MAX] = { 0, 1, 2 };
#endif
	struct ms_site site = { 0 };
	bool usual = true;

	for (uint32_t i = 0; i < from->n_args; i++) {
		const struct sdt_arg *a = &from->args[i];

		usual &= a->kind == SDT_ARG_REG && a->size == 8 && a->reg == of_call[i];
		site.args[i] = (struct ms_site_arg){
			.value = (uint64_t)a->value,
			.reg_off = samplers_reg_off(a->reg),
			.kind = a->kind == SDT_ARG_REG      ? MS_ARG_REG
				: a->kind == SDT_ARG_MEMORY ? MS_ARG_MEMORY
							    : MS_ARG_CONST,
			.size = a->size,
			.is_signed = a->is_signed,
		};
	}
	*ret_cookie = 0;
	return !from->n_args ? -EOPNOTSUPP : usual ? 0 : cookie_for(sp, &site, ret_cookie);
}

static const char *const unreadable_args = "its arguments are where memscope cannot read them";

static void collect_place(struct sample_probes *sp, int fd, const struct sample_site *site,
			  struct places *p)
{
	uint64_t cookie;
	int r;

	if (uprobes_ends_children(fd, site->off)) {
		failed(sp, 1,
		       "it is a nop of five bytes, and this kernel ends forked children "
		       "of who runs into a probe there");
		return;
	}
	r = cookie_of(sp, site, &cookie);
	if (r < 0) {
		failed(sp, 1,
		       r == -ENOSYS ? "this kernel has no probe cookies (Linux 5.15), "
				      "which say where arguments are"
				    : unreadable_args);
		return;
	}
	p->offs[p->n] = site->off;
	p->semaphores[p->n] = site->semaphore_off;
	p->cookies[p->n++] = cookie;
}

static void collect_places(struct sample_probes *sp, int fd, const struct sampler_places *found,
			   struct places *places)
{
	static const enum ms_sample_what whats[SAMPLE_N_NOTES] = {
		[SAMPLE_NOTE_ALLOC] = MS_SAMPLE_ALLOC,
		[SAMPLE_NOTE_FREE] = MS_SAMPLE_FREE,
		[SAMPLE_NOTE_UNTRACKED] = MS_SAMPLE_UNTRACKED,
	};

	for (uint32_t kind = 0; kind < SAMPLE_N_NOTES; kind++)
		for (uint32_t i = 0; i < found->n_sites[kind]; i++)
			collect_place(sp, fd, &found->sites[kind][i], &places[whats[kind]]);
	if (found->n_left_out)
		failed(sp, found->n_left_out, unreadable_args);
}

/* Frees first: one that is heard of without its allocation does no harm. */
static void attach(struct sample_probes *sp, struct looked_at *f, int fd, struct places *places)
{
	static const enum ms_sample_what order[] = { MS_SAMPLE_FREE, MS_SAMPLE_UNTRACKED,
						     MS_SAMPLE_ALLOC };
	uint32_t whats = 0;
	int loaded;

	for (int i = 0; i < MS_N_SAMPLE_WHATS; i++)
		whats |= (places[i].n > 0) << i;
	loaded = session_want_samples(sp->session, whats);
	for (int i = 0; i < MS_N_SAMPLE_WHATS; i++) {
		const struct places *p = &places[order[i]];
		int r = loaded;

		if (!p->n)
			continue;
		if (r == 0)
			r = uprobes_attach_sites(session_sample_prog(sp->session, order[i]), fd,
						 p->offs, p->semaphores,
						 uprobes_cookies() ? p->cookies : NULL, p->n, -1,
						 &f->fds[f->n_fds]);
		if (r < 0) {
			failed(sp, p->n, strerror(-r));
			continue;
		}
		f->n_fds += (uint32_t)r;
		sp->stats.sites += p->n;
		if (order[i] == MS_SAMPLE_ALLOC)
			f->alloc_sites = p->n;
	}
}

/* --- what only a process that maps the file can say --- */

static bool read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return peek(*(const pid_t *)ctx, addr, buf, len);
}

static bool bias_in(struct sample_probes *sp, pid_t pid, module_id module, uint64_t *ret_bias)
{
	struct proc *p = proc_table_live(sp->procs, pid);
	struct proc_mapping maps[MAX_IMAGES];
	uint32_t n = p ? proc_mappings(sp->procs, p, maps, MAX_IMAGES) : 0;

	for (uint32_t i = 0; i < n && i < MAX_IMAGES; i++) {
		if (maps[i].module.ix != module.ix || !maps[i].readable)
			continue;
		*ret_bias = maps[i].bias;
		return true;
	}
	return false;
}

/* Where threads of the runtime count. -EAGAIN: it has not been initialized. */
static int find_counter(struct sample_probes *sp, const struct looked_at *f, int fd, pid_t pid,
			struct sampler_found *found, struct err *e)
{
	_cleanup_(lang_image_freep) struct lang_image *image = NULL;
	struct lang_memory mem = { read_process, &pid };
	struct hotspot_counter counter;
	struct lang_mapped at;
	int r;

	r = lang_image_ask(fd, "libjvm", &image, NULL, e);
	if (r < 0)
		return r;
	at.image = image;
	if (!bias_in(sp, pid, f->module, &at.bias))
		return -EAGAIN;
	r = hotspot_counter_find(&at, &mem, &counter, e);
	if (r < 0)
		return r;
	/* Before its constructors have run, all are 0. */
	if (!counter.allocated || !counter.tlab_top)
		return -EAGAIN;
	found->counter.allocated = counter.allocated;
	found->counter.start = counter.tlab_start;
	found->counter.top = counter.tlab_top;
	return 0;
}

/* false: it is not to be attached to, at least not now. */
static bool has_counter(struct sample_probes *sp, struct looked_at *f, int fd, pid_t pid,
			struct sampler_found *found)
{
	struct err e = { 0 };
	int r = find_counter(sp, f, fd, pid, found, &e);

	f->pending = r == -EAGAIN;
	if (r < 0 && !f->pending)
		failed(sp, found->n_sites, e.msg);
	sp->stats.counters |= r == 0;
	return r == 0;
}

/* The sampler that a runtime or an allocator in the file has of its own. */
static void listen_to_own(struct sample_probes *sp, struct looked_at *f, int fd, pid_t pid,
			  struct sampler_found *found)
{
	struct places places[MS_N_SAMPLE_WHATS] = { 0 };

	if (found->sampler && found->sampler->counter && !has_counter(sp, f, fd, pid, found))
		return;
	for (uint32_t i = 0; found->sampler && i < found->n_sites; i++) {
		struct ms_site site;
		struct places *p = &places[sampler_site(found, i, &site)];
		int r = uprobes_ends_children(fd, found->sites[i].off)
				? -EOPNOTSUPP
				: cookie_for(sp, &site, &p->cookies[p->n]);

		if (r < 0) {
			failed(sp, found->n_sites,
			       r == -ENOSYS
				       ? "this kernel has no probe cookies (Linux 5.15), which "
					 "say where arguments are"
				       : "too many files have samplers");
			return;
		}
		p->offs[p->n++] = found->sites[i].off;
	}
	if (found->sampler) {
		attach(sp, f, fd, places);
		if (!found->sampler->free && f->n_fds)
			f->alloc_sites = 1;
		sp->stats.assumed |= !found->rate_vaddr && !found->sampler->counter;
		sp->stats.sources |= 1ULL << (found->sampler - samplers + 1);
	} else if (found->why && !*sp->stats.unheard) {
		snprintf(sp->stats.unheard, sizeof(sp->stats.unheard),
			 "the sampler of %s in %.200s cannot be listened to: %s", found->kind,
			 path_of(sp, f), found->why);
	}
}

/* Sites of the contract; those of another than memscope's library are noted. */
static void listen_to_sites(struct sample_probes *sp, struct looked_at *f, int fd,
			    const struct sampler_places *found)
{
	struct places places[MS_N_SAMPLE_WHATS] = { 0 };
	bool own = found->n_sites[SAMPLE_NOTE_UNTRACKED] > 0;

	collect_places(sp, fd, found, places);
	attach(sp, f, fd, places);
	if (!f->alloc_sites)
		return;
	sp->stats.sources |= 1;
	sp->stats.own |= own;
	if (!own && !*sp->stats.other)
		snprintf(sp->stats.other, sizeof(sp->stats.other), "%s", path_of(sp, f));
}

static void look_into(struct sample_probes *sp, struct looked_at *f, pid_t pid)
{
	_cleanup_(closep) int fd = proc_table_open_module(sp->procs, f->module, NULL);
	struct opener opener = { sp, f->module };
	struct alloc_image image = {
		.fd = fd,
		.path = path_of(sp, f),
		.open_debug = open_debug,
		.ctx = &opener,
	};
	struct sampler_places found;
	struct err e;

	if (fd < 0)
		return;
	if (sampler_places_ask(&image, SAMPLER_ASK_NOTES | SAMPLER_ASK_OWN, 0, &found, &e) < 0) {
		sp->stats.unread++;
		snprintf(sp->stats.unread_why, sizeof(sp->stats.unread_why), "%.255s", e.msg);
		f->pending = false;
		return;
	}
	if (!f->pending)
		listen_to_sites(sp, f, fd, &found);
	if (!f->alloc_sites)
		listen_to_own(sp, f, fd, pid, &found.found);
}

static struct looked_at *file_get(struct sample_probes *sp, module_id module, pid_t pid)
{
	struct looked_at *more;

	for (uint32_t i = 0; i < sp->n_files; i++) {
		if (sp->files[i].module.ix != module.ix)
			continue;
		if (sp->files[i].pending)
			look_into(sp, &sp->files[i], pid);
		return &sp->files[i];
	}
	more = realloc(sp->files, (sp->n_files + 1) * sizeof(*more));
	if (!more)
		return NULL;
	sp->files = more;
	more += sp->n_files++;
	memset(more, 0, sizeof(*more));
	more->module = module;
	look_into(sp, more, pid);
	return more;
}

int sample_probes_add(struct sample_probes *sp, pid_t pid, struct err *e)
{
	struct proc_image images[MAX_IMAGES];
	struct proc *p = proc_table_live(sp->procs, pid);
	uint32_t n = p ? proc_images(sp->procs, p, images, MAX_IMAGES) : 0;
	int sites = 0;

	for (uint32_t i = 0; i < n && i < MAX_IMAGES; i++) {
		struct looked_at *f;

		if (dict_module_get(sp->dict, images[i].module)->kind != MODULE_ELF)
			continue;
		f = file_get(sp, images[i].module, pid);
		if (!f)
			return err_set(e, -ENOMEM, "out of memory");
		sites += (int)f->alloc_sites;
	}
	return sites;
}

void sample_probes_stats(const struct sample_probes *sp, struct sample_probes_stats *ret_stats)
{
	*ret_stats = sp->stats;
	for (uint32_t i = 0; i < sp->n_files; i++)
		ret_stats->pending |= sp->files[i].pending;
}
