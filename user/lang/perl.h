/*
 * Perl: what its files share. Internal to the room.
 *
 * Layouts are fixed within an even minor version (perlpolicy), and in no other way promised. Nothing in the process says
 * them; there is a row each, compiled from the headers of that version with and without threads.
 */
#ifndef MEMSCOPE_LANG_PERL_H
#define MEMSCOPE_LANG_PERL_H

#include "lang/image.h"

/* Where docatch() is: the one function that the two at these vaddrs both call or jump to, and that calls the loop. false:
 * not known. */
bool perl_catch_find(struct elf_file *elf, uint64_t entertry, uint64_t entereval, struct lang_range *ret_range);
/* The vaddr that a pointer in the image's data has once it is relocated; 0: not known. */
uint64_t perl_pointer_at(struct elf_file *elf, uint64_t vaddr);
/* perl_run(), if it is what calls the loop: then S_run_body() is a part of it. */
bool perl_main_find(struct elf_file *elf, const struct elf_export *run, struct lang_range *ret_range);

#endif
