#include "elf/dwarf_read.h"
#include "elf/inflate.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What functions, inlined calls and lines are made of; locations and macros are most of the rest. */
static const char *const needed[] = {
	"info", "types", "abbrev",      "aranges", "line",     "line_str",
	"str",  "addr",  "str_offsets", "ranges",  "rnglists",
};

enum { N_NEEDED = sizeof(needed) / sizeof(needed[0]), NAME_BYTES = 24 };

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
	const struct elf_section *sec[N_NEEDED];
	uint64_t off[N_NEEDED], len[N_NEEDED];
	uint64_t total;
};

static int find_sections(struct elf_file *elf, struct plan *plan)
{
	const struct elf_section *secs;
	uint32_t n;
	int r = elf_file_sections(elf, &secs, &n, NULL);

	if (r < 0)
		return r;
	*plan = (struct plan){ 0 };
	for (uint32_t i = 0; i < n; i++) {
		int ix = which(&secs[i]);

		if (ix >= 0 && !plan->sec[ix])
			plan->sec[ix] = &secs[i];
	}
	return plan->sec[0] ? 0 : -ENOENT;
}

int dwarf_is_packed(struct elf_file *elf)
{
	struct plan plan;
	int r = find_sections(elf, &plan);

	if (r < 0)
		return r;
	for (int i = 0; i < N_NEEDED; i++)
		if (plan.sec[i] && elf_section_is_packed(plan.sec[i]))
			return 1;
	return 0;
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

static void put_headers(const struct elf_file *elf, const struct plan *plan, uint8_t *image)
{
	/* Both classes: libdw takes sizes of addresses from the units themselves. */
	Elf64_Ehdr *eh = (void *)image;
	Elf64_Shdr *sh = (void *)(image + plan->total);
	char *names = (char *)(eh + 1);
	uint16_t n = 1;

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
		snprintf(names + n * NAME_BYTES, NAME_BYTES, ".debug_%s", needed[i]);
		sh[n] = (Elf64_Shdr){
			.sh_name = n * NAME_BYTES,
			.sh_type = SHT_PROGBITS,
			.sh_offset = plan->off[i],
			.sh_size = plan->len[i],
			.sh_addralign = 1,
		};
		n++;
	}
	snprintf(names + n * NAME_BYTES, NAME_BYTES, ".shstrtab");
	sh[n] = (Elf64_Shdr){
		.sh_name = n * NAME_BYTES,
		.sh_type = SHT_STRTAB,
		.sh_offset = sizeof(*eh),
		.sh_size = (N_NEEDED + 2ul) * NAME_BYTES,
		.sh_addralign = 1,
	};
	eh->e_shstrndx = n;
	eh->e_shnum = n + 1;
}

int dwarf_unpack(struct elf_file *elf, uint64_t max, void **ret_image, size_t *ret_len)
{
	struct plan plan;
	uint8_t *image;
	size_t len;
	int r;

	r = find_sections(elf, &plan);
	if (r == 0)
		r = lay_out(elf, &plan, max);
	if (r < 0)
		return r;
	len = plan.total + (N_NEEDED + 2ul) * sizeof(Elf64_Shdr);
	image = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (image == MAP_FAILED)
		return -EFBIG;
	put_headers(elf, &plan, image);
	for (int i = 0; r == 0 && i < N_NEEDED; i++)
		if (plan.sec[i])
			r = elf_section_unpack_to(elf, plan.sec[i], image + plan.off[i],
						  plan.len[i], NULL);
	if (r < 0) {
		munmap(image, len);
		return r == -ENOMEM ? -EFBIG : r;
	}
	*ret_image = image;
	*ret_len = len;
	return 0;
}
