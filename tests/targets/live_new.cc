// live_truth, with what it allocates from operator new.
#include <new>

#include "target.h"

#define malloc(n) ::operator new(n)
#define free(p) ::operator delete(p)
#include "live_truth.c"
