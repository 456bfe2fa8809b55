import java.lang.management.*;
import java.util.*;

/** Collects garbage when it is asked to: for each line N as many times. It answers with how often its collectors have been at work. */
public class Collects {
    static void say() {
        long count = 0;
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans())
            count += bean.getCollectionCount();
        System.out.println(count);
    }

    public static void main(String[] args) {
        say();
        for (Scanner in = new Scanner(System.in); in.hasNextLine();) {
            for (int n = Integer.parseInt(in.nextLine()); n > 0; n--)
                System.gc();
            say();
        }
    }
}
