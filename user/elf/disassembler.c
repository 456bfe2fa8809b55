#include "elf/disassembler.h"

#include "base/library.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <Zydis/Zydis.h>
#endif

/*
 * Capstone is loaded when arm64 is read, and stays: its tables of all machines are relocated at once, which were 3.3 MiB and 380 page
 * faults of every start of memscope.
 */
#define STRING_OF(x)   #x
#define LIBRARY(major) "libcapstone.so." STRING_OF(major)
#define CAPSTONE       LIBRARY(CS_API_MAJOR)

struct capstone {
	__typeof__(&cs_open) open;
	__typeof__(&cs_option) option;
	__typeof__(&cs_malloc) new_insn;
	__typeof__(&cs_disasm_iter) read;
	__typeof__(&cs_free) free_insn;
	__typeof__(&cs_close) close;
};

struct disassembler {
	void (*read)(struct disassembler *, const uint8_t *, size_t, struct instruction *);
	struct capstone capstone;
	csh arm64;
	cs_insn *insn;
#if defined(__x86_64__)
	ZydisDecoder x86;
	ZydisFormatter formatter;
#endif
};

static void read_bad(size_t bytes, size_t len, struct instruction *i)
{
	i->size = (uint32_t)(bytes < len ? bytes : len);
	snprintf(i->text, sizeof(i->text), "(bad)");
}

/* --- x86-64 --- */

#if defined(__x86_64__)
static void read_x86(struct disassembler *dis, const uint8_t *code, size_t len,
		     struct instruction *i)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZyanU64 target;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&dis->x86, code, len, &in, ops)) ||
	    !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&dis->formatter, &in, ops,
							  in.operand_count_visible, i->text,
							  sizeof(i->text), i->vaddr, NULL))) {
		read_bad(1, len, i);
		return;
	}
	i->size = in.length;
	i->calls = in.meta.category == ZYDIS_CATEGORY_CALL;
	if ((i->calls || in.meta.category == ZYDIS_CATEGORY_COND_BR ||
	     in.meta.category == ZYDIS_CATEGORY_UNCOND_BR) &&
	    in.operand_count && ops[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    ops[0].imm.is_relative &&
	    ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&in, &ops[0], i->vaddr, &target))) {
		i->branches = true;
		i->target = target;
	}
}

static int open_x86(struct disassembler *dis, enum disassembly_syntax syntax)
{
	static const struct {
		ZydisFormatterProperty property;
		ZyanUPointer value;
	} settings[] = {
		{ ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE },
		{ ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED },
		{ ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED },
	};

	dis->read = read_x86;
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&dis->x86, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisFormatterInit(&dis->formatter, syntax == SYNTAX_INTEL
								      ? ZYDIS_FORMATTER_STYLE_INTEL
								      : ZYDIS_FORMATTER_STYLE_ATT)))
		return -EOPNOTSUPP;
	for (size_t k = 0; k < sizeof(settings) / sizeof(*settings); k++)
		ZydisFormatterSetProperty(&dis->formatter, settings[k].property, settings[k].value);
	return 0;
}
#else
static int open_x86(struct disassembler *dis, enum disassembly_syntax syntax)
{
	return -EOPNOTSUPP;
}
#endif

/* --- arm64 --- */

static bool load(struct capstone *c)
{
	void *library = library_open(CAPSTONE);

	if (!library)
		return false;
	c->open = (__typeof__(c->open))library_function(library, "cs_open");
	c->option = (__typeof__(c->option))library_function(library, "cs_option");
	c->new_insn = (__typeof__(c->new_insn))library_function(library, "cs_malloc");
	c->read = (__typeof__(c->read))library_function(library, "cs_disasm_iter");
	c->free_insn = (__typeof__(c->free_insn))library_function(library, "cs_free");
	c->close = (__typeof__(c->close))library_function(library, "cs_close");
	return c->open && c->option && c->new_insn && c->read && c->free_insn && c->close;
}

static bool is_jump(const cs_insn *insn)
{
	for (uint8_t i = 0; i < insn->detail->groups_count; i++)
		if (insn->detail->groups[i] == CS_GRP_JUMP)
			return true;
	return false;
}

static void read_arm64(struct disassembler *dis, const uint8_t *code, size_t len,
		       struct instruction *i)
{
	const uint8_t *at = code;
	uint64_t vaddr = i->vaddr;
	size_t left = len;

	if (!dis->capstone.read(dis->arm64, &at, &left, &vaddr, dis->insn)) {
		read_bad(4, len, i);
		return;
	}
	i->size = dis->insn->size;
	snprintf(i->text, sizeof(i->text), "%s%s%s", dis->insn->mnemonic,
		 dis->insn->op_str[0] ? " " : "", dis->insn->op_str);
	/* For Capstone 4 calls are jumps, too. */
	i->calls = dis->insn->id == ARM64_INS_BL || dis->insn->id == ARM64_INS_BLR;
	if (is_jump(dis->insn)) {
		const cs_arm64 *arm = &dis->insn->detail->arm64;
		/* The address is the last operand: of tbz and cbz it follows what is tested. */
		const cs_arm64_op *last = arm->op_count ? &arm->operands[arm->op_count - 1] : NULL;

		i->branches = last && last->type == ARM64_OP_IMM;
		i->target = i->branches ? (uint64_t)last->imm : 0;
	}
}

static int open_arm64(struct disassembler *dis)
{
	dis->read = read_arm64;
	if (!load(&dis->capstone))
		return -ENOENT;
	if (dis->capstone.open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &dis->arm64) != CS_ERR_OK)
		return -EOPNOTSUPP;
	dis->capstone.option(dis->arm64, CS_OPT_DETAIL, CS_OPT_ON);
	dis->insn = dis->capstone.new_insn(dis->arm64);
	return dis->insn ? 0 : -ENOMEM;
}

/* --- */

void disassembler_prepare(void)
{
	library_open(CAPSTONE);
}

int disassembler_open(uint16_t machine, enum disassembly_syntax syntax,
		      struct disassembler **ret_dis)
{
	_cleanup_(disassembler_closep) struct disassembler *dis = calloc(1, sizeof(*dis));
	int r;

	if (!dis)
		return -ENOMEM;
	r = machine == EM_X86_64    ? open_x86(dis, syntax)
	    : machine == EM_AARCH64 ? open_arm64(dis)
				    : -EOPNOTSUPP;
	if (r == 0)
		*ret_dis = TAKE_PTR(dis);
	return r;
}

void disassembler_close(struct disassembler *dis)
{
	if (!dis)
		return;
	if (dis->insn)
		dis->capstone.free_insn(dis->insn, 1);
	if (dis->arm64)
		dis->capstone.close(&dis->arm64);
	free(dis);
}

void disassembler_read(struct disassembler *dis, const uint8_t *code, size_t len, uint64_t vaddr,
		       struct instruction *ret)
{
	*ret = (struct instruction){ .vaddr = vaddr };
	dis->read(dis, code, len, ret);
}
