/*
 * Prints the stacks of CPython's threads in a process that waits, found as memscope finds them but walked from
 * here: one line of JSON a thread, leaf first.
 *
 *   python_stacks PID       {"runtime": …}, then {"tid": 1, "frames": [["function", "file", line, first line], …]}
 *   python_stacks -t PID    {"seen": …}, then of each task of asyncio that waits {"task": address, "frames": […]}, root first
 *   python_stacks -i FILE…  what lang_image_read() costs and finds in each file
 *
 * A thread's registers are read with ptrace, to have the pointer that the kernel's walk has from the task.
 */
#include "abi.h"
#include "elf/elf_file.h"
#include "lang/lang.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES_MAX = 20000, IMAGES_MAX = 512 };

static uint64_t reads;

static bool read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)addr, len };

	reads++;
	return process_vm_readv(*(pid_t *)ctx, &to, 1, &from, 1, 0) == (ssize_t)len;
}

static struct lang_memory mem = { .read = read_process };

static void print_text(const char *s)
{
	putchar('"');
	for (; *s; s++)
		printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
	putchar('"');
}

static struct lang_image *image_of(const char *path, struct elf_file **ret_elf)
{
	struct lang_image *image = NULL;
	struct err e = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	*ret_elf = NULL;
	if (fd < 0)
		return NULL;
	if (elf_file_open(fd, path, ret_elf, &e) == 0) {
		r = lang_image_read(*ret_elf, &image, &e);
		if (r < 0 && r != -ENOENT)
			fprintf(stderr, "%s\n", e.msg);
	}
	return image;
}

static int print_images(char **paths)
{
	for (; *paths; paths++) {
		struct timespec a, b;
		struct elf_file *elf;
		struct lang_image *image;

		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
		image = image_of(*paths, &elf);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
		printf("%8.1f us %d %d %s\n",
		       (double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3,
		       image ? (int)lang_image_lang(image) : 0, image && lang_image_is_libc(image),
		       *paths);
	}
	return 0;
}

/* The images that a process has mapped for execution. */
static void find_mapped(pid_t pid, struct lang_mapped *runtime, struct lang_mapped *libc)
{
	char line[4096], path[4096], last[4096] = "";
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		const struct elf_segment *segs;
		uint64_t start, end, off, vaddr;
		struct lang_image *image;
		struct elf_file *elf;
		char prot[8];
		uint32_t n;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]",
			   &start, &end, prot, &off, path) != 5 ||
		    prot[2] != 'x' || path[0] != '/' || strcmp(path, last) == 0)
			continue;
		strcpy(last, path);
		image = image_of(path, &elf);
		if (!image)
			continue;
		segs = elf_file_segments(elf, &n);
		if (!elf_segments_off_to_vaddr(segs, n, off, &vaddr))
			continue;
		if (lang_image_lang(image) == MS_LANG_PYTHON)
			*runtime = (struct lang_mapped){ image, start - vaddr };
		if (lang_image_is_libc(image))
			*libc = (struct lang_mapped){ image, start - vaddr };
	}
	if (maps)
		fclose(maps);
}

static bool thread_pointer(pid_t tid, uint64_t *ret_tp)
{
	bool ok = false;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return false;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && waitpid(tid, NULL, __WALL) == tid) {
#if defined(__x86_64__)
		struct user_regs_struct regs;

		ok = ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0;
		*ret_tp = regs.fs_base;
#else
		struct iovec one = { ret_tp, sizeof(*ret_tp) };

		ok = ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &one) == 0;
#endif
	}
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
	return ok;
}

static uint64_t word(uint64_t at)
{
	uint64_t w = 0;

	if (!mem.read(mem.ctx, at, &w, sizeof(w)))
		exit(3);
	return w;
}

static bool find_state(const struct ms_lang_row *row, uint64_t tp, uint64_t *ret_state)
{
	uint64_t at = tp + row->off;

	if (row->thread == MS_THREAD_TABLE)
		at = word(tp + row->module) + row->off;
	else if (row->thread != MS_THREAD_TLS)
		return false;
	*ret_state = word(at);
	return *ret_state != 0;
}

static void print_words(const struct lang_runtime *rt, const uint64_t words[2])
{
	struct lang_frame frame;
	enum lang_decoded r;

	reads = 0;
	r = lang_decode(rt, &mem, words, &frame);
	if (r != LANG_DECODED) {
		printf("[\"<%s>\", \"\", 0, 0]", r == LANG_GONE ? "gone" : "damaged");
		return;
	}
	printf("[");
	print_text(frame.function);
	printf(", ");
	print_text(frame.file);
	printf(", %u, %u, %s, %" PRIu64 "]", frame.line, frame.first_line,
	       frame.cut ? "true" : "false", reads);
}

static void print_task(void *ctx, const struct python_task *task)
{
	printf("{\"task\": %" PRIu64 ", \"of_task\": %s, \"frames\": [", task->at,
	       task->of_task ? "true" : "false");
	for (uint32_t i = 0; i < task->n; i++) {
		printf("%s", i ? ", " : "");
		print_words(ctx, task->words[i]);
	}
	printf("]}\n");
}

static int print_tasks(struct lang_runtime *rt)
{
	static struct python_tasks tasks;
	struct python_task_fn fn = { .task = print_task, .ctx = rt, .max = 100000 };
	int r;

	reads = 0;
	r = python_tasks(rt, &mem, &tasks, &fn);
	printf("{\"seen\": %u, \"ready\": %u, \"changed\": %u, \"result\": %d}\n", fn.seen,
	       fn.ready, fn.changed, r);
	return 0;
}

/* A frame, as bpf/walk/python.h records it. */
static void print_frame(const struct lang_runtime *rt, uint64_t at, uint64_t code)
{
	const struct ms_python *p = &rt->row.python;
	uint64_t instr = p->instr_kind == MS_PYTHON_LASTI ? (uint32_t)word(at + p->frame_instr)
							  : word(at + p->frame_instr) - code;
	uint64_t words[2] = { code | 2ULL << MS_FRAME_TAG_SHIFT,
			      3ULL << MS_FRAME_TAG_SHIFT |
				      (uint64_t)MS_LANG_PYTHON << MS_LANG_SHIFT |
				      ms_python_cookie((uint32_t)word(code + p->code_first_line),
						       word(code + p->code_name),
						       word(code + p->code_linetable))
					      << 32 |
				      (uint32_t)instr };

	print_words(rt, words);
}

static void print_thread(const struct lang_runtime *rt, pid_t tid)
{
	const struct ms_python *p = &rt->row.python;
	uint64_t tp, state, at;
	const char *comma = "";

	if (!thread_pointer(tid, &tp) || !find_state(&rt->row, tp, &state))
		return;
	at = word(state + p->tstate_frame);
	if (p->cframe_frame != 0xffff)
		at = word(at + p->cframe_frame);
	printf("{\"tid\": %d, \"frames\": [", tid);
	for (int n = 0; at && n < FRAMES_MAX; n++) {
		bool none = p->boundary_kind == MS_PYTHON_OWNER &&
			    (uint8_t)word(at + p->frame_boundary) >= p->boundary;

		if (!none) {
			printf("%s", comma);
			print_frame(rt, at, word(at + p->frame_code) & ~(uint64_t)p->code_mask);
			comma = ",\n ";
		}
		at = word(at + p->frame_previous);
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct lang_mapped runtime = { 0 }, libc = { 0 };
	struct lang_runtime rt;
	struct err e = { 0 };
	struct dirent *d;
	bool of_tasks;
	char path[64];
	pid_t pid;
	DIR *dir;
	int r;

	if (argc > 2 && strcmp(argv[1], "-i") == 0)
		return print_images(argv + 2);
	of_tasks = argc > 2 && strcmp(argv[1], "-t") == 0;
	pid = argc > 1 ? atoi(argv[1 + of_tasks]) : 0;
	mem.ctx = &pid;
	find_mapped(pid, &runtime, &libc);
	if (!runtime.image) {
		fprintf(stderr, "no runtime in process %d\n", pid);
		return 1;
	}
	r = lang_runtime_find(&runtime, &libc, &mem, &rt, &e);
	if (r < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return r == -EAGAIN ? 4 : 1;
	}
	if (of_tasks)
		return print_tasks(&rt);
	printf("{\"runtime\": \"%s\", \"untested\": %s, \"thread\": %d, \"type\": %s, \"ranges\": [",
	       rt.name, rt.untested ? "true" : "false", rt.row.thread,
	       rt.code_type ? "true" : "false");
	for (int i = 0; i < rt.row.n_ranges; i++)
		printf("%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "",
		       (uint64_t)(rt.row.range[i].start - runtime.bias),
		       (uint64_t)(rt.row.range[i].end - rt.row.range[i].start));
	printf("]}\n");
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (atoi(d->d_name))
			print_thread(&rt, atoi(d->d_name));
	return 0;
}
