/* A library that allocates when it is loaded and frees when it is unloaded (alloc_manners). */
#include <stdlib.h>
#include <string.h>

static char *own;

__attribute__((constructor)) static void library_begins(void)
{
	own = malloc(3000);
	if (own)
		memset(own, 0x5a, 3000);
}

__attribute__((destructor)) static void library_ends(void)
{
	free(own);
}

/* A block that outlives the library: its caller frees it. NULL: its own is not what it was. */
void *library_block(size_t size)
{
	return own && own[0] == 0x5a && own[2999] == 0x5a ? calloc(1, size) : NULL;
}
