/* Types in debug info, as readers of it go through them (in the cell that dwarf.h has). */
#ifndef MEMSCOPE_ELF_DWARF_TYPE_H
#define MEMSCOPE_ELF_DWARF_TYPE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/* The type of a variable, member or pointer. false: it has none, which is void. */
bool dwarf_type_of(Dwarf_Die *die, Dwarf_Die *ret_type);
/* Takes qualifiers away; typedefs, too, if `all`. false: it is void, or too many are nested. */
bool dwarf_type_strip(Dwarf_Die *die, bool all);
/* The address that a location is in all of the program: as a number, or by its place in .debug_addr (DWARF 5). false: it is none. */
bool dwarf_type_address(Dwarf_Attribute *location, const Dwarf_Op *op, uint64_t *ret_vaddr);

#endif
