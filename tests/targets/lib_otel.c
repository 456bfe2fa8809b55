/*
 * Where a tracing library has the context that a thread publishes: a thread-local word, and its address. With LARGE its block is too
 * large to be put among those that each thread has from its beginning.
 */
#ifdef LARGE
__thread char large[1 << 16];
#endif
#ifdef INITIAL
#define MODEL __attribute__((tls_model("initial-exec")))
#else
#define MODEL
#endif
__thread int before = 1;
__thread void *otel_thread_ctx_v1 MODEL;

void **otel_slot(void);

void **otel_slot(void)
{
#ifdef LARGE
	large[0] = 1;
#endif
	return before ? &otel_thread_ctx_v1 : 0;
}
