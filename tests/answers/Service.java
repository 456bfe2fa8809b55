import java.io.RandomAccessFile;
import java.net.Socket;
import java.util.ArrayList;
import java.util.HashMap;

/* A small service in Java whose trouble is known: Service MODE [ARGUMENT]. "ready" on stdout when it works. */
public class Service {
	static volatile long sink;

	static long rankOrders(long n) {
		long h = n;
		for (int i = 0; i < 20000; i++)
			h = (h ^ (h >>> 7)) * 1099511628211L;
		return h;
	}

	static final ArrayList<byte[]> orders = new ArrayList<>();

	static void rememberOrder(long n) throws Exception {
		byte[] order = new byte[16384];
		order[0] = (byte) n;
		orders.add(order);
		Thread.sleep(2);
	}

	static synchronized void bookOrder(long n) throws Exception {
		sink += n;
		Thread.sleep(3);
	}

	static RandomAccessFile ledger;

	static void writeLedger(long n) throws Exception {
		ledger.seek(n % 64 * 4096);
		ledger.write(new byte[4096]);
		ledger.getFD().sync();
	}

	static synchronized void commitOrder(long n) throws Exception {
		writeLedger(n);
	}

	static Socket backend;

	static void askPricing(long n) throws Exception {
		backend.getOutputStream().write("how much".getBytes());
		if (backend.getInputStream().read(new byte[64]) <= 0)
			System.exit(1);
	}

	static class Node {
		Node left, right;
		long value;
	}

	static Node growTree(int depth) {
		Node n = new Node();
		n.value = depth;
		if (depth > 0) {
			n.left = growTree(depth - 1);
			n.right = growTree(depth - 1);
		}
		return n;
	}

	/* What lives fills most of a heap of 64 MiB; each answer is garbage soon. */
	static Node catalogue;

	static void buildAnswer(long n) {
		sink += growTree(12).value;
	}

	static final HashMap<Long, byte[]> cache = new HashMap<>();

	static void cachePut(long n) throws Exception {
		cache.put(n % 1024, new byte[16384]);
	}

	interface Work {
		void turn(long n) throws Exception;
	}

	static void forever(Work work) {
		Thread t = new Thread(() -> {
			try {
				for (long n = 0;; n++)
					work.turn(n);
			} catch (Exception e) {
				System.exit(1);
			}
		});
		t.start();
	}

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 50000; i++)
			sink += "x".repeat(i % 100).hashCode();
		switch (args[0]) {
		case "hot":
			forever(n -> sink += rankOrders(n));
			break;
		case "leak":
			forever(Service::rememberOrder);
			break;
		case "lock":
			for (int i = 0; i < 6; i++)
				forever(Service::bookOrder);
			break;
		case "disk":
			ledger = new RandomAccessFile(args[1], "rw");
			forever(Service::writeLedger);
			break;
		case "commit":
			ledger = new RandomAccessFile(args[1], "rw");
			for (int i = 0; i < 6; i++)
				forever(Service::commitOrder);
			break;
		case "peer":
			backend = new Socket("127.0.0.1", Integer.parseInt(args[1]));
			forever(Service::askPricing);
			break;
		case "gc":
			catalogue = growTree(19);
			forever(Service::buildAnswer);
			break;
		case "cache":
			/* So many that the heap has been collected several times: it has its size. */
			for (long n = 0; n < 64 * 1024; n++)
				cachePut(n);
			forever(n -> {
				cachePut(n);
				Thread.sleep(0, 500000);
			});
			break;
		case "idle":
			break;
		default:
			System.exit(2);
		}
		System.gc();
		System.out.println("ready");
		Thread.sleep(3600000);
	}
}
