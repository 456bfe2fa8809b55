#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyse/wait_role.h"
#include "model/dict.h"

/* A stack as text, root first: "loop;wait". A name that begins with ~ is of Python, with ^ of the kernel, with @ of
 * the image libjemalloc.so.2. */
static struct wait_meaning meaning_of(const char *stack)
{
	struct frame frames[16];
	struct frame_path path = { .frames = frames };
	struct dict *d = dict_new();
	char text[800], *rest = text, *name;
	struct wait_meaning m;

	snprintf(text, sizeof(text), "%s", stack);
	while ((name = strsep(&rest, ";"))) {
		bool marked = strchr("~%^@", *name) != NULL;

		frames[path.n++] = (struct frame){
			.name = dict_string(d, name + marked),
			.module = *name == '~'   ? "[Python]"
				  : *name == '%' ? "[Java]"
				  : *name == '^' ? "[kernel]"
				  : *name == '@' ? "libjemalloc.so.2"
						 : "app",
			.kind = strchr("~%", *name) ? FRAME_LANG
				: *name == '^'      ? FRAME_KERNEL
						    : FRAME_USER,
		};
	}
	m = wait_meaning_of(d, &path);
	dict_free(d);
	return m;
}

static void workers_without_work_are_known_by_their_loop_and_what_it_waits_in(void **state)
{
	static const struct {
		const char *pool, *stack;
	} cases[] = {
		{ "HotSpot: GC workers",
		  "start_thread;Thread::call_run();GangWorker::run();GangWorker::loop();PosixSemaphore::wait();"
		  "__new_sem_wait_slow64.constprop.0;^do_futex" },
		{ "GHC: event managers",
		  "workerStart;schedule;stg_catch_frame_info;base_GHC.Event.Manager.$wstep;base_GHC.Event.EPoll.new10;"
		  "epoll_wait;^do_epoll_wait" },
		{ "GHC: event managers",
		  "workerStart;schedule;ghc-internal_GHC.Internal.Event.TimerManager.$wstep;app+0x1234;poll;^do_sys_poll" },
		{ "MariaDB: thread pool",
		  "start_thread;tpool::thread_pool_generic::worker_main(tpool::worker_data*);"
		  "tpool::thread_pool_generic::wait_for_tasks(x);pthread_cond_clockwait;^do_futex" },
		{ "HotSpot: GC workers",
		  "Thread::call_run();WorkerThread::run();PosixSemaphore::wait();^do_futex" },
		{ "HotSpot: concurrent GC",
		  "ConcurrentGCThread::run();G1ServiceThread::run_service();Monitor::wait_without_safepoint_check("
		  "long);os::PlatformMonitor::wait(long);pthread_cond_timedwait;^do_futex" },
		{ "HotSpot: compilers",
		  "CompileBroker::compiler_thread_loop();CompileQueue::get(CompilerThread*);Monitor::wait(unsigned "
		  "long);PlatformMonitor::wait(unsigned long);pthread_cond_timedwait;^do_futex" },
		{ "HotSpot: VM thread",
		  "VMThread::run();VMThread::wait_for_operation();Monitor::wait_without_safepoint_check(long);"
		  "pthread_cond_wait;^do_futex" },
		{ "Java: executors",
		  "%java.lang.Thread.run (Thread.java);"
		  "%java.util.concurrent.ThreadPoolExecutor.getTask (ThreadPoolExecutor.java);"
		  "%java.util.concurrent.LinkedBlockingQueue.take (LinkedBlockingQueue.java);"
		  "%java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await (A.java);"
		  "%java.util.concurrent.locks.LockSupport.park (LockSupport.java);%jdk.internal.misc.Unsafe.park (Unsafe.java);"
		  "Unsafe_Park;pthread_cond_wait;^do_futex" },
		{ "libuv: thread pool",
		  "start_thread;worker;uv_cond_wait;pthread_cond_wait;^do_futex" },
		{ "node: V8 platform",
		  "start_thread;node::(anonymous namespace)::PlatformWorkerThread(void*);"
		  "uv_cond_wait;pthread_cond_wait;^do_futex" },
		{ "Go: scheduler",
		  "runtime.mcall;runtime.park_m;runtime.schedule;runtime.findRunnable;runtime.stopm;"
		  "runtime.mPark;runtime.notesleep;runtime.futexsleep;runtime.futex;^do_futex" },
		{ "Go: monitor",
		  "runtime.mstart;runtime.sysmon;runtime.usleep;^hrtimer_nanosleep" },
		{ "redis: background I/O",
		  "start_thread;bioProcessBackgroundJobs;pthread_cond_wait;^do_futex" },
		{ "redis: I/O threads", "start_thread;IOThreadMain;pthread_mutex_lock;^do_futex" },
		{ "jemalloc: background thread",
		  "start_thread;@[libjemalloc.so.2+0x39c30];pthread_cond_wait;^do_futex" },
		{ "PostgreSQL: background processes",
		  "BackgroundWriterMain;WaitLatch;WaitEventSetWait;epoll_wait;^ep_poll" },
		{ "Python: ThreadPoolExecutor",
		  "~Thread.run (threading.py);~_worker (thread.py);_queue_SimpleQueue_get;"
		  "_queue_SimpleQueue_get_impl;PyThread_acquire_lock_timed;^do_futex" },
		{ "Python: ThreadPoolExecutor",
		  "~_worker (thread.py);PyThread_acquire_lock_timed;sem_clockwait;^do_futex" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wait_meaning m = meaning_of(cases[i].stack);

		assert_int_equal(m.role, WAIT_ROLE_IDLE);
		assert_string_equal(m.pool->name, cases[i].pool);
	}
}

static void worker_that_works_is_not_idle(void **state)
{
	static const char *const stacks[] = {
		"GangWorker::loop();G1ParTask::work(unsigned int);^do_futex",
		"start_thread;worker;uv__fs_work;fsync;^vfs_fsync",
		"bioProcessBackgroundJobs;fsync;^vfs_fsync",
		"~_worker (thread.py);~_WorkItem.run (thread.py);~job (app.py);time_sleep;^do_nanosleep",
		"BackgroundWriterMain;BgBufferSync;pwrite64;^io_schedule",
		"worker;pthread_cond_wait;^do_futex", /* of that name, and not libuv's */
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++)
		assert_null(meaning_of(stacks[i]).pool);
}

static void contended_queue_is_not_an_idle_pool(void **state)
{
	struct wait_meaning m =
		meaning_of("bioProcessBackgroundJobs;pthread_mutex_lock;__lll_lock_wait;^do_futex");

	assert_null(m.pool);
	assert_int_equal(m.role, WAIT_ROLE_MUTEX);
}

static void functions_show_what_a_futex_stands_for(void **state)
{
	static const struct {
		enum wait_role role;
		const char *stack;
	} cases[] = {
		{ WAIT_ROLE_MUTEX, "main;f;pthread_mutex_lock;__lll_lock_wait;^do_futex" },
		{ WAIT_ROLE_MUTEX, "main;f;pthread_rwlock_wrlock;^do_futex" },
		{ WAIT_ROLE_CONDITION, "main;f;pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_CONDITION,
		  "main;f;pthread_cond_wait;__pthread_cond_wait_common;^do_futex" },
		{ WAIT_ROLE_JOIN, "main;pthread_join;__pthread_clockjoin_ex;^do_futex" },
		{ WAIT_ROLE_UNKNOWN, "main;f;sem_wait;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "java_main;ObjectMonitor::enter(JavaThread*);os::PlatformEvent::park();"
		  "pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_CONDITION,
		  "JVM_MonitorWait;ObjectMonitor::wait(long);pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "~handle (app.py);PyThread_acquire_lock_timed;sem_clockwait;^do_futex" },
		{ WAIT_ROLE_CONDITION,
		  "~Queue.get (queue.py);~Condition.wait (threading.py);PyThread_acquire_lock_timed;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "ExecUpdate;heap_update;LockAcquireExtended;ProcSleep;WaitLatch;epoll_wait;^ep_poll" },
		{ WAIT_ROLE_MUTEX, "XLogInsert;LWLockAcquire;PGSemaphoreLock;sem_wait;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "do_command(THD*);handler::ha_index_read_map(unsigned char*);[mariadbd+0xd5ad50];"
		  "pthread_cond_timedwait;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "do_command(THD*);MDL_wait::timed_wait(MDL_context_owner*);pthread_cond_timedwait;^do_futex" },
		/* What a statement waits for by itself, and a disk. */
		{ WAIT_ROLE_CONDITION,
		  "do_command(THD*);Item_func_sleep::val_int();pthread_cond_timedwait;^do_futex" },
		{ WAIT_ROLE_UNKNOWN,
		  "do_command(THD*);handler::ha_index_read_map(unsigned char*);pread64;^do_sys_read" },
		{ WAIT_ROLE_MUTEX,
		  "main;rb_mutex_synchronize;[libruby+0x40];pthread_cond_wait;^do_futex" },
		/* Who has the lock, in its block; and a queue, which has no lock. */
		{ WAIT_ROLE_UNKNOWN,
		  "main;rb_mutex_synchronize;rb_ensure;[libruby+0x80];ppoll;^do_sys_poll" },
		{ WAIT_ROLE_CONDITION,
		  "main;rb_ensure;[libruby+0x80];pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_MUTEX,
		  "%app.Shop.sell (Shop.java);%java.util.concurrent.locks.ReentrantLock.lock (ReentrantLock.java);"
		  "%java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire (AbstractQueuedSynchronizer.java);"
		  "%jdk.internal.misc.Unsafe.park (Unsafe.java);Unsafe_Park;Parker::park(bool, long);pthread_cond_wait;^do_futex" },
		/* What called the program is not what it waits for. */
		{ WAIT_ROLE_CONDITION,
		  "%java.util.concurrent.FutureTask.run (FutureTask.java);%java.util.concurrent.locks.ReentrantLock.lock (R.java);"
		  "%app.Shop.rest (Shop.java);%java.util.concurrent.locks.LockSupport.park (LockSupport.java);"
		  "%jdk.internal.misc.Unsafe.park (Unsafe.java);Unsafe_Park;pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_CONDITION,
		  "%app.Shop.rest (Shop.java);%java.lang.Object.wait (Object.java);JVM_MonitorWait;ObjectMonitor::wait(long);"
		  "pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_JOIN,
		  "%app.Shop.rest (Shop.java);%java.lang.Thread.join (Thread.java);%java.lang.Object.wait (Object.java);"
		  "JVM_MonitorWait;ObjectMonitor::wait(long);pthread_cond_wait;^do_futex" },
		/* Notified, and the monitor is not free. */
		{ WAIT_ROLE_MUTEX,
		  "%java.lang.Object.wait (Object.java);JVM_MonitorWait;ObjectMonitor::wait(long);ObjectMonitor::ReenterI(Thread*);"
		  "pthread_cond_wait;^do_futex" },
		{ WAIT_ROLE_JOIN,
		  "~Thread._wait_for_tstate_lock (threading.py);PyThread_acquire_lock_timed;^do_futex" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (meaning_of(cases[i].stack).role != cases[i].role)
			fail_msg("%s: %s", cases[i].stack,
				 wait_role_name(meaning_of(cases[i].stack).role));
}

static void workers_of_the_kernel_are_known_by_thread_and_function(void **state)
{
	assert_string_equal(idle_kernel_pool("kworker", "worker_thread")->name,
			    "kernel: work queues");
	assert_string_equal(idle_kernel_pool("rcu_preempt", "rcu_gp_fqs_loop")->name,
			    "kernel: RCU");
	assert_null(idle_kernel_pool("kworker", "io_schedule"));
	assert_null(idle_kernel_pool("redis-server", "worker_thread"));
}

static void each_row_has_what_it_is_known_by(void **state)
{
	for (const struct idle_pool *p = idle_pools; p->name; p++) {
		assert_non_null(p->loop);
		assert_true(p->wait || p->evidence != IDLE_EVENTS);
		assert_true(strlen(p->name) <= 40);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_without_work_are_known_by_their_loop_and_what_it_waits_in),
		cmocka_unit_test(worker_that_works_is_not_idle),
		cmocka_unit_test(contended_queue_is_not_an_idle_pool),
		cmocka_unit_test(functions_show_what_a_futex_stands_for),
		cmocka_unit_test(workers_of_the_kernel_are_known_by_thread_and_function),
		cmocka_unit_test(each_row_has_what_it_is_known_by),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
