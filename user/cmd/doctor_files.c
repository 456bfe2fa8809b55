#include "cmd/doctor_files.h"

#include "base/file_cell.h"
#include "base/put.h"
#include "collect/probes/alloc_probes.h"
#include "elf/cfi.h"
#include "elf/elf_file.h"
#include "elf/elf_syms.h"

#include <errno.h>

enum { ALLOCATION_FUNCTIONS, FRAME_POINTERS };
enum { ANSWER_BYTES = 2 * sizeof(uint32_t), SECONDS_MAX = 20, CPU_S = 15 };

/* --- in the cell: which:1 in, two numbers:4 out --- */

struct counting {
	uint8_t fp;
	bool found;
};

static int on_row(void *arg, uint64_t start, uint64_t end, const struct cfi_rules *rules)
{
	struct counting *c = arg;

	c->found |= rules->cfa_kind == CFI_CFA_REG && rules->cfa_reg == c->fp;
	return 0;
}

static int count_frame_pointers(struct elf_file *elf, struct fp_count *ret)
{
	_cleanup_(cfi_freep) struct cfi *cfi = NULL;
	struct counting c = { .fp = cfi_frame_pointer(elf_file_machine(elf)) };
	int r = cfi_open(elf, CFI_EH_FRAME | CFI_DEBUG_FRAME, &cfi, NULL);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < cfi_n_fdes(cfi); i++) {
		struct cfi_fde fde = cfi_fde_at(cfi, i);

		if (fde.end - fde.start < FP_SIZE_MIN)
			continue;
		c.found = false;
		cfi_rows(cfi, i, on_row, &c);
		ret->functions++;
		ret->with += c.found;
	}
	return 0;
}

static int count_functions(struct elf_file *elf, struct fp_count *ret)
{
	_cleanup_(elf_syms_freep) struct elf_syms *syms = NULL;
	int r = elf_syms_load(elf, &syms, NULL);

	if (r == 0)
		ret->functions = alloc_probes_functions(syms);
	return r;
}

static int read_file(void *ctx, const struct file_in_cell *f, struct strbuf *answer)
{
	_cleanup_(elf_file_closep) struct elf_file *elf = NULL;
	struct bytes question = f->question;
	struct fp_count count = { 0 };
	uint8_t which;

	(void)ctx;
	if (bytes_u8(&question, &which) < 0)
		return -EBADMSG;
	if (elf_file_open(f->fd, f->name, &elf, NULL) == 0 &&
	    (which == FRAME_POINTERS ? count_frame_pointers(elf, &count)
				     : count_functions(elf, &count)) < 0)
		count = (struct fp_count){ 0 };
	put_u32(answer, count.functions);
	put_u32(answer, count.with);
	return 0;
}

static void work(const struct cell_given *given)
{
	file_cell_work(given, read_file, NULL);
}

static const struct cell_kind kind = {
	.name = "doctor",
	.work = work,
	.data_bytes = 1 << 30,
	.cpu_s = CPU_S,
	.files = 8,
};
CELL_KIND(kind);

/* --- who asks --- */

static bool ask(int fd, const char *name, uint8_t which, struct fp_count *ret)
{
	static struct cell_patience patience;
	static const struct file_cell c = { .kind = &kind,
					    .what = "its functions",
					    .answer_max = ANSWER_BYTES,
					    .seconds = SECONDS_MAX,
					    .patience = &patience };
	_cleanup_(talk_fini) struct talk t = { .fds = { -1, -1, -1 } };
	_cleanup_(strbuf_free) struct strbuf q = { 0 };
	struct bytes b;

	put_u8(&q, which);
	if (file_cell_ask(&c, fd, name, &q, &t, NULL) < 0)
		return false;
	b = talk_bytes(&t);
	return bytes_u32(&b, &ret->functions) == 0 && bytes_u32(&b, &ret->with) == 0 &&
	       ret->with <= ret->functions;
}

bool doctor_allocation_functions(int fd, const char *name, uint32_t *ret)
{
	struct fp_count count;
	bool is_known = ask(fd, name, ALLOCATION_FUNCTIONS, &count);

	*ret = is_known ? count.functions : 0;
	return is_known;
}

bool doctor_frame_pointers(int fd, const char *name, struct fp_count *ret)
{
	return ask(fd, name, FRAME_POINTERS, ret) && ret->functions > 0;
}
