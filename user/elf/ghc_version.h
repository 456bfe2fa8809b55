/* Which GHC compiled an image, of stripped ones, too. */
#ifndef MEMSCOPE_ELF_GHC_VERSION_H
#define MEMSCOPE_ELF_GHC_VERSION_H

#include "elf/elf_file.h"

/* "9.0.2": 0x090002; 0: that is none of its versions. */
uint32_t ghc_version_of(const char *text, size_t len);
/* By the compiler's name of itself in .comment, else the only text in .rodata that looks like a version of it. 0: not known. */
uint32_t ghc_version_read(struct elf_file *elf);

#endif
