/*
 * A thread named "keeper" that holds a monitor most of the time, and three that want it for a moment. A fourth waits for a lock of
 * java.util.concurrent that the keeper holds, too; a fifth for a notification that never comes.
 */
public class JavaWaits {
	static final Object monitor = new Object();
	static final Object never = new Object();
	static final java.util.concurrent.locks.ReentrantLock lock = new java.util.concurrent.locks.ReentrantLock();
	static long sum;

	static void hold() {
		long end = System.nanoTime() + 20_000_000;

		synchronized (monitor) {
			lock.lock();
			while (System.nanoTime() < end)
				sum++;
			lock.unlock();
		}
	}

	static void want() {
		synchronized (monitor) {
			sum++;
		}
	}

	static void wantLock() {
		lock.lock();
		sum++;
		lock.unlock();
	}

	static void await() {
		synchronized (never) {
			try {
				never.wait();
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		}
	}

	static void start(String name, Runnable act) {
		Thread t = new Thread(() -> {
			while (true) {
				act.run();
				rest();
			}
		}, name);

		t.setDaemon(true);
		t.start();
	}

	static void rest() {
		try {
			Thread.sleep(1);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		start("keeper", JavaWaits::hold);
		for (int i = 0; i < 3; i++)
			start("wanter-" + i, JavaWaits::want);
		start("locker", JavaWaits::wantLock);
		start("waiter", JavaWaits::await);
		System.out.println("ready");
		System.in.read();
	}
}
