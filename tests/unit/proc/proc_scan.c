#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/proc_table.h"

/* Processes that exist: this one and children of it. */
struct fixture {
	struct dict *d;
	struct proc_table *t;
	char dir[64];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->d = dict_new();
	f->t = proc_table_new(f->d);
	snprintf(f->dir, sizeof(f->dir), "/tmp/memscope-scan.XXXXXX");
	*state = f;
	return mkdtemp(f->dir) ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char cmd[96];

	proc_table_free(f->t);
	dict_free(f->d);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", f->dir);
	if (system(cmd) != 0)
		return -1;
	free(f);
	return 0;
}

static struct proc *scan(struct fixture *f, pid_t pid)
{
	assert_int_equal(proc_table_scan(f->t, pid, 0, now_ns(), NULL), 0);
	return proc_table_live(f->t, pid);
}

static const struct module *resolve(struct fixture *f, struct proc *p, const void *addr,
				    module_id *ret_module, uint64_t *ret_vaddr)
{
	proc_resolve(f->t, p, proc_generation(p), (uintptr_t)addr, ret_module, ret_vaddr);
	return dict_module_get(f->d, *ret_module);
}

static void our_own_functions_resolve_to_their_vaddrs(void **state)
{
	struct fixture *f = *state;
	struct proc *p = scan(f, getpid());
	const struct module *mod;
	uint64_t vaddr;
	module_id m;
	Dl_info info;
	struct link_map *lm;

	mod = resolve(f, p, (void *)our_own_functions_resolve_to_their_vaddrs, &m, &vaddr);
	assert_int_equal(mod->kind, MODULE_ELF);
	assert_string_equal(dict_str(f->d, mod->path), proc_exe(p));
	assert_true(dladdr1((void *)our_own_functions_resolve_to_their_vaddrs, &info, (void **)&lm,
			    RTLD_DL_LINKMAP));
	assert_int_equal(vaddr, (uintptr_t)our_own_functions_resolve_to_their_vaddrs - lm->l_addr);
	assert_true(vaddr >= mod->start && vaddr < mod->limit);

	mod = resolve(f, p, dlsym(RTLD_NEXT, "qsort"), &m, &vaddr);
	if (!strstr(dict_str(f->d, mod->path), "libc")) {
		print_message("another library comes before the C library\n");
		skip();
	}
	assert_true(dladdr1(dlsym(RTLD_NEXT, "qsort"), &info, (void **)&lm, RTLD_DL_LINKMAP));
	assert_int_equal(vaddr, (uintptr_t)dlsym(RTLD_NEXT, "qsort") - lm->l_addr);
}

static int has_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct fixture *f = ctx;
	struct proc_mapping maps[256];
	uint32_t n = proc_mappings(f->t, proc_table_live(f->t, getpid()), maps, 256);

	assert_true(n > 2 && n < 256);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t at = info->dlpi_addr + ph->p_vaddr, k = 0;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !ph->p_memsz)
			continue;
		while (k < n && !(maps[k].addr <= at && at < maps[k].end))
			k++;
		assert_true(k < n);
		assert_int_equal(maps[k].bias, info->dlpi_addr);
		assert_true(maps[k].readable || maps[k].kind == MODULE_VDSO);
	}
	(void)size;
	return 0;
}

static void mappings_have_the_bias_that_the_loader_gave_them(void **state)
{
	struct fixture *f = *state;
	struct proc_mapping one;

	scan(f, getpid());
	dl_iterate_phdr(has_bias, f);
	assert_true(proc_mappings(f->t, proc_table_live(f->t, getpid()), &one, 1) > 2);
}

/* As lld lays them out: file offset 0x1000 is in the first segment, and the page of it is mapped
 * for the second one, whose vaddrs are 0x1000 further up. */
static void a_page_that_two_segments_share_does_not_lend_the_others_bias(void **state)
{
	struct fixture *f = *state;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 };
	Elf64_Phdr ph[2] = { { PT_LOAD, PF_R, 0, 0, 0, 0x1234, 0x1234, 0x1000 },
			     { PT_LOAD, PF_R | PF_X, 0x1234, 0x2234, 0, 0x2000, 0x2000, 0x1000 } };
	struct proc_mapping maps[256];
	struct proc *p = scan(f, getpid());
	char path[96];
	struct stat st;
	uint32_t n, i = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/shared", f->dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, &eh, sizeof(eh)), sizeof(eh));
	assert_int_equal(write(fd, ph, sizeof(ph)), sizeof(ph));
	assert_int_equal(ftruncate(fd, 0x4000), 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	proc_table_mmap(f->t, now_ns(), getpid(),
			&(struct proc_mmap){ .addr = 0x100000,
					     .len = 0x3000,
					     .file_off = 0x1000,
					     .dev = st.st_dev,
					     .ino = st.st_ino,
					     .path = path });
	n = proc_mappings(f->t, p, maps, 256);
	while (i < n && maps[i].addr != 0x100000)
		i++;
	assert_true(i < n && maps[i].readable);
	assert_int_equal(maps[i].bias, 0x100000 + 0x234 - 0x2234);
}

static void the_vdso_resolves_to_offsets_into_it(void **state)
{
	struct fixture *f = *state;
	struct proc *p = scan(f, getpid());
	const char *vdso = (const char *)getauxval(AT_SYSINFO_EHDR);
	const struct module *mod;
	uint64_t vaddr;
	module_id m;

	if (!vdso)
		skip(); /* a kernel without one */
	mod = resolve(f, p, vdso + 0x345, &m, &vaddr);
	assert_int_equal(mod->kind, MODULE_VDSO);
	assert_int_equal(vaddr, 0x345);
}

static void a_module_is_opened_and_is_the_file_that_was_mapped(void **state)
{
	struct fixture *f = *state;
	struct proc *p = scan(f, getpid());
	const struct module *mod;
	struct stat a, b;
	uint64_t vaddr;
	module_id m;
	int fd;

	mod = resolve(f, p, (void *)scan, &m, &vaddr);
	fd = proc_table_open_module(f->t, m, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat("/proc/self/exe", &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(mod->ino, b.st_ino);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static pthread_barrier_t named;

static void *named_thread(void *arg)
{
	prctl(PR_SET_NAME, "a-worker");
	*(pid_t *)arg = gettid();
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&named);
	return NULL;
}

static void threads_that_were_there_have_their_names(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;
	struct proc *p;
	pid_t tid;

	pthread_barrier_init(&named, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, named_thread, &tid), 0);
	pthread_barrier_wait(&named);
	p = scan(f, getpid());
	assert_string_equal(proc_thread_comm(p, tid), "a-worker");
	assert_null(proc_thread_comm(p, getpid()));
	/* Two threads: the process lives until both have ended. */
	proc_table_exit(f->t, now_ns(), getpid(), tid);
	assert_false(proc_exited(p));
	proc_table_exit(f->t, now_ns(), getpid(), getpid());
	assert_true(proc_exited(p));
	pthread_barrier_wait(&named);
	pthread_join(thread, NULL);
}

static void a_process_that_is_not_there_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };

	assert_int_equal(proc_table_scan(f->t, 5000000, 0, now_ns(), &e), -ESRCH);
	assert_string_equal(e.msg, "there is no process 5000000");
	assert_null(proc_table_live(f->t, 5000000));
}

static void events_older_than_the_scan_are_ignored(void **state)
{
	struct fixture *f = *state;
	uint64_t before = now_ns();
	struct proc *p = scan(f, getpid());
	char comm[16];

	snprintf(comm, sizeof(comm), "%s", proc_comm(p));
	proc_table_comm(f->t, before, getpid(), getpid(), "too-late", true);
	proc_table_comm(f->t, before, getpid(), getpid(), "too-late", false);
	proc_table_exit(f->t, before, getpid(), getpid());
	proc_table_mmap(f->t, before, getpid(),
			&(struct proc_mmap){ .addr = (uintptr_t)scan & ~0xfffull,
					     .len = 0x1000,
					     .path = "/too/late" });
	assert_ptr_equal(proc_table_live(f->t, getpid()), p);
	assert_string_equal(proc_comm(p), comm);
	assert_int_equal(proc_generation(p), 0);
	/* A fork of it that was still on its way tells who its parent is. */
	scan(f, getppid());
	proc_table_fork(f->t, before, getpid(), getppid(), getpid());
	assert_ptr_equal(proc_table_live(f->t, getpid()), p);
	if (getppid() != 1)
		assert_int_equal(proc_pid(proc_parent(p)), getppid());
}

static void a_scan_of_a_known_process_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct proc *p = scan(f, getpid());

	proc_table_comm(f->t, now_ns(), getpid(), getpid(), "renamed", false);
	assert_ptr_equal(scan(f, getpid()), p);
	assert_string_equal(proc_comm(p), "renamed");
}

static void a_scanned_process_takes_the_first_exec_id_it_is_named_by(void **state)
{
	struct fixture *f = *state;
	struct proc *p = scan(f, getpid());
	struct proc_id id = { (uint32_t)getpid(), 12, 5 };

	assert_ptr_equal(proc_table_find(f->t, &id), p);
	id.exec_id = 13;
	assert_null(proc_table_find(f->t, &id));
	id.exec_id = 12;
	assert_ptr_equal(proc_table_find(f->t, &id), p);
}

static void a_scan_with_an_exec_id_believes_it(void **state)
{
	struct fixture *f = *state;
	struct proc_id id = { (uint32_t)getpid(), 12, 5 };

	assert_int_equal(proc_table_scan(f->t, getpid(), 11, now_ns(), NULL), 0);
	assert_null(proc_table_find(f->t, &id));
	id.exec_id = 11;
	assert_non_null(proc_table_find(f->t, &id));
}

static pid_t child_that_waits(void (*begin)(void *), void *arg)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (begin)
			begin(arg);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_second_scan_teaches_an_exec_id_that_a_later_exec_does_not_move(void **state)
{
	struct fixture *f = *state;
	struct proc_id id = { (uint32_t)getpid(), 7, 1 };
	struct proc *p = scan(f, getpid());

	assert_int_equal(proc_table_scan(f->t, getpid(), 7, now_ns(), NULL), 0);
	proc_table_comm(f->t, now_ns(), getpid(), getpid(), "other", true);
	assert_ptr_equal(proc_table_find(f->t, &id), p);
	id.exec_id = 8;
	assert_ptr_equal(proc_table_find(f->t, &id), proc_table_live(f->t, getpid()));
	assert_ptr_not_equal(proc_table_live(f->t, getpid()), p);
}

static void a_scan_notices_that_the_pid_belongs_to_another_process_by_now(void **state)
{
	struct fixture *f = *state;
	struct proc *old, *now;
	pid_t pid;

	/* As if a process of that pid had begun with an exec long ago, and its exit was lost. */
	pid = child_that_waits(NULL, NULL);
	proc_table_comm(f->t, 1000, pid, pid, "old", true);
	old = proc_table_live(f->t, pid);
	now = scan(f, pid);
	assert_ptr_not_equal(old, now);
	assert_true(proc_exited(old));
	assert_string_not_equal(proc_comm(now), "old");
	reap(pid);
}

/* A copy of ourselves, mapped executable; what a dlopen of a library looks like. */
struct copy {
	char path[128];
	void *at;
	size_t len;
};

static void make_copy(struct fixture *f, struct copy *c)
{
	_cleanup_(closep) int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out = -1;
	char buf[4096];
	ssize_t n;

	snprintf(c->path, sizeof(c->path), "%s/library.so", f->dir);
	out = open(c->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0) {
		assert_int_equal(write(out, buf, (size_t)n), n);
		c->len += (size_t)n;
	}
}

static void map_copy(void *arg)
{
	struct copy *c = arg;
	int fd = open(c->path, O_RDONLY | O_CLOEXEC);

	c->at = mmap(NULL, c->len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
}

/* Where map_copy() put it, in another process. */
static uint64_t find_map(pid_t pid, const char *path)
{
	char name[32], line[4400];
	_cleanup_(fclosep) FILE *maps = NULL;
	unsigned long start;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	maps = fopen(name, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, path) && sscanf(line, "%lx-", &start) == 1)
			return start;
	return 0;
}

static int open_copy(struct fixture *f, struct proc *p, uint64_t addr, struct err *e)
{
	uint64_t vaddr;
	module_id m;

	proc_resolve(f->t, p, 0, addr, &m, &vaddr);
	return proc_table_open_module(f->t, m, e);
}

static int cannot_use_map_files(pid_t pid)
{
	char name[64];
	_cleanup_(closep) int fd = -1;

	snprintf(name, sizeof(name), "/proc/%d/map_files", (int)pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd < 0 || geteuid() != 0;
}

static void a_deleted_file_is_opened_while_its_process_lives_and_kept(void **state)
{
	struct fixture *f = *state;
	struct copy c = { 0 };
	struct proc *p;
	uint64_t addr;
	pid_t pid;
	int fd;

	make_copy(f, &c);
	pid = child_that_waits(map_copy, &c);
	if (cannot_use_map_files(pid)) {
		reap(pid);
		skip(); /* /proc/PID/map_files needs CAP_SYS_ADMIN */
	}
	assert_int_equal(unlink(c.path), 0);
	addr = find_map(pid, c.path);
	p = scan(f, pid);
	fd = open_copy(f, p, addr, NULL);
	assert_true(fd >= 0);
	close(fd);
	reap(pid);
	/* The first resolve kept it open. */
	fd = open_copy(f, p, addr, NULL);
	assert_true(fd >= 0);
	close(fd);
}

/* The module of a mapped path without resolving an address in it, which would keep the file
 * open. */
static module_id module_of(struct fixture *f, struct proc *p, const char *path)
{
	struct proc_image im[64];
	uint32_t n = proc_images(f->t, p, im, 64);

	for (uint32_t i = 0; i < n && i < 64; i++)
		if (!strcmp(dict_str(f->d, dict_module_get(f->d, im[i].module)->path), path))
			return im[i].module;
	fail_msg("%s is not mapped", path);
	return (module_id){ 0 };
}

static void a_file_that_was_replaced_is_refused(void **state)
{
	struct fixture *f = *state;
	struct copy c = { 0 };
	struct err e = { 0 };
	char old[160];
	module_id m;
	pid_t pid;
	int fd;

	make_copy(f, &c);
	pid = child_that_waits(map_copy, &c);
	m = module_of(f, scan(f, pid), c.path);
	reap(pid);
	snprintf(old, sizeof(old), "%s.old", c.path);
	assert_int_equal(rename(c.path, old), 0);
	assert_int_equal(proc_table_open_module(f->t, m, &e), -ENOENT);

	make_copy(f, &c);
	assert_int_equal(proc_table_open_module(f->t, m, &e), -ESTALE);
	assert_non_null(strstr(e.msg, "no longer the file that was mapped"));

	assert_int_equal(rename(old, c.path), 0);
	fd = proc_table_open_module(f->t, m, &e);
	assert_true(fd >= 0);
	close(fd);
}

static void what_took_the_place_of_a_file_is_not_even_opened(void **state)
{
	struct fixture *f = *state;
	struct copy c = { 0 };
	module_id m;
	pid_t pid;

	make_copy(f, &c);
	pid = child_that_waits(map_copy, &c);
	m = module_of(f, scan(f, pid), c.path);
	reap(pid);
	unlink(c.path);
	assert_int_equal(mkfifo(c.path, 0600), 0);
	/* Opening a FIFO to read would wait for a writer. */
	assert_int_equal(proc_table_open_module(f->t, m, NULL), -EINVAL);
	unlink(c.path);
	assert_int_equal(mkdir(c.path, 0700), 0);
	assert_int_equal(proc_table_open_module(f->t, m, NULL), -EINVAL);
}

/* Moves into a mount namespace whose root is a tmpfs with nothing but the copy. */
static void enter_container(void *arg)
{
	struct copy *c = arg;
	char *dir = strdup(c->path), *buf = malloc(c->len);
	int in = open(c->path, O_RDONLY | O_CLOEXEC), out;

	*strrchr(dir, '/') = '\0';
	if (read(in, buf, c->len) != (ssize_t)c->len || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, NULL) < 0 || chdir(dir) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		_exit(1);
	out = open("/library.so", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (write(out, buf, c->len) != (ssize_t)c->len)
		_exit(1);
	close(out);
	strcpy(c->path, "/library.so");
	map_copy(c);
}

static void a_path_in_a_container_is_opened_after_its_processes_have_gone(void **state)
{
	struct fixture *f = *state;
	struct copy c = { 0 };
	struct stat st;
	module_id m;
	pid_t pid;
	int fd;

	if (geteuid() != 0)
		skip(); /* mount namespaces need CAP_SYS_ADMIN */
	make_copy(f, &c);
	pid = child_that_waits(enter_container, &c);
	m = module_of(f, scan(f, pid), "/library.so");
	reap(pid);
	assert_int_equal(access("/library.so", F_OK), -1);
	fd = proc_table_open_module(f->t, m, NULL);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, c.len);
	close(fd);
}

static void a_file_on_overlayfs_is_opened(void **state)
{
	struct fixture *f = *state;
	struct copy c = { 0 };
	char opts[512], sub[128];
	module_id m;
	pid_t pid;
	int fd;

	if (geteuid() != 0)
		skip(); /* mounting needs CAP_SYS_ADMIN */
	make_copy(f, &c);
	for (const char *const *name = (const char *const[]){ "up", "work", "all", NULL }; *name;
	     name++) {
		snprintf(sub, sizeof(sub), "%s/%s", f->dir, *name);
		assert_int_equal(mkdir(sub, 0700), 0);
	}
	snprintf(opts, sizeof(opts), "lowerdir=%s,upperdir=%s/up,workdir=%s/work", "/tmp", f->dir,
		 f->dir);
	if (mount("overlay", sub, "overlay", 0, opts) < 0)
		skip(); /* no overlayfs here */
	snprintf(c.path, sizeof(c.path), "%s/all/%s/library.so", f->dir, strrchr(f->dir, '/') + 1);
	pid = child_that_waits(map_copy, &c);
	m = module_of(f, scan(f, pid), c.path);
	fd = proc_table_open_module(f->t, m, NULL);
	assert_true(fd >= 0);
	close(fd);
	reap(pid);
	fd = proc_table_open_module(f->t, m, NULL);
	assert_true(fd >= 0);
	close(fd);
	proc_table_free(f->t);
	f->t = NULL;
	assert_int_equal(umount(sub), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(our_own_functions_resolve_to_their_vaddrs),
		TEST(mappings_have_the_bias_that_the_loader_gave_them),
		TEST(a_page_that_two_segments_share_does_not_lend_the_others_bias),
		TEST(the_vdso_resolves_to_offsets_into_it),
		TEST(a_module_is_opened_and_is_the_file_that_was_mapped),
		TEST(threads_that_were_there_have_their_names),
		TEST(a_process_that_is_not_there_is_an_error),
		TEST(events_older_than_the_scan_are_ignored),
		TEST(a_scan_of_a_known_process_changes_nothing),
		TEST(a_scanned_process_takes_the_first_exec_id_it_is_named_by),
		TEST(a_scan_with_an_exec_id_believes_it),
		TEST(a_second_scan_teaches_an_exec_id_that_a_later_exec_does_not_move),
		TEST(a_scan_notices_that_the_pid_belongs_to_another_process_by_now),
		TEST(a_deleted_file_is_opened_while_its_process_lives_and_kept),
		TEST(a_file_that_was_replaced_is_refused),
		TEST(what_took_the_place_of_a_file_is_not_even_opened),
		TEST(a_file_on_overlayfs_is_opened),
		TEST(a_path_in_a_container_is_opened_after_its_processes_have_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
