/*
 * The allocator behind us: the first call of each function looks it up (dlsym(), or as agent.c says), and from then on
 * calls go there directly. Part of alloc.c.
 */
#ifndef MEMSCOPE_PRELOAD_BEHIND_H
#define MEMSCOPE_PRELOAD_BEHIND_H

/* What dlsym() allocates before there is an allocator: never released. */
static struct {
	size_t used;
	char bytes[16384] __attribute__((aligned(64)));
} early;

static bool is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)early.bytes < sizeof(early.bytes);
}

static void *early_alloc(size_t align, size_t size)
{
	size_t room, at;
	void *p;

	if (align < 16)
		align = 16;
	if (size > sizeof(early.bytes) || align > sizeof(early.bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	room = (size + align + 15) & ~(size_t)15;
	at = __atomic_fetch_add(&early.used, room, __ATOMIC_RELAXED);
	if (at + room > sizeof(early.bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	p = (void *)(((uintptr_t)early.bytes + at + align - 1) & ~(align - 1));
	/* For good: free and realloc of it come to the slow path, and find it is none of theirs. */
	set_pin(&sampled, p);
	return p;
}

/* "512K" → bytes; what cannot be understood is the default. */
static double parse_rate(const char *s)
{
	double v = 0;
	int digits = 0;

	for (; s && *s >= '0' && *s <= '9' && digits < 15; s++, digits++)
		v = v * 10 + (*s - '0');
	if (!digits)
		return DRAW_RATE_DEFAULT;
	switch (*s) {
	case 'k':
	case 'K':
		v *= 1024;
		s++;
		break;
	case 'm':
	case 'M':
		v *= 1024 * 1024;
		s++;
		break;
	case 'g':
	case 'G':
		v *= 1024 * 1024 * 1024;
		s++;
		break;
	}
	if (*s)
		return DRAW_RATE_DEFAULT;
	return v > DRAW_RATE_MAX ? DRAW_RATE_MAX : v;
}

static void *no_such_function(void)
{
	errno = ENOSYS;
	return NULL;
}

static int no_such_memalign(void **ret_p, size_t align, size_t size)
{
	(void)ret_p;
	(void)align;
	(void)size;
	return ENOSYS;
}

static bool is_ours(const void *f)
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));

	return (const char *)f >= __ehdr_start && (const char *)f < _end;
}

/* The one that would be called if this library were not there; NULL. */
static void *find_next(const char *name)
{
	void *f;

	if (!injected)
		return dlsym(RTLD_NEXT, name);
	/* Behind a library that was loaded late is nothing: what the program is bound to. */
	f = injected(name);
	return is_ours(f) ? NULL : f;
}

static void *look_up(const char *name)
{
	void *f = find_next(name);

	return f ? f : (void *)no_such_function;
}

/* Other threads call meanwhile. */
static void hand_on_to(const struct functions *to)
{
#define HAND_ON(name) __atomic_store_n(&next.name, to->name, __ATOMIC_RELEASE);
	FUNCTIONS(HAND_ON)
#undef HAND_ON
}

/* Several threads may do this at once: they find the same. */
static SLOW void begin(void)
{
	const void *bytes = (const void *)getauxval(AT_RANDOM); /* 16 of them, anywhere */
	uint64_t random[2];
	void *f;

	if (bytes && !process_seed) {
		memcpy(random, bytes, sizeof(random));
		process_seed = draw_mix(random[0] ^ draw_mix(random[1]));
	}
	if (!injected)
		rate = parse_rate(getenv("MEMSCOPE_ALLOC_RATE"));
	self.looking_up = true;
	real.calloc = look_up("calloc");
	real.realloc = look_up("realloc");
	real.aligned_alloc = look_up("aligned_alloc");
	real.memalign = look_up("memalign");
	real.valloc = look_up("valloc");
	real.pvalloc = look_up("pvalloc");
	f = find_next("posix_memalign");
	real.posix_memalign = f ? (int (*)(void **, size_t, size_t))f : no_such_memalign;
	real.free = look_up("free");
	real.malloc = look_up("malloc");
	self.looking_up = false;
	hand_on_to(exact ? &recording : &real);
}

static void *first_malloc(size_t size)
{
	if (self.looking_up)
		return early_alloc(16, size);
	begin();
	return next.malloc(size);
}

static void *first_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (self.looking_up) /* early memory is zero, and used once */
		return early_alloc(16, __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes);
	begin();
	return next.calloc(n, size);
}

static void *early_realloc(void *p, size_t size)
{
	size_t left = p ? (size_t)(early.bytes + sizeof(early.bytes) - (char *)p) : 0;
	void *to = self.looking_up ? early_alloc(16, size) : malloc(size);

	/* Its size is not known; what is behind it may be read. */
	if (to && p)
		memcpy(to, p, size < left ? size : left);
	return to;
}

static void *first_realloc(void *p, size_t size)
{
	if (self.looking_up)
		return early_realloc(p, size);
	begin();
	return next.realloc(p, size);
}

static void *first_aligned_alloc(size_t align, size_t size)
{
	if (self.looking_up)
		return early_alloc(align, size);
	begin();
	return next.aligned_alloc(align, size);
}

static void *first_memalign(size_t align, size_t size)
{
	if (self.looking_up)
		return early_alloc(align, size);
	begin();
	return next.memalign(align, size);
}

static void *first_valloc(size_t size)
{
	begin();
	return next.valloc(size);
}

static void *first_pvalloc(size_t size)
{
	begin();
	return next.pvalloc(size);
}

static int first_posix_memalign(void **ret_p, size_t align, size_t size)
{
	begin();
	return next.posix_memalign(ret_p, align, size);
}

static void first_free(void *p)
{
	if (self.looking_up)
		return;
	begin();
	next.free(p);
}

#endif
