/* What `memscope --version` and written files say. */
#ifndef MEMSCOPE_BASE_VERSION_H
#define MEMSCOPE_BASE_VERSION_H

#define MEMSCOPE_VERSION "1.0.0"

#endif
