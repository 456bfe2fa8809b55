import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;

/*
 * Threads that each say where they are, as the JVM sees it, and then wait, compute or allocate on that same line. A line
 * of output: what, then the frames, leaf first, each class.method|file|line, all separated by tabs.
 */
public class JavaStacks {
	static final Set<String> said = new HashSet<>();
	static volatile long sink;

	static void say(String what) {
		StackTraceElement[] all = Thread.currentThread().getStackTrace();
		StringBuilder text = new StringBuilder(what);

		for (int i = 3; i < all.length; i++)
			text.append('\t').append(all[i].getClassName()).append('.').append(all[i].getMethodName())
				.append('|').append(all[i].getFileName()).append('|').append(all[i].getLineNumber());
		synchronized (said) {
			if (!said.add(text.toString()))
				return;
			System.out.println(text);
			System.out.flush();
		}
	}

	/* Compilers inline recursive calls only once: the last of three is a call. */
	static long spin(int n, int depth) {
		long s = 0;

		if (depth > 0)
			return spin(n, depth - 1) + 1;

		for (int i = 0; i < n; i++)
			s += s * 31 ^ i;
		return s;
	}

	static void nap() {
		try {
			Thread.sleep(4);
		} catch (InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	interface Act {
		void act(int round);
	}

	/* One that is called through an interface, with a frame of arguments. */
	static class Nested implements Act {
		final Act inner;

		Nested(Act inner) {
			this.inner = inner;
		}

		public void act(int round) {
			inner.act(round);
		}
	}

	static int down(int depth, long a, long b, double c, Act act) {
		if (depth == 0) {
			for (int i = 0; ; i++)
				act.act(i);
		}
		return down(depth - 1, b, a, c + 1, act) + 1;
	}

	static void say_once(int round, String what) {
		if (round % 1000 == 0)
			say(what);
	}

	static void sleeper(int round) {
		say_once(round, "sleep"); nap();
	}

	static void spinner(int round) {
		say_once(round, "spin"); sink += spin(20000, 3);
	}

	static void allocator(int round) {
		say_once(round, "alloc"); sink += ByteBuffer.allocateDirect(70000).capacity(); nap();
	}

	static class Initialized {
		static {
			for (int i = 0; i < 1 << 30; i++)
				sleeper(i);
		}
	}

	public static void reflected() {
		down(20, 1, 2, 3, JavaStacks::spinner);
	}

	static void start(Runnable r) {
		Thread t = new Thread(r);
		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		Method reflected = JavaStacks.class.getMethod("reflected");

		start(() -> down(60, 1, 2, 3, new Nested(JavaStacks::sleeper)));
		start(() -> down(5, 1, 2, 3, new Nested(JavaStacks::spinner)));
		start(() -> down(3, 1, 2, 3, JavaStacks::allocator));
		start(() -> new Initialized());
		start(() -> {
			try {
				reflected.invoke(null);
			} catch (ReflectiveOperationException e) {
				throw new IllegalStateException(e);
			}
		});
		Thread.sleep(2000);
		System.out.println("ready");
		System.out.flush();
		System.in.read();
	}
}
