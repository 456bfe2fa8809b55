import java.io.BufferedReader;
import java.io.InputStreamReader;

/*
 * Allocates at four places, of which it says how many bytes each has asked for: on "run N", as many rounds, then "site
 * NAME BYTES" each, and "end". Which place is next is drawn at random, so that none of them is in step with the JVM's buffers.
 */
public class JavaAllocs {
	static final int HEAD = 16; /* bytes of an array before its elements, in 64-bit JVMs with compressed pointers to classes */
	static final Object[] kept = new Object[64];
	static final long[] bytes = new long[4];
	static int at;
	static long random = 88172645463325252L;

	static Object small() {
		return new byte[240 - HEAD];
	}

	static Object medium() {
		return new byte[4096 - HEAD];
	}

	/* More than may be left of a buffer, and less than a buffer. */
	static Object large() {
		return new byte[32768 - HEAD];
	}

	/* More than any buffer. */
	static Object huge() {
		return new byte[(8 << 20) - HEAD];
	}

	static int draw(int n) {
		random ^= random << 13;
		random ^= random >>> 7;
		random ^= random << 17;
		return (int)Math.floorMod(random, (long)n);
	}

	/* Of 1,000 bytes 700 are of small(), 200 of medium(), and 100 of large(). */
	static void round() {
		int n = draw(100000);

		if (n < 98252) {
			kept[at++ & 63] = small();
			bytes[0] += 240;
		} else if (n < 99897) {
			kept[at++ & 63] = medium();
			bytes[1] += 4096;
		} else {
			kept[at++ & 63] = large();
			bytes[2] += 32768;
		}
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		String line;

		System.out.println("ready");
		while ((line = in.readLine()) != null && line.startsWith("run ")) {
			int n = Integer.parseInt(line.substring(4));

			for (int i = 0; i < n; i++)
				round();
			for (int i = 0; i < n / 100000; i++) {
				kept[0] = huge();
				bytes[3] += 8 << 20;
			}
			System.out.println("site small " + bytes[0]);
			System.out.println("site medium " + bytes[1]);
			System.out.println("site large " + bytes[2]);
			System.out.println("site huge " + bytes[3]);
			System.out.println("end");
		}
	}
}
