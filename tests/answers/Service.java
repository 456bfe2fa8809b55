/* Idle after some work: the pools of HotSpot without anything to do. With "hot": a thread that computes. */
public class Service {
	static long sink;

	static long rankOrders(long n) {
		long h = n;
		for (int i = 0; i < 20000; i++)
			h = (h ^ (h >>> 7)) * 1099511628211L;
		return h;
	}

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 50000; i++)
			sink += "x".repeat(i % 100).hashCode();
		System.gc();
		System.out.println("ready");
		if (args[0].equals("hot"))
			for (long n = 0;; n++)
				sink += rankOrders(n);
		Thread.sleep(3600000);
	}
}
