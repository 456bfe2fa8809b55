/* Which language's runtime a file has in it, in the words that its users have for it. */
#ifndef MEMSCOPE_LANG_WHICH_H
#define MEMSCOPE_LANG_WHICH_H

/* "CPython", "Java", "node", "GHC", "Go", …; NULL: none that is known. Static. A cell reads the file (image_cell.h). */
const char *lang_runtime_in(int fd, const char *name);

#endif
