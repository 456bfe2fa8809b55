#include "symbolize/resolver.h"

const struct resolver *const resolvers[] = {
	&sym_kernel,   /* [kernel]: /proc/kallsyms, modules and BPF programs included */
	&sym_vdso,     /* [vdso]: the one in our own memory                           */
	&sym_dwarf,    /* files: inlined calls, file and line               */
	&sym_elf,      /* files: symbol tables, also those put aside; .gnu_debugdata */
	&sym_plt,      /* files: stubs that call other libraries: name@plt            */
	&sym_go,       /* files: Go's own table of functions, stripped or not         */
	&sym_fde,      /* files: functions without names, by unwind information    */
	&sym_jitdump,  /* generated code, with lines                             */
	&sym_perf_map, /* generated code: /tmp/perf-PID.map                      */
	NULL,
};
