#include "elf/dwarf_type.h"

#include <dwarf.h>

enum { NESTED_MAX = 16 }; /* typedefs and qualifiers of a type */

bool dwarf_type_of(Dwarf_Die *die, Dwarf_Die *ret_type)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, ret_type);
}

static bool is_qualifier(int tag)
{
	return tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

bool dwarf_type_strip(Dwarf_Die *die, bool all)
{
	for (int i = 0; i < NESTED_MAX; i++) {
		int tag = dwarf_tag(die);

		if (!is_qualifier(tag) && !(all && tag == DW_TAG_typedef))
			return true;
		if (!dwarf_type_of(die, die))
			return false;
	}
	return false;
}

bool dwarf_type_address(Dwarf_Attribute *location, const Dwarf_Op *op, uint64_t *ret_vaddr)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr;

	*ret_vaddr = op->number;
	if (op->atom == DW_OP_addr)
		return true;
	if ((op->atom != DW_OP_addrx && op->atom != DW_OP_GNU_addr_index) ||
	    dwarf_getlocation_attr(location, op, &attr) < 0 || dwarf_formaddr(&attr, &addr) < 0)
		return false;
	*ret_vaddr = addr;
	return true;
}
