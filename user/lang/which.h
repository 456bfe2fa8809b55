/* Which language's runtime a file has in it, in the words that its users have for it. */
#ifndef MEMSCOPE_LANG_WHICH_H
#define MEMSCOPE_LANG_WHICH_H

#include "elf/elf_file.h"

/* "CPython", "Java", "node", "GHC", "Go", …; NULL: none that is known. Static. */
const char *lang_runtime_in(struct elf_file *elf);

#endif
