/*
 * DHAT's file format 2 (valgrind 3.19, dhat/dh_main.c), for dh_view.html: every stack that allocated, with what came
 * of its blocks. It takes a profile of sites (model/alloc_site.h: sites.pb.gz of a run that traced every call), for
 * no other one knows the fate of blocks. Times are microseconds of the run. DHAT also has, of each stack, the most
 * that it had in use at any time: what it had at the peak of the whole or at the end, whichever is more, is written
 * there, which is at least that. Lifetimes are those of freed blocks.
 *
 * Two stacks of the same places are one: the viewer warns of equal lists.
 */
#include "base/hash.h"
#include "model/about.h"
#include "model/alloc_site.h"
#include "render/formats/code_path.h"
#include "render/formats/text.h"
#include "render/formats/title.h"
#include "render/formats/writers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A block that lived shorter is short-lived to the viewer; DHAT's own is 500 instructions. */
enum { SHORT_US = 10 };

/* Those that it has room for. */
static const enum alloc_site_value written[] = {
	SITE_OBJECTS,    SITE_BYTES,        SITE_LIFE_NS,    SITE_PEAK_OBJECTS,
	SITE_PEAK_BYTES, SITE_LIVE_OBJECTS, SITE_LIVE_BYTES,
};

struct dhat_frame {
	struct {
		struct code_function function;
		uint64_t vaddr;
		uint32_t line;
	} key;
	uint32_t ix;
	UT_hash_handle hh;
};

struct dhat {
	const struct profile *p;
	struct sink *out;
	uint32_t type[N_SITE_VALUES];
	struct strbuf text, frames;
	struct dhat_frame *by_key;
	uint32_t n_frames;
	struct profile *stacks; /* without labels: of each stack one sample */
};

static void dhat_fini(struct dhat *h)
{
	hash_free(h->by_key);
	strbuf_free(&h->text);
	strbuf_free(&h->frames);
	profile_free(h->stacks);
}

static void put_frame_text(struct dhat *h, const struct code_place *at)
{
	const struct dict *d = profile_dict(h->p);
	const char *file = dict_str(d, at->function.file);

	strbuf_printf(&h->frames, ",\n\"0x%" PRIX64 ": ", at->vaddr);
	text_add(&h->frames, TEXT_JSON, dict_str(d, at->function.name), UINT32_MAX);
	strbuf_puts(&h->frames, *file ? " (" : " (in ");
	text_add(&h->frames, TEXT_JSON, *file ? file : at->function.module, UINT32_MAX);
	if (*file)
		strbuf_printf(&h->frames, ":%" PRIu32, at->line);
	strbuf_puts(&h->frames, ")\"");
}

/* Its number in the table; 0, which is "[root]", when memory ran out. */
static uint32_t frame_number(struct dhat *h, const struct code_place *at)
{
	struct dhat_frame probe, *known;

	memset(&probe, 0, sizeof(probe));
	probe.key.function = at->function;
	probe.key.vaddr = at->vaddr;
	probe.key.line = at->line;
	known = hash_get(h->by_key, key, &probe.key);
	if (!known) {
		h->text.oom = true;
		return 0;
	}
	if (!known->ix) {
		known->ix = ++h->n_frames;
		put_frame_text(h, at);
	}
	return known->ix;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int put_stack(struct dhat *h, uint32_t i, struct code_path *path)
{
	struct profile_sample s = profile_sample(h->stacks, i);
	int64_t v[N_SITE_VALUES] = { 0 };
	int r = code_path_set(path, profile_dict(h->p), s.stack);

	for (size_t k = 0; k < sizeof(written) / sizeof(written[0]); k++)
		v[written[k]] = s.values[h->type[written[k]]];
	strbuf_printf(&h->text, "%s{\"tb\":%" PRId64 ",\"tbk\":%" PRId64 ",\"tl\":%" PRId64,
		      i ? ",\n" : "\n", v[SITE_BYTES], v[SITE_OBJECTS], v[SITE_LIFE_NS] / 1000);
	strbuf_printf(&h->text,
		      ",\"mb\":%" PRId64 ",\"mbk\":%" PRId64 ",\"gb\":%" PRId64 ",\"gbk\":%" PRId64
		      ",\"eb\":%" PRId64 ",\"ebk\":%" PRId64 ",\"fs\":[",
		      larger(v[SITE_PEAK_BYTES], v[SITE_LIVE_BYTES]),
		      larger(v[SITE_PEAK_OBJECTS], v[SITE_LIVE_OBJECTS]), v[SITE_PEAK_BYTES],
		      v[SITE_PEAK_OBJECTS], v[SITE_LIVE_BYTES], v[SITE_LIVE_OBJECTS]);
	for (uint32_t k = path->n; r == 0 && k-- > 0;)
		strbuf_printf(&h->text, "%" PRIu32 "%s", frame_number(h, &path->places[k]),
			      k ? "," : "");
	strbuf_puts(&h->text, "]}");
	if (h->text.len > 1 << 16 && !strbuf_oom(&h->text)) {
		sink_write(h->out, h->text.s, h->text.len);
		strbuf_reset(&h->text);
	}
	return r;
}

/* The profile without labels: processes and threads of one stack together. */
static int join_labels(struct dhat *h)
{
	h->stacks = profile_new(profile_dict(h->p), profile_type(h->p, 0), profile_n_types(h->p));
	if (!h->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile_n_samples(h->p); i++) {
		struct profile_sample s = profile_sample(h->p, i);

		if (profile_add(h->stacks, s.stack, (labels_id){ 0 }, s.values) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void put_header(struct dhat *h, const struct render_opts *opts)
{
	struct shown shown = shown_pick(h->p, (int)h->type[SITE_BYTES]);
	const char *peak_at = profile_about(h->p, ABOUT_PEAK, 0);
	double peak = peak_at ? strtod(peak_at, NULL) : 0;
	struct strbuf who = { 0 };

	title_who_add(&who, h->p, opts, &shown, UINT32_MAX);
	strbuf_puts(&h->text,
		    "{\"dhatFileVersion\":2,\"mode\":\"memscope-heap\",\"verb\":\"Allocated\","
		    "\"bklt\":true,\"bkacc\":false,\"tu\":\"µs\",\"Mtu\":\"s\",");
	strbuf_printf(&h->text, "\"tuth\":%d,\"cmd\":\"", SHORT_US);
	text_add(&h->text, TEXT_JSON, who.s ? who.s : "", UINT32_MAX);
	strbuf_printf(&h->text, "\",\"pid\":0,\"te\":%" PRId64 ",\"tg\":%" PRId64 ",\"pps\":[",
		      profile_get_meta(h->p)->duration_ns / 1000,
		      peak > 0 && peak < 1e9 ? (int64_t)(peak * 1e6) : 0);
	h->text.oom |= who.oom;
	strbuf_free(&who);
}

int dhat_write(const struct profile *p, const struct render_opts *opts, struct sink *out,
	       struct err *e)
{
	_cleanup_(dhat_fini) struct dhat h = { .p = p, .out = out };
	_cleanup_(code_path_fini) struct code_path path = { 0 };
	int r;

	for (size_t k = 0; k < sizeof(written) / sizeof(written[0]); k++) {
		enum alloc_site_value i = written[k];
		int type = profile_find_type(p, alloc_site_types[i].name);

		if (type < 0)
			return err_set(
				e, -EINVAL,
				"DHAT's file is about what came of blocks, and this profile has no %s; "
				"sites.pb.gz of a run with --alloc=exact has",
				alloc_site_types[i].name);
		h.type[i] = (uint32_t)type;
	}
	r = join_labels(&h);
	put_header(&h, opts);
	for (uint32_t i = 0; r == 0 && i < profile_n_samples(h.stacks); i++)
		r = put_stack(&h, i, &path);
	strbuf_puts(&h.text, "],\n\"ftbl\":[\"[root]\"");
	if (r < 0 || strbuf_oom(&h.text) || strbuf_oom(&h.frames) || dict_oom(profile_dict(p)))
		return err_set(e, -ENOMEM, "out of memory for DHAT's file");
	sink_write(out, h.text.s, h.text.len);
	if (h.frames.len)
		sink_write(out, h.frames.s, h.frames.len);
	sink_puts(out, "]}\n");
	return 0;
}
