/*
 * Where libdw finds the debug sections: in the file itself, mapped; or, where some are compressed, in
 * an image with nothing but those that are needed, unpacked.
 */
#include "elf/dwarf.h"
#include "elf/dwarf_read.h"
#include "elf/inflate.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What functions, inlined calls and lines are made of; macros are most of the rest, and the last two, where variables are. */
static const char *const needed[] = {
	"info", "types",       "abbrev", "aranges",  "line", "line_str", "str",
	"addr", "str_offsets", "ranges", "rnglists", "loc",  "loclists",
};

enum {
	N_NEEDED = sizeof(needed) / sizeof(needed[0]),
	N_LOCATIONS = 2, /* of them, at the end */
	NAME_BYTES = 24,
	UNPACKED_IN_MEMORY_MAX = DWARF_MEMORY_MAX / 2, /* where no file can be had */
	PAGE_MASK = 0xffff,                            /* of the largest pages     */
};

static int which(const struct elf_section *sec)
{
	const char *name = sec->name;

	if (sec->type == SHT_NOBITS || !sec->size)
		return -1;
	if (!strncmp(name, ".debug_", 7))
		name += 7;
	else if (!strncmp(name, ".zdebug_", 8))
		name += 8;
	else
		return -1;
	for (int i = 0; i < N_NEEDED; i++)
		if (!strcmp(name, needed[i]))
			return i;
	return -1;
}

struct plan {
	int n; /* of needed[] */
	const struct elf_section *sec[N_NEEDED];
	uint64_t off[N_NEEDED], len[N_NEEDED];
	uint64_t total;
};

static int find_sections(struct elf_file *elf, bool locations, struct plan *plan)
{
	const struct elf_section *secs;
	uint32_t n;
	int r = elf_file_sections(elf, &secs, &n, NULL);

	if (r < 0)
		return r;
	*plan = (struct plan){ .n = locations ? N_NEEDED : N_NEEDED - N_LOCATIONS };
	for (uint32_t i = 0; i < n; i++) {
		int ix = which(&secs[i]);

		if (ix >= 0 && ix < plan->n && !plan->sec[ix])
			plan->sec[ix] = &secs[i];
	}
	return plan->sec[0] ? 0 : -ENOENT;
}

static int is_packed(struct elf_file *elf, bool locations)
{
	struct plan plan;
	int r = find_sections(elf, locations, &plan);

	if (r < 0)
		return r;
	for (int i = 0; i < N_NEEDED; i++)
		if (plan.sec[i] && elf_section_is_packed(plan.sec[i]))
			return 1;
	return 0;
}

int dwarf_is_packed(struct elf_file *elf)
{
	return is_packed(elf, false);
}

/* header, name table, sections aligned to 16, section headers */
static int lay_out(struct elf_file *elf, struct plan *plan, uint64_t max)
{
	plan->total = sizeof(Elf64_Ehdr) + (N_NEEDED + 2ul) * NAME_BYTES;
	for (int i = 0; i < N_NEEDED; i++) {
		int r;

		if (!plan->sec[i])
			continue;
		r = elf_section_unpacked_size(elf, plan->sec[i], &plan->len[i], NULL);
		if (r < 0)
			return r;
		plan->off[i] = (plan->total + 15) & ~15ull;
		if (plan->len[i] > max || plan->off[i] + plan->len[i] > max)
			return -EFBIG;
		plan->total = plan->off[i] + plan->len[i];
	}
	plan->total = (plan->total + 15) & ~15ull;
	return 0;
}

/* The image's first bytes, and what comes behind its last section. */
struct headers {
	Elf64_Ehdr eh;
	char names[(N_NEEDED + 2) * NAME_BYTES];
	Elf64_Shdr sh[N_NEEDED + 2];
};

static void make_headers(const struct elf_file *elf, const struct plan *plan, struct headers *ret)
{
	/* Both classes: libdw takes sizes of addresses from the units themselves. */
	Elf64_Ehdr *eh = &ret->eh;
	Elf64_Shdr *sh = ret->sh;
	uint16_t n = 1;

	*ret = (struct headers){ 0 };

	memcpy(eh->e_ident, ELFMAG, SELFMAG);
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_ident[EI_DATA] =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	eh->e_ident[EI_VERSION] = EV_CURRENT;
	eh->e_version = EV_CURRENT;
	eh->e_type = ET_DYN;
	eh->e_machine = elf_file_machine(elf);
	eh->e_ehsize = sizeof(*eh);
	eh->e_shentsize = sizeof(*sh);
	eh->e_shoff = plan->total;
	for (int i = 0; i < N_NEEDED; i++) {
		if (!plan->sec[i])
			continue;
		snprintf(ret->names + n * NAME_BYTES, NAME_BYTES, ".debug_%s", needed[i]);
		sh[n] = (Elf64_Shdr){
			.sh_name = n * NAME_BYTES,
			.sh_type = SHT_PROGBITS,
			.sh_offset = plan->off[i],
			.sh_size = plan->len[i],
			.sh_addralign = 1,
		};
		n++;
	}
	snprintf(ret->names + n * NAME_BYTES, NAME_BYTES, ".shstrtab");
	sh[n] = (Elf64_Shdr){
		.sh_name = n * NAME_BYTES,
		.sh_type = SHT_STRTAB,
		.sh_offset = sizeof(*eh),
		.sh_size = sizeof(ret->names),
		.sh_addralign = 1,
	};
	eh->e_shstrndx = n;
	eh->e_shnum = n + 1;
}

/* Where an unpacked image goes: a file without a name, or memory of our own. */
struct place {
	int fd; /* -1: memory */
	uint8_t *image;
	uint64_t off;
};

static int place_put(void *ctx, const void *bytes, size_t len)
{
	struct place *p = ctx;
	const uint8_t *from = bytes;

	if (p->fd < 0) {
		memcpy(p->image + p->off, bytes, len);
		p->off += len;
		return 0;
	}
	while (len) {
		ssize_t n = pwrite(p->fd, from, len, (off_t)p->off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		p->off += (uint64_t)n;
		from += n;
		len -= (size_t)n;
	}
	return 0;
}

static int put_image(struct elf_file *elf, const struct plan *plan, uint64_t base, struct place *p)
{
	struct headers h;
	int r;

	make_headers(elf, plan, &h);
	p->off = base;
	r = place_put(p, &h, offsetof(struct headers, sh));
	for (int i = 0; r == 0 && i < N_NEEDED; i++) {
		if (!plan->sec[i])
			continue;
		p->off = base + plan->off[i];
		r = elf_section_unpack_by(elf, plan->sec[i], plan->len[i], place_put, p, NULL);
	}
	p->off = base + plan->total;
	return r < 0 ? r : place_put(p, h.sh, sizeof(h.sh));
}

static int unpack_to_file(struct elf_file *elf, const struct plan *plan, size_t len,
			  struct dwarf_room *room, struct dwarf_source *ret)
{
	struct place p = { .fd = room->fd };
	uint64_t base = room->used;
	void *image;
	int r;

	if (room->fd < 0 || len > DWARF_UNPACKED_MAX - base)
		return -EFBIG;
	r = put_image(elf, plan, base, &p);
	if (r < 0)
		return r;
	image = mmap(NULL, len, PROT_READ, MAP_SHARED, room->fd, (off_t)base);
	if (image == MAP_FAILED)
		return -EFBIG;
	room->used = (base + len + PAGE_MASK) & ~(uint64_t)PAGE_MASK;
	*ret = (struct dwarf_source){ .image = image, .len = len, .in_file = true };
	return 0;
}

static int unpack_to_memory(struct elf_file *elf, const struct plan *plan, size_t len,
			    struct dwarf_source *ret)
{
	struct place p = { .fd = -1 };
	int r;

	if (len > UNPACKED_IN_MEMORY_MAX)
		return -EFBIG;
	p.image = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p.image == MAP_FAILED)
		return -EFBIG;
	r = put_image(elf, plan, 0, &p);
	if (r < 0) {
		munmap(p.image, len);
		return r == -ENOMEM ? -EFBIG : r;
	}
	*ret = (struct dwarf_source){ .image = p.image, .len = len };
	return 0;
}

static int unpack(struct elf_file *elf, struct dwarf_room *room, bool locations,
		  struct dwarf_source *ret)
{
	struct plan plan;
	size_t len;
	int r;

	r = find_sections(elf, locations, &plan);
	if (r == 0)
		r = lay_out(elf, &plan, DWARF_UNPACKED_MAX);
	if (r < 0)
		return r;
	len = plan.total + sizeof(((struct headers *)NULL)->sh);
	r = unpack_to_file(elf, &plan, len, room, ret);
	/* Without a file, or without room for it. */
	if (r < 0 && r != -EBADMSG && r != -ENODATA)
		r = unpack_to_memory(elf, &plan, len, ret);
	return r;
}

/* Mapped: what of it is touched is the page cache's. Who truncates it ends this process. */
static int map(struct elf_file *elf, struct dwarf_source *ret)
{
	size_t len = elf_file_size(elf);
	void *image = mmap(NULL, len, PROT_READ, MAP_PRIVATE, elf_file_fd(elf), 0);

	if (image == MAP_FAILED)
		return -EBADMSG;
	*ret = (struct dwarf_source){ .image = image, .len = len, .in_file = true };
	return 0;
}

int dwarf_source_open(struct elf_file *elf, struct dwarf_room *room, bool locations,
		      struct dwarf_source *ret)
{
	int r = is_packed(elf, locations);

	if (r >= 0)
		r = r ? unpack(elf, room, locations, ret) : map(elf, ret);
	if (r < 0)
		return r;
	ret->elf = elf_memory(ret->image, ret->len);
	if (ret->elf)
		return 0;
	dwarf_source_close(ret);
	return -EBADMSG;
}

void dwarf_source_forget(const struct dwarf_source *src)
{
	if (src->in_file)
		madvise(src->image, src->len, MADV_DONTNEED);
}

void dwarf_source_close(struct dwarf_source *src)
{
	elf_end(src->elf);
	if (src->image)
		munmap(src->image, src->len);
	*src = (struct dwarf_source){ 0 };
}
