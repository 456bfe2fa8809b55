#include "analyse/wait_role.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */

/*
 * Seen in running programs: HotSpot 17 and 25, node 20, CPython 3.11, Go 1.19, redis 7.0, PostgreSQL 15, MariaDB
 * 10.11. From their sources alone: tokio, GHC, jemalloc with symbols.
 */
const struct idle_pool idle_pools[] = {
	{ "HotSpot: GC workers", "GangWorker::loop*", "PosixSemaphore::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: GC workers", "WorkerThread::run*", "PosixSemaphore::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: concurrent GC", "ConcurrentGCThread::run*", "*Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: concurrent GC", "ConcurrentGCThread::run*", "PosixSemaphore::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: compilers", "CompileQueue::get*", "Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: VM thread", "VMThread::wait_for_operation*", "Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: VM services", "WatcherThread::sleep*", "Monitor::wait*", NULL, IDLE_PERIOD },
	{ "HotSpot: VM services", "ServiceThread::service_thread_entry*", "Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: VM services", "NotificationThread::notification_thread_entry*", "Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: VM services", "MonitorDeflationThread::monitor_deflation_thread_entry*", "Monitor::wait*", NULL, IDLE_PERIOD },
	{ "HotSpot: VM services", "NMethodSweeper::sweeper_loop*", "Monitor::wait*", NULL, IDLE_PERIOD },
	{ "HotSpot: VM services", "os::signal_wait*", "PosixSemaphore::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: reference handler", "JVM_WaitForReferencePendingList", "Monitor::wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "HotSpot: launcher", "CallJavaMainInNewThread", NULL, NULL, IDLE_QUEUE_EMPTY },
	{ "Java: executors", "java.util.concurrent.ThreadPoolExecutor.getTask", "java.util.concurrent.locks.LockSupport.park*", "[Java]", IDLE_QUEUE_EMPTY },
	{ "Java: fork-join pools", "java.util.concurrent.ForkJoinPool.awaitWork", "java.util.concurrent.locks.LockSupport.park*", "[Java]", IDLE_QUEUE_EMPTY },
	{ "Java: timers", "java.util.TimerThread.mainLoop", "java.lang.Object.wait*", "[Java]", IDLE_PERIOD },
	{ "Java: reference queues", "java.lang.ref.ReferenceQueue.remove*", NULL, "[Java]", IDLE_QUEUE_EMPTY },
	{ "libuv: thread pool", "worker", "uv_cond_wait", NULL, IDLE_QUEUE_EMPTY },
	{ "libuv: thread pool", "uv__worker", "uv_cond_wait", NULL, IDLE_QUEUE_EMPTY },
	{ "node: V8 platform", "node::*PlatformWorkerThread*", "uv_cond_wait", NULL, IDLE_QUEUE_EMPTY },
	{ "node: V8 platform", "node::WorkerThreadsTaskRunner::DelayedTaskScheduler::*", "uv__io_poll", NULL, IDLE_EVENTS },
	{ "node: V8 platform", "v8::platform::DefaultWorkerThreadsTaskRunner::*", "v8::base::ConditionVariable::Wait*", NULL, IDLE_QUEUE_EMPTY },
	{ "node: inspector", "node::inspector::*StartIoThreadMain*", "uv_sem_wait", NULL, IDLE_QUEUE_EMPTY },
	{ "Go: scheduler", "runtime.schedule", "runtime.stopm", NULL, IDLE_QUEUE_EMPTY },
	{ "Go: scheduler", "runtime.findRunnable", "runtime.stopm", NULL, IDLE_QUEUE_EMPTY },
	{ "Go: scheduler", "runtime.findrunnable", "runtime.stopm", NULL, IDLE_QUEUE_EMPTY },
	{ "Go: scheduler", "runtime.findRunnable", "runtime.netpoll", NULL, IDLE_EVENTS },
	{ "Go: scheduler", "runtime.findrunnable", "runtime.netpoll", NULL, IDLE_EVENTS },
	{ "Go: scheduler", "runtime.templateThread", "runtime.notesleep", NULL, IDLE_QUEUE_EMPTY },
	{ "Go: monitor", "runtime.sysmon", NULL, NULL, IDLE_PERIOD },
	{ "tokio: workers", "tokio::runtime::scheduler::multi_thread::park::*", NULL, NULL, IDLE_QUEUE_EMPTY },
	{ "tokio: workers", "tokio::runtime::scheduler::multi_thread::worker::Context::park*", NULL, NULL, IDLE_QUEUE_EMPTY },
	{ "tokio: blocking pool", "tokio::runtime::blocking::pool::Inner::run", "*Condvar*", NULL, IDLE_QUEUE_EMPTY },
	{ "GHC: scheduler", "yieldCapability", "waitCondition", NULL, IDLE_QUEUE_EMPTY },
	{ "GHC: scheduler", "waitForWorkerCapability", NULL, NULL, IDLE_QUEUE_EMPTY },
	{ "GHC: event managers", "base_GHC.Event.*", "*poll*", NULL, IDLE_EVENTS },
	{ "GHC: event managers", "ghc-internal_GHC.Internal.Event.*", "*poll*", NULL, IDLE_EVENTS },
	{ "GHC: timer", "itimer_thread_func", NULL, NULL, IDLE_PERIOD },
	{ "jemalloc: background thread", "background_thread_entry", NULL, NULL, IDLE_PERIOD },
	{ "jemalloc: background thread", "background_thread_sleep*", NULL, NULL, IDLE_PERIOD },
	/* Stripped: nothing else of jemalloc waits for a condition. */
	{ "jemalloc: background thread", "[libjemalloc*", "*pthread_cond_*", NULL, IDLE_PERIOD },
	{ "redis: background I/O", "bioProcessBackgroundJobs", "*pthread_cond_*", NULL, IDLE_QUEUE_EMPTY },
	{ "redis: I/O threads", "IOThreadMain", "*pthread_mutex_lock*", NULL, IDLE_QUEUE_EMPTY, .by_mutex = true },
	{ "Python: ThreadPoolExecutor", "_worker", "_queue_SimpleQueue_get*", "[Python]", IDLE_QUEUE_EMPTY, .by_mutex = true },
	{ "Python: ThreadPoolExecutor", "_worker", "PyThread_acquire_lock_timed", "[Python]", IDLE_QUEUE_EMPTY, .by_mutex = true },
	{ "PostgreSQL: background processes", "BackgroundWriterMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "CheckpointerMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "WalWriterMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "AutoVacLauncherMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "ApplyLauncherMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "PgArchiverMain", "WaitLatch*", NULL, IDLE_PERIOD },
	{ "PostgreSQL: background processes", "SysLoggerMain", "WaitEventSetWait", NULL, IDLE_EVENTS },
	{ "PostgreSQL: postmaster", "PostmasterMain", "select", NULL, IDLE_EVENTS },
	{ "PostgreSQL: postmaster", "ServerLoop", "WaitEventSetWait", NULL, IDLE_EVENTS },
	{ "PostgreSQL: backends between queries", "secure_read", "WaitEventSetWait", NULL, IDLE_EVENTS },
	{ "MariaDB: thread pool", "tpool::thread_pool_generic::worker_main*", "*pthread_cond_*", NULL, IDLE_QUEUE_EMPTY },
	{ "MariaDB: manager", "handle_manager", "*pthread_cond_*", NULL, IDLE_PERIOD },
	{ .name = NULL },
};

/* Workers of the kernel: the name of the thread, and where it is when it has nothing to do. */
static const struct idle_pool kernel_pools[] = {
	{ "kernel: work queues", "kworker*", "worker_thread", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: rescuers", "*", "rescuer_thread", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: per-CPU threads", "*", "smpboot_thread_fn", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: work queues", "*", "kthread_worker_fn", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: threads", "kthreadd", "kthreadd", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: RCU", "rcu*", "rcu_gp_*", NULL, IDLE_PERIOD },
	{ "kernel: RCU", "rcu*", "rcu_tasks_*", NULL, IDLE_PERIOD },
	{ "kernel: memory", "kswapd*", "kswapd*", NULL, IDLE_QUEUE_EMPTY },
	{ "kernel: memory", "kcompactd*", "kcompactd*", NULL, IDLE_PERIOD },
	{ "kernel: memory", "khugepaged", "khugepaged*", NULL, IDLE_PERIOD },
	{ "kernel: memory", "ksmd", "ksm_scan_thread", NULL, IDLE_PERIOD },
	{ "kernel: file systems", "jbd2*", "kjournald2", NULL, IDLE_PERIOD },
};

/* What the function means that is nearest the leaf, whoever calls it, or below this one alone. */
static const struct {
	const char *function;
	enum wait_role role;
	const char *below;
} waiters[] = {
	/* Monitors of HotSpot wait by conditions; its own table comes first. */
	{ "ObjectMonitor::enter*", WAIT_ROLE_MUTEX },
	{ "ObjectMonitor::EnterI*", WAIT_ROLE_MUTEX },
	{ "ObjectMonitor::ReenterI*", WAIT_ROLE_MUTEX },
	{ "ObjectSynchronizer::enter*", WAIT_ROLE_MUTEX },
	{ "ObjectMonitor::wait*", WAIT_ROLE_CONDITION },
	{ "JVM_MonitorWait", WAIT_ROLE_CONDITION },
	{ "std::sys::*Mutex::lock_contended*", WAIT_ROLE_MUTEX },
	{ "std::sys::*RwLock::*_contended*", WAIT_ROLE_MUTEX },
	{ "parking_lot::raw_mutex::RawMutex::lock_slow*", WAIT_ROLE_MUTEX },
	{ "parking_lot::raw_rwlock::RawRwLock::*_slow*", WAIT_ROLE_MUTEX },
	{ "sync.runtime_SemacquireMutex", WAIT_ROLE_MUTEX },
	/* Of PostgreSQL 15, by its sources and running: locks of tables and rows, then its own. */
	{ "ProcSleep", WAIT_ROLE_MUTEX },
	{ "LWLockAcquire*", WAIT_ROLE_MUTEX },
	/* MariaDB 10.11, running: what waits for a condition in a statement's call of a storage engine wants rows that another
	 * transaction has; InnoDB's own functions have no names there. And the locks of tables and of GET_LOCK(). */
	{ "*pthread_cond_*", WAIT_ROLE_MUTEX, "handler::ha_*" },
	{ "*pthread_cond_*", WAIT_ROLE_MUTEX, "MDL_wait::timed_wait*" },
	/* Ruby's Mutex waits by conditions, as everything does there. */
	{ "rb_mutex_lock", WAIT_ROLE_MUTEX },
	{ "rb_mutex_synchronize", WAIT_ROLE_MUTEX },
	{ "std::sys::*Condvar::wait*", WAIT_ROLE_CONDITION },
	{ "std::thread::park*", WAIT_ROLE_CONDITION },
	{ "__lll_lock_wait*", WAIT_ROLE_MUTEX },
	{ "*pthread_mutex_lock*", WAIT_ROLE_MUTEX },
	{ "*pthread_mutex_timedlock*", WAIT_ROLE_MUTEX },
	{ "*pthread_mutex_clocklock*", WAIT_ROLE_MUTEX },
	{ "*pthread_rwlock_*", WAIT_ROLE_MUTEX },
	{ "*pthread_cond_*", WAIT_ROLE_CONDITION },
	{ "__pthread_clockjoin_ex", WAIT_ROLE_JOIN },
	{ "__pthread_timedjoin_ex", WAIT_ROLE_JOIN },
	{ "pthread_join", WAIT_ROLE_JOIN },
	{ "std::thread::join*", WAIT_ROLE_JOIN },
};

/* clang-format on */

/* In Python a lock is a semaphore; which of its uses it is says the function that has asked for it. */
static const struct {
	const char *function;
	enum wait_role role;
} python_askers[] = {
	{ "Condition.wait*", WAIT_ROLE_CONDITION },
	{ "wait", WAIT_ROLE_CONDITION }, /* up to 3.10 a name is the function's own */
	{ "Thread._wait_for_tstate_lock", WAIT_ROLE_JOIN },
	{ "_wait_for_tstate_lock", WAIT_ROLE_JOIN },
	{ "Thread.join", WAIT_ROLE_JOIN },
	{ "join", WAIT_ROLE_JOIN },
	{ "_shutdown", WAIT_ROLE_JOIN },
};

/* In Java, what is not a monitor parks its thread; what for says the class of java.util.concurrent that has asked for it. The first
 * row with a frame between there and the program's code. */
static const struct {
	const char *function;
	enum wait_role role;
} java_askers[] = {
	{ "java.util.concurrent.locks.AbstractQueued*$ConditionObject.await*",
	  WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.CountDownLatch*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.CyclicBarrier*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.Phaser*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.Exchanger*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.SynchronousQueue*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.LinkedTransferQueue*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.FutureTask*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.CompletableFuture*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.ForkJoinTask*", WAIT_ROLE_CONDITION },
	{ "java.util.concurrent.Semaphore*", WAIT_ROLE_MUTEX },
	{ "java.util.concurrent.locks.ReentrantLock*", WAIT_ROLE_MUTEX },
	{ "java.util.concurrent.locks.ReentrantReadWriteLock*", WAIT_ROLE_MUTEX },
	{ "java.util.concurrent.locks.StampedLock*", WAIT_ROLE_MUTEX },
	{ "java.lang.Thread.join*", WAIT_ROLE_JOIN },
};

static const char *const role_names[N_WAIT_ROLES] = {
	[WAIT_ROLE_UNKNOWN] = "unknown",     [WAIT_ROLE_IDLE] = "idle",
	[WAIT_ROLE_CONDITION] = "condition", [WAIT_ROLE_JOIN] = "join",
	[WAIT_ROLE_MUTEX] = "mutex",
};

const char *wait_role_name(enum wait_role role)
{
	return role_names[role];
}

/*
 * `pattern` may have one * for any characters, anywhere, and one more at its end: "node::*Worker*". Names of C++ have
 * parameters, which patterns end before.
 */
static bool matches(const char *pattern, const char *name)
{
	const char *star = strchr(pattern, '*'), *rest, *at;
	size_t len;

	if (!star)
		return strcmp(pattern, name) == 0;
	if (strncmp(pattern, name, (size_t)(star - pattern)) != 0)
		return false;
	rest = star + 1;
	if (!*rest)
		return true;
	len = strlen(rest);
	name += star - pattern;
	if (rest[len - 1] != '*') {
		size_t all = strlen(name);

		return all >= len && strcmp(name + all - len, rest) == 0;
	}
	for (at = name; *at; at++)
		if (strncmp(at, rest, len - 1) == 0)
			return true;
	return len == 1;
}

/* A frame of a language is shown as "_worker (thread.py)": its function without the file. */
static void plain_name(const char *name, char *buf, size_t cap)
{
	size_t len = strlen(name);
	const char *file = strstr(name, " (");

	if (file && name[len - 1] == ')')
		len = (size_t)(file - name);
	len = len < cap - 1 ? len : cap - 1;
	memcpy(buf, name, len);
	buf[len] = '\0';
}

static bool frame_is(const struct dict *d, const struct frame *f, const char *pattern)
{
	char name[128];

	if (f->kind != FRAME_LANG)
		return matches(pattern, dict_str(d, f->name));
	plain_name(dict_str(d, f->name), name, sizeof(name));
	return matches(pattern, name);
}

static bool is_kernel(const struct frame *f)
{
	return f->kind == FRAME_KERNEL || strcmp(f->module, "[kernel]") == 0;
}

/* The place of the pool's loop; -1: it is not on this stack. */
static int find_pool(const struct dict *d, const struct frame_path *path,
		     const struct idle_pool *pool)
{
	uint32_t place = path->n;

	while (place > 0 && is_kernel(&path->frames[place - 1]))
		place--;
	for (; pool->wait && place > 0; place--)
		if (frame_is(d, &path->frames[place - 1], pool->wait))
			break;
	for (; place > 0; place--) {
		const struct frame *f = &path->frames[place - 1];

		if (pool->module && strncmp(f->module, pool->module, strlen(pool->module)) != 0)
			continue;
		if (frame_is(d, f, pool->loop))
			return (int)(place - 1);
	}
	return -1;
}

static enum wait_role python_role(const struct dict *d, const struct frame_path *path,
				  uint32_t place)
{
	while (place > 0 && path->frames[place - 1].kind != FRAME_LANG)
		place--;
	if (place == 0)
		return WAIT_ROLE_UNKNOWN;
	for (size_t i = 0; i < sizeof(python_askers) / sizeof(python_askers[0]); i++)
		if (frame_is(d, &path->frames[place - 1], python_askers[i].function))
			return python_askers[i].role;
	return WAIT_ROLE_MUTEX;
}

/* `place`: of a native frame that Java has called. */
static enum wait_role java_role(const struct dict *d, const struct frame_path *path, uint32_t place)
{
	size_t n = sizeof(java_askers) / sizeof(java_askers[0]), best = n;

	while (place > 0 && path->frames[place - 1].kind != FRAME_LANG)
		place--;
	for (; place > 0 && path->frames[place - 1].kind == FRAME_LANG; place--) {
		const struct frame *f = &path->frames[place - 1];

		if (!frame_is(d, f, "java.*") && !frame_is(d, f, "jdk.*") && !frame_is(d, f, "[*"))
			break;
		for (size_t i = 0; i < best; i++)
			if (frame_is(d, f, java_askers[i].function))
				best = i;
	}
	return best < n ? java_askers[best].role : WAIT_ROLE_CONDITION;
}

static bool is_below(const struct dict *d, const struct frame_path *path, uint32_t place,
		     const char *caller)
{
	for (; caller && place > 0; place--)
		if (frame_is(d, &path->frames[place - 1], caller))
			return true;
	return !caller;
}

/* Of the frames that say something, the first row of the table: monitors of HotSpot wait by conditions. */
static enum wait_role role_of(const struct dict *d, const struct frame_path *path, uint32_t *ret_by)
{
	enum wait_role role = WAIT_ROLE_UNKNOWN;
	size_t best = sizeof(waiters) / sizeof(waiters[0]);

	for (uint32_t place = path->n; place > 0; place--) {
		const struct frame *f = &path->frames[place - 1];

		if (is_kernel(f))
			continue;
		/* Ruby calls the block of a Mutex by rb_ensure(): what waits in there has the lock. */
		if (f->kind == FRAME_LANG || frame_is(d, f, "rb_ensure"))
			break;
		if (frame_is(d, f, "PyThread_acquire_lock_timed"))
			return python_role(d, path, place);
		if (frame_is(d, f, "Unsafe_Park") || frame_is(d, f, "JVM_MonitorWait"))
			return role == WAIT_ROLE_MUTEX ? role : java_role(d, path, place);
		for (size_t i = 0; i < best; i++) {
			if (frame_is(d, f, waiters[i].function) &&
			    is_below(d, path, place - 1, waiters[i].below)) {
				best = i;
				role = waiters[i].role;
				*ret_by = place;
			}
		}
	}
	return role;
}

struct wait_meaning wait_meaning_of(const struct dict *d, const struct frame_path *path)
{
	struct wait_meaning m = { 0 };

	m.role = role_of(d, path, &m.by);
	for (const struct idle_pool *pool = idle_pools; pool->name; pool++) {
		int place;

		/* The lock of a queue that is contended: a queue that is in use. */
		if (m.role == WAIT_ROLE_MUTEX && !pool->by_mutex)
			continue;
		place = find_pool(d, path, pool);
		if (place >= 0)
			return (struct wait_meaning){ .role = WAIT_ROLE_IDLE,
						      .pool = pool,
						      .loop = (uint32_t)place };
	}
	return m;
}

const struct idle_pool *idle_kernel_pool(const char *comm, const char *kernel_function)
{
	for (size_t i = 0; i < sizeof(kernel_pools) / sizeof(kernel_pools[0]); i++)
		if (matches(kernel_pools[i].loop, comm) &&
		    matches(kernel_pools[i].wait, kernel_function))
			return &kernel_pools[i];
	return NULL;
}
