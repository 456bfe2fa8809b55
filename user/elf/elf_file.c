#include "elf/elf_file.h"

#include "base/fd_stat.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define NATIVE_DATA (BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB)

enum {
	NOTE_BYTES_MAX = 64 << 10, /* of one note segment or section                       */
	NAMES_BYTES_MAX = 4 << 20, /* of the section name table                            */
	LOADER_PAGE = 4096,        /* smallest page: rounding further would invent mappings */
};

struct elf_file {
	int fd;             /* borrowed; -1 when read from memory */
	const uint8_t *mem; /* borrowed                           */
	uint64_t size;
	char *name;
	bool is64;
	bool is_debug; /* not to be loaded: segments do not matter */
	uint16_t machine;
	uint64_t shoff;
	uint32_t shnum, shstrndx;
	struct elf_segment *segs;
	uint32_t n_segs;
	uint64_t entry, eh_frame_hdr;
	struct elf_section *secs;
	uint32_t n_secs;
	bool secs_read;
	char *sec_names;
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
};

/* The header and a program header in one shape for both classes. */
struct header {
	uint64_t phoff;
	uint32_t phnum;
};

int elf_file_read(const struct elf_file *elf, uint64_t off, void *buf, size_t len, struct err *e)
{
	size_t done = 0;

	if (off > elf->size || len > elf->size - off)
		return err_set(e, -ENODATA,
			       "%s: %zu bytes wanted at offset %#" PRIx64 ", the file has %" PRIu64,
			       elf->name, len, off, elf->size);
	if (elf->mem) {
		memcpy(buf, elf->mem + off, len);
		return 0;
	}
	while (done < len) {
		ssize_t n = pread(elf->fd, (char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "%s: read at offset %#" PRIx64 ": %s", elf->name,
				       off, strerror(errno));
		if (n == 0)
			return err_set(e, -ENODATA, "%s: became shorter while it was read",
				       elf->name);
		done += (size_t)n;
	}
	return 0;
}

bool elf_file_read_vaddr(struct elf_file *elf, uint64_t vaddr, void *buf, size_t len)
{
	const struct elf_segment *segs;
	uint64_t off;
	uint32_t n;

	segs = elf_file_segments(elf, &n);
	return elf_segments_vaddr_to_off(segs, n, vaddr, &off) &&
	       elf_file_read(elf, off, buf, len, NULL) == 0;
}

static int read_header(struct elf_file *elf, struct header *ret_hdr, struct err *e)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr h64;
		Elf32_Ehdr h32;
	} u;
	uint16_t type, phentsize, shentsize;
	struct header hdr;
	int r;

	if (elf->size < EI_NIDENT || elf_file_read(elf, 0, u.ident, EI_NIDENT, NULL) < 0 ||
	    memcmp(u.ident, ELFMAG, SELFMAG) != 0)
		return err_set(e, -ENOEXEC, "%s: not an ELF file", elf->name);
	if (u.ident[EI_CLASS] != ELFCLASS64 && u.ident[EI_CLASS] != ELFCLASS32)
		return err_set(e, -ENOEXEC, "%s: ELF class %d is neither 32 nor 64 bit", elf->name,
			       u.ident[EI_CLASS]);
	if (u.ident[EI_DATA] != NATIVE_DATA)
		return err_set(e, -ENOEXEC, "%s: an ELF file of the other byte order", elf->name);

	elf->is64 = u.ident[EI_CLASS] == ELFCLASS64;
	r = elf_file_read(elf, 0, &u, elf->is64 ? sizeof(u.h64) : sizeof(u.h32), e);
	if (r < 0)
		return r;
	if (elf->is64) {
		type = u.h64.e_type;
		elf->machine = u.h64.e_machine;
		elf->entry = u.h64.e_entry;
		hdr = (struct header){ u.h64.e_phoff, u.h64.e_phnum };
		phentsize = u.h64.e_phentsize;
		elf->shoff = u.h64.e_shoff;
		elf->shnum = u.h64.e_shnum;
		elf->shstrndx = u.h64.e_shstrndx;
		shentsize = u.h64.e_shentsize;
	} else {
		type = u.h32.e_type;
		elf->machine = u.h32.e_machine;
		elf->entry = u.h32.e_entry;
		hdr = (struct header){ u.h32.e_phoff, u.h32.e_phnum };
		phentsize = u.h32.e_phentsize;
		elf->shoff = u.h32.e_shoff;
		elf->shnum = u.h32.e_shnum;
		elf->shstrndx = u.h32.e_shstrndx;
		shentsize = u.h32.e_shentsize;
	}
	if (type != ET_EXEC && type != ET_DYN && !elf->is_debug)
		return err_set(e, -ENOEXEC,
			       "%s: ELF type %d is neither an executable nor a shared object",
			       elf->name, type);
	if (hdr.phnum && phentsize != (elf->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return err_set(e, -EBADMSG, "%s: program headers of %d bytes", elf->name,
			       phentsize);
	if (hdr.phnum > ELF_SEGMENTS_MAX)
		return err_set(e, -EBADMSG,
			       "%s: %u program headers, more than the %d that are read", elf->name,
			       hdr.phnum, ELF_SEGMENTS_MAX);
	/* Without section headers of the right size there are none: the loader needs no
	 * sections. */
	if (shentsize != (elf->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		elf->shoff = 0;
	*ret_hdr = hdr;
	return 0;
}

static void to_phdr64(const Elf32_Phdr *p, Elf64_Phdr *ret)
{
	*ret = (Elf64_Phdr){ .p_type = p->p_type,
			     .p_flags = p->p_flags,
			     .p_offset = p->p_offset,
			     .p_vaddr = p->p_vaddr,
			     .p_filesz = p->p_filesz,
			     .p_memsz = p->p_memsz,
			     .p_align = p->p_align };
}

/* Notes: namesz:4 descsz:4 type:4 name desc, name and desc padded to `align`. */
static bool note_build_id(struct elf_file *elf, const uint8_t *p, size_t len, size_t align)
{
	size_t pos = 0;

	while (len - pos >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		size_t name, desc, next;

		memcpy(&n, p + pos, sizeof(n));
		if (n.n_namesz > len || n.n_descsz > len)
			return false;
		name = pos + sizeof(n);
		desc = (name + n.n_namesz + align - 1) & ~(align - 1);
		next = (desc + n.n_descsz + align - 1) & ~(align - 1);
		if (desc > len || n.n_descsz > len - desc)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(p + name, "GNU", 4) &&
		    n.n_descsz > 0 && n.n_descsz <= ELF_BUILD_ID_MAX) {
			for (size_t i = 0; i < n.n_descsz; i++) {
				elf->build_id[2 * i] = "0123456789abcdef"[p[desc + i] >> 4];
				elf->build_id[2 * i + 1] = "0123456789abcdef"[p[desc + i] & 15];
			}
			elf->build_id[2 * n.n_descsz] = '\0';
			return true;
		}
		if (next > len)
			return false;
		pos = next;
	}
	return false;
}

static bool read_notes(struct elf_file *elf, uint64_t off, uint64_t size, uint64_t align)
{
	_cleanup_(freep) uint8_t *buf = NULL;
	size_t len = size < NOTE_BYTES_MAX ? size : NOTE_BYTES_MAX;

	buf = malloc(len + 1);
	if (!buf || elf_file_read(elf, off, buf, len, NULL) < 0)
		return false;
	return note_build_id(elf, buf, len, align == 8 ? 8 : 4);
}

static bool segment_ok(const Elf64_Phdr *p)
{
	uint64_t end;

	return p->p_memsz > 0 && p->p_filesz <= p->p_memsz &&
	       !__builtin_add_overflow(p->p_vaddr, p->p_memsz, &end) &&
	       !__builtin_add_overflow(p->p_offset, p->p_filesz, &end) && end <= INT64_MAX;
}

static int read_segments(struct elf_file *elf, const struct header *hdr, struct err *e)
{
	size_t ent = elf->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	_cleanup_(freep) uint8_t *buf = NULL;
	int r;

	if (!hdr->phnum && elf->is_debug)
		return 0;
	if (!hdr->phnum)
		return err_set(e, -EBADMSG, "%s: no program headers", elf->name);
	buf = malloc(hdr->phnum * ent);
	elf->segs = calloc(hdr->phnum, sizeof(*elf->segs));
	if (!buf || !elf->segs)
		return err_set(e, -ENOMEM, "%s: out of memory for program headers", elf->name);
	r = elf_file_read(elf, hdr->phoff, buf, hdr->phnum * ent, e);
	if (r < 0)
		return r;

	for (uint32_t i = 0; i < hdr->phnum; i++) {
		Elf64_Phdr p;
		Elf32_Phdr p32;

		if (elf->is64) {
			memcpy(&p, buf + i * ent, sizeof(p));
		} else {
			memcpy(&p32, buf + i * ent, sizeof(p32));
			to_phdr64(&p32, &p);
		}
		if (p.p_type == PT_LOAD && segment_ok(&p))
			elf->segs[elf->n_segs++] =
				(struct elf_segment){ p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz,
						      p.p_flags };
		else if (p.p_type == PT_NOTE && !elf->build_id[0])
			read_notes(elf, p.p_offset, p.p_filesz, p.p_align);
		else if (p.p_type == PT_GNU_EH_FRAME)
			elf->eh_frame_hdr = p.p_vaddr;
	}
	if (!elf->n_segs && !elf->is_debug)
		return err_set(e, -EBADMSG, "%s: no usable PT_LOAD segment", elf->name);
	return 0;
}

/* Some linkers' scripts leave the note out of PT_NOTE. */
static void build_id_from_sections(struct elf_file *elf)
{
	const struct elf_section *sec;

	if (elf_file_find_section(elf, ".note.gnu.build-id", &sec, NULL) == 0 &&
	    sec->type == SHT_NOTE)
		read_notes(elf, sec->off, sec->size, 4);
}

static int open_common(struct elf_file *new_elf, const char *name, struct elf_file **ret_elf,
		       struct err *e)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = new_elf;
	struct header hdr = { 0 };
	int r;

	elf->name = strdup(name);
	if (!elf->name)
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	r = read_header(elf, &hdr, e);
	if (r < 0)
		return r;
	r = read_segments(elf, &hdr, e);
	if (r < 0)
		return r;
	if (!elf->build_id[0])
		build_id_from_sections(elf);
	*ret_elf = TAKE_PTR(elf);
	return 0;
}

static int open_fd(int fd, const char *name, bool is_debug, struct elf_file **ret_elf,
		   struct err *e)
{
	struct elf_file *elf;
	struct stat st;

	if (fd_stat(fd, &st) < 0)
		return err_set(e, -errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, -ENOEXEC, "%s: not a regular file", name);
	elf = calloc(1, sizeof(*elf));
	if (!elf)
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	elf->fd = fd;
	elf->size = (uint64_t)st.st_size;
	elf->is_debug = is_debug;
	return open_common(elf, name, ret_elf, e);
}

int elf_file_open(int fd, const char *name, struct elf_file **ret_elf, struct err *e)
{
	return open_fd(fd, name, false, ret_elf, e);
}

int elf_file_open_debug(int fd, const char *name, struct elf_file **ret_elf, struct err *e)
{
	return open_fd(fd, name, true, ret_elf, e);
}

int elf_file_open_memory(const void *data, size_t len, const char *name, struct elf_file **ret_elf,
			 struct err *e)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));

	if (!elf)
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	elf->fd = -1;
	elf->mem = data;
	elf->size = len;
	return open_common(elf, name, ret_elf, e);
}

void elf_file_close(struct elf_file *elf)
{
	if (!elf)
		return;
	free(elf->segs);
	free(elf->secs);
	free(elf->sec_names);
	free(elf->name);
	free(elf);
}

int elf_file_fd(const struct elf_file *elf)
{
	return elf->fd;
}

uint64_t elf_file_size(const struct elf_file *elf)
{
	return elf->size;
}

const char *elf_file_name(const struct elf_file *elf)
{
	return elf->name;
}

bool elf_file_is64(const struct elf_file *elf)
{
	return elf->is64;
}

uint16_t elf_file_machine(const struct elf_file *elf)
{
	return elf->machine;
}

const char *elf_file_build_id(const struct elf_file *elf)
{
	return elf->build_id;
}

const struct elf_segment *elf_file_segments(const struct elf_file *elf, uint32_t *ret_n)
{
	*ret_n = elf->n_segs;
	return elf->segs;
}

uint64_t elf_file_entry(const struct elf_file *elf)
{
	return elf->entry;
}

uint64_t elf_file_eh_frame_hdr(const struct elf_file *elf)
{
	return elf->eh_frame_hdr;
}

/* --- addresses --- */

static const struct elf_segment *segment_by_off(const struct elf_segment *segs, uint32_t n,
						uint64_t off, uint32_t flags, uint64_t page)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t end = (segs[i].off + segs[i].filesz + page - 1) & ~(page - 1);

		if ((segs[i].flags & flags) == flags && off >= (segs[i].off & ~(page - 1)) &&
		    off < end)
			return &segs[i];
	}
	return NULL;
}

bool elf_segments_off_to_vaddr(const struct elf_segment *segs, uint32_t n, uint64_t off,
			       uint64_t *ret_vaddr)
{
	const struct elf_segment *s = segment_by_off(segs, n, off, PF_X, 1);

	if (!s)
		s = segment_by_off(segs, n, off, 0, 1);
	if (!s)
		s = segment_by_off(segs, n, off, PF_X, LOADER_PAGE);
	if (!s)
		return false;
	*ret_vaddr = off - s->off + s->vaddr;
	return true;
}

bool elf_segments_vaddr_to_off(const struct elf_segment *segs, uint32_t n, uint64_t vaddr,
			       uint64_t *ret_off)
{
	for (uint32_t i = 0; i < n; i++) {
		if (vaddr >= segs[i].vaddr && vaddr - segs[i].vaddr < segs[i].filesz) {
			*ret_off = vaddr - segs[i].vaddr + segs[i].off;
			return true;
		}
	}
	return false;
}

/* --- sections --- */

static void to_section(const struct elf_file *elf, const uint8_t *p, struct elf_section *ret,
		       uint32_t *ret_name, uint32_t *ret_info)
{
	if (elf->is64) {
		Elf64_Shdr s;

		memcpy(&s, p, sizeof(s));
		*ret = (struct elf_section){ "",        s.sh_type,   s.sh_link, s.sh_flags,
					     s.sh_addr, s.sh_offset, s.sh_size, s.sh_entsize };
		*ret_name = s.sh_name;
		*ret_info = s.sh_info;
	} else {
		Elf32_Shdr s;

		memcpy(&s, p, sizeof(s));
		*ret = (struct elf_section){ "",        s.sh_type,   s.sh_link, s.sh_flags,
					     s.sh_addr, s.sh_offset, s.sh_size, s.sh_entsize };
		*ret_name = s.sh_name;
		*ret_info = s.sh_info;
	}
}

/* Counts that do not fit in the header are in the null section (gABI, "Section Header"). */
static int section_count(struct elf_file *elf, uint32_t *ret_n, struct err *e)
{
	uint8_t buf[sizeof(Elf64_Shdr)];
	struct elf_section null;
	uint32_t name, info;
	int r;

	if (!elf->shoff || (elf->shnum && elf->shstrndx != SHN_XINDEX)) {
		*ret_n = elf->shoff ? elf->shnum : 0;
		return 0;
	}
	r = elf_file_read(elf, elf->shoff, buf, elf->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr),
			  e);
	if (r < 0)
		return r;
	to_section(elf, buf, &null, &name, &info);
	if (elf->shstrndx == SHN_XINDEX)
		elf->shstrndx = null.link;
	if (!elf->shnum && null.size > ELF_SECTIONS_MAX)
		return err_set(e, -EBADMSG,
			       "%s: %" PRIu64 " sections, more than the %d that are read",
			       elf->name, null.size, ELF_SECTIONS_MAX);
	*ret_n = elf->shnum ? elf->shnum : (uint32_t)null.size;
	return 0;
}

/* Section names are a convenience: a file with bad ones still has its sections. 0 or -ENOMEM. */
static int name_sections(struct elf_file *elf, const uint32_t *name_off)
{
	_cleanup_(freep) uint8_t *names = NULL;
	const struct elf_section *tab;
	int r;

	if (elf->shstrndx >= elf->n_secs)
		return 0;
	tab = &elf->secs[elf->shstrndx];
	if (tab->type != SHT_STRTAB || tab->size > NAMES_BYTES_MAX)
		return 0;
	r = elf_file_read_section(elf, tab, &names, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (uint32_t i = 0; i < elf->n_secs; i++)
		if (name_off[i] < tab->size)
			elf->secs[i].name = (const char *)names + name_off[i];
	elf->sec_names = (char *)TAKE_PTR(names);
	return 0;
}

static int read_sections(struct elf_file *elf, struct err *e)
{
	size_t ent = elf->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	_cleanup_(freep) uint32_t *name_off = NULL;
	_cleanup_(freep) uint8_t *buf = NULL;
	uint32_t n = 0, info;
	int r;

	r = section_count(elf, &n, e);
	if (r < 0 || n == 0)
		return r;
	/* Bounded by the file before it is bounded by memory. */
	if (elf->shoff > elf->size || n > (elf->size - elf->shoff) / ent)
		return err_set(e, -ENODATA,
			       "%s: %u section headers at offset %#" PRIx64
			       " reach past the end of the file (truncated?)",
			       elf->name, n, elf->shoff);
	buf = malloc(n * ent);
	name_off = malloc(n * sizeof(*name_off));
	elf->secs = calloc(n, sizeof(*elf->secs));
	if (!buf || !name_off || !elf->secs)
		return err_set(e, -ENOMEM, "%s: out of memory for section headers", elf->name);
	r = elf_file_read(elf, elf->shoff, buf, n * ent, e);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++)
		to_section(elf, buf + i * ent, &elf->secs[i], &name_off[i], &info);
	elf->n_secs = n;
	if (name_sections(elf, name_off) < 0)
		return err_set(e, -ENOMEM, "%s: out of memory for names of sections", elf->name);
	return 0;
}

int elf_file_sections(struct elf_file *elf, const struct elf_section **ret_secs, uint32_t *ret_n,
		      struct err *e)
{
	if (!elf->secs_read) {
		int r = read_sections(elf, e);

		if (r < 0) {
			free(elf->secs);
			elf->secs = NULL;
			elf->n_secs = 0;
			return r;
		}
		elf->secs_read = true;
	}
	*ret_secs = elf->secs;
	*ret_n = elf->n_secs;
	return 0;
}

int elf_file_find_section(struct elf_file *elf, const char *name,
			  const struct elf_section **ret_sec, struct err *e)
{
	const struct elf_section *secs;
	uint32_t n;
	int r;

	r = elf_file_sections(elf, &secs, &n, e);
	if (r < 0)
		return r;
	for (uint32_t i = 1; i < n; i++) {
		if (!strcmp(secs[i].name, name)) {
			*ret_sec = &secs[i];
			return 0;
		}
	}
	return -ENOENT;
}

int elf_file_read_section(const struct elf_file *elf, const struct elf_section *sec,
			  uint8_t **ret_bytes, struct err *e)
{
	_cleanup_(freep) uint8_t *buf = NULL;
	int r;

	if (sec->type == SHT_NOBITS || sec->type == SHT_NULL)
		return err_set(e, -ENODATA, "%s: section %s has no bytes in the file", elf->name,
			       sec->name);
	if (sec->flags & SHF_COMPRESSED)
		return err_set(e, -EOPNOTSUPP, "%s: section %s is compressed", elf->name,
			       sec->name);
	if (sec->off > elf->size || sec->size > elf->size - sec->off)
		return err_set(e, -ENODATA,
			       "%s: section %s reaches past the end of the file (truncated?)",
			       elf->name, sec->name);
	if (sec->size > ELF_SECTION_BYTES_MAX)
		return err_set(e, -EFBIG,
			       "%s: section %s has %" PRIu64
			       " bytes, more than the %d that are read",
			       elf->name, sec->name, sec->size, ELF_SECTION_BYTES_MAX);
	buf = malloc(sec->size + 1);
	if (!buf)
		return err_set(e, -ENOMEM, "%s: out of memory for section %s", elf->name,
			       sec->name);
	r = elf_file_read(elf, sec->off, buf, sec->size, e);
	if (r < 0)
		return r;
	buf[sec->size] = '\0';
	*ret_bytes = TAKE_PTR(buf);
	return 0;
}
