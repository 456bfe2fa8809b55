#include "collect/probes/sampler_places.h"

#include "collect/probes/places_cell.h"
#include "collect/probes/samplers_find.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <string.h>

enum { ANSWER_BYTES_MAX = 16 << 10, REG_MAX = 31 };

static const struct {
	const char *provider, *name;
	uint32_t n_args;
} notes[SAMPLE_N_NOTES] = {
	[SAMPLE_NOTE_ALLOC] = { "otel_memory", "alloc", 3 },
	[SAMPLE_NOTE_FREE] = { "otel_memory", "free", 1 },
	[SAMPLE_NOTE_UNTRACKED] = { "memscope", "untracked", 3 },
};

static uint32_t n_sites_of(const struct sampler *s)
{
	return s->free || s->also ? 2 : 1;
}

/* --- in the cell --- */

static void read_note(struct elf_file *elf, const struct sdt_note *note, enum sample_note kind,
		      struct sampler_places *p)
{
	struct sample_site site = { .off = note->off, .semaphore_off = note->semaphore_off };

	if (p->n_sites[kind] == SAMPLE_NOTES_MAX) {
		p->n_left_out++;
		return;
	}
	while (site.n_args < notes[kind].n_args &&
	       sdt_arg_parse(elf_file_machine(elf), note->args, site.n_args,
			     &site.args[site.n_args]) == 0)
		site.n_args++;
	if (site.n_args < notes[kind].n_args)
		site.n_args = 0;
	p->sites[kind][p->n_sites[kind]++] = site;
}

static void read_notes(struct elf_file *elf, struct sampler_places *p)
{
	_cleanup_(sdt_notes_freep) struct sdt_notes *list = NULL;

	if (sdt_notes_load(elf, &list, NULL) < 0)
		return;
	for (uint32_t i = 0; i < sdt_notes_count(list); i++)
		for (uint32_t kind = 0; kind < SAMPLE_N_NOTES; kind++) {
			const struct sdt_note *note = sdt_notes_at(list, i);

			if (strcmp(note->provider, notes[kind].provider) == 0 &&
			    strcmp(note->name, notes[kind].name) == 0)
				read_note(elf, note, kind, p);
		}
}

static void put_site(struct strbuf *b, const struct sample_site *site)
{
	put_u64(b, site->off);
	put_u64(b, site->semaphore_off);
	put_u8(b, (uint8_t)site->n_args);
	for (uint32_t i = 0; i < site->n_args; i++) {
		const struct sdt_arg *a = &site->args[i];

		put_u8(b, (uint8_t)a->kind);
		put_u8(b, a->size);
		put_u8(b, a->is_signed);
		put_u8(b, a->reg);
		put_u64(b, (uint64_t)a->value);
	}
}

static uint8_t kind_number(const char *kind)
{
	uint32_t i = 0;

	while (kind && i < n_samplers && strcmp(samplers[i].name, kind) != 0)
		i++;
	return kind && i < n_samplers ? (uint8_t)(i + 1) : 0;
}

static uint8_t why_number(const char *why)
{
	uint32_t i = 0;

	while (why && i < SAMPLER_N_WHYS && sampler_whys[i] != why)
		i++;
	return why && i < SAMPLER_N_WHYS ? (uint8_t)(i + 1) : 0;
}

static uint8_t control_number(const char *variable)
{
	uint32_t i = 0;

	while (variable && i < n_sampler_controls && sampler_controls[i].variable != variable)
		i++;
	return variable && i < n_sampler_controls ? (uint8_t)(i + 1) : 0;
}

static void put_found(struct strbuf *b, const struct sampler_found *f)
{
	put_u8(b, f->sampler ? (uint8_t)(f->sampler - samplers + 1) : 0);
	put_u8(b, kind_number(f->kind));
	put_u8(b, why_number(f->why));
	put_u8(b, f->linked_off);
	put_u64(b, f->rate_vaddr);
	put_u64(b, f->on_vaddr);
	for (uint32_t i = 0; f->sampler && i < f->n_sites; i++) {
		put_u64(b, f->sites[i].vaddr);
		put_u64(b, f->sites[i].off);
	}
}

static void put_places(struct strbuf *b, const struct sampler_places *p)
{
	put_u32(b, p->n_left_out);
	for (uint32_t kind = 0; kind < SAMPLE_N_NOTES; kind++) {
		put_u8(b, (uint8_t)p->n_sites[kind]);
		for (uint32_t i = 0; i < p->n_sites[kind]; i++)
			put_site(b, &p->sites[kind][i]);
	}
	put_found(b, &p->found);
	put_u8(b, p->is_mapped);
	put_u64(b, p->vaddr);
	put_u8(b, control_number(p->control));
	put_u8(b, p->control_samples);
}

static int read_places(const struct alloc_image *im, struct bytes question, struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct sampler_places p = { 0 };
	struct sampler_control control;
	const struct elf_segment *segs;
	uint64_t file_off;
	uint8_t asks;
	uint32_t n;

	if (bytes_u8(&question, &asks) < 0 || bytes_u64(&question, &file_off) < 0)
		return -EBADMSG;
	if (elf_file_open(im->fd, im->path, &elf, NULL) < 0) {
		put_places(answer, &p);
		return 0;
	}
	if (asks & SAMPLER_ASK_NOTES)
		read_notes(elf, &p);
	if (asks & SAMPLER_ASK_OWN) {
		samplers_find(im, elf, &p.found);
		segs = elf_file_segments(elf, &n);
		p.is_mapped = elf_segments_off_to_vaddr(segs, n, file_off, &p.vaddr);
	}
	if (asks & SAMPLER_ASK_CONTROL) {
		samplers_find_control(elf, &control);
		p.control = control.variable;
		p.control_samples = control.has_sampler;
	}
	put_places(answer, &p);
	return 0;
}

static void work(const struct cell_given *given)
{
	places_cell_work(given, read_places);
}

static const struct cell_kind cell = { .name = "samplers", .work = work, PLACES_LIMITS };
CELL_KIND(cell);

/* --- who asks --- */

static int take_arg(struct bytes *b, struct sdt_arg *ret)
{
	uint8_t kind;

	if (bytes_u8(b, &kind) < 0 || bytes_u8(b, &ret->size) < 0 ||
	    places_take_bool(b, &ret->is_signed) < 0 || bytes_u8(b, &ret->reg) < 0 ||
	    bytes_u64(b, (uint64_t *)&ret->value) < 0 || kind > SDT_ARG_CONST ||
	    ret->reg > REG_MAX ||
	    (ret->size != 1 && ret->size != 2 && ret->size != 4 && ret->size != 8))
		return -EBADMSG;
	ret->kind = kind;
	return 0;
}

static int take_site(struct bytes *b, uint64_t file_bytes, enum sample_note kind,
		     struct sample_site *ret)
{
	uint8_t n;

	if (bytes_u64(b, &ret->off) < 0 || bytes_u64(b, &ret->semaphore_off) < 0 ||
	    bytes_u8(b, &n) < 0 || ret->off >= file_bytes || ret->semaphore_off >= file_bytes ||
	    (n && n != notes[kind].n_args))
		return -EBADMSG;
	ret->n_args = n;
	for (uint32_t i = 0; i < n; i++)
		if (take_arg(b, &ret->args[i]) < 0)
			return -EBADMSG;
	return 0;
}

static int take_sites(struct bytes *b, uint64_t file_bytes, struct sampler_places *p)
{
	if (bytes_u32(b, &p->n_left_out) < 0 ||
	    p->n_left_out > SDT_NOTES_MAX * (uint32_t)SAMPLE_N_NOTES)
		return -EBADMSG;
	for (uint32_t kind = 0; kind < SAMPLE_N_NOTES; kind++) {
		uint8_t n;

		if (bytes_u8(b, &n) < 0 || n > SAMPLE_NOTES_MAX)
			return -EBADMSG;
		for (uint32_t i = 0; i < n; i++)
			if (take_site(b, file_bytes, kind, &p->sites[kind][i]) < 0)
				return -EBADMSG;
		p->n_sites[kind] = n;
	}
	return 0;
}

/* A number from 1, of a row of so many; 0: none. */
static int take_number(struct bytes *b, uint32_t rows, uint8_t *ret)
{
	return bytes_u8(b, ret) < 0 || *ret > rows ? -EBADMSG : 0;
}

/* Of a sampler that can be probed `kind` is its name, and there is no reason why it cannot be; of none there are no reasons. */
static int take_found(struct bytes *b, uint64_t file_bytes, struct sampler_found *f)
{
	uint8_t sampler, kind, why;

	if (take_number(b, n_samplers, &sampler) < 0 || take_number(b, n_samplers, &kind) < 0 ||
	    take_number(b, SAMPLER_N_WHYS, &why) < 0 || places_take_bool(b, &f->linked_off) < 0 ||
	    bytes_u64(b, &f->rate_vaddr) < 0 || bytes_u64(b, &f->on_vaddr) < 0)
		return -EBADMSG;
	f->kind = kind ? samplers[kind - 1].name : NULL;
	f->why = why ? sampler_whys[why - 1] : NULL;
	if (!sampler)
		return (f->kind != NULL) == (f->why != NULL) ? 0 : -EBADMSG;
	f->sampler = &samplers[sampler - 1];
	f->n_sites = n_sites_of(f->sampler);
	f->rate = f->sampler->go ? SAMPLER_GO_RATE : 0;
	if (!f->kind || strcmp(f->kind, f->sampler->name) != 0 || f->why ||
	    (!f->sampler->go && (f->linked_off || !f->rate_vaddr != !f->sampler->rate)) ||
	    (f->on_vaddr && !f->sampler->on))
		return -EBADMSG;
	for (uint32_t i = 0; i < f->n_sites; i++)
		if (bytes_u64(b, &f->sites[i].vaddr) < 0 || bytes_u64(b, &f->sites[i].off) < 0 ||
		    f->sites[i].off >= file_bytes)
			return -EBADMSG;
	return 0;
}

static int take_all(struct bytes *b, uint64_t file_bytes, struct sampler_places *p)
{
	uint8_t control;

	if (take_sites(b, file_bytes, p) < 0 || take_found(b, file_bytes, &p->found) < 0 ||
	    places_take_bool(b, &p->is_mapped) < 0 || bytes_u64(b, &p->vaddr) < 0 ||
	    take_number(b, n_sampler_controls, &control) < 0 ||
	    places_take_bool(b, &p->control_samples) < 0 || b->len)
		return -EBADMSG;
	p->control = control ? sampler_controls[control - 1].variable : NULL;
	return 0;
}

int sampler_places_take(struct bytes answer, uint64_t file_bytes, struct sampler_places *ret)
{
	int r;

	*ret = (struct sampler_places){ 0 };
	r = take_all(&answer, file_bytes, ret);
	if (r < 0)
		*ret = (struct sampler_places){ 0 };
	return r;
}

int sampler_places_ask(const struct alloc_image *im, uint8_t asks, uint64_t file_off,
		       struct sampler_places *ret, struct err *e)
{
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	int r;

	*ret = (struct sampler_places){ 0 };
	put_u8(&q, asks);
	put_u64(&q, file_off);
	r = places_cell_ask(&cell, im, &q, ANSWER_BYTES_MAX, &t, e);
	if (r == 0 && sampler_places_take(talk_bytes(&t), places_file_bytes(im), ret) < 0)
		r = places_cell_lied(im, e);
	return r;
}
