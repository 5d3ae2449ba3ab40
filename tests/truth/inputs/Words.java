import java.util.HashMap;
import java.util.Map;

/** Counts made-up words: strings and hashes in code compiled at run time. */
public class Words {
    public static void main(String[] arguments) {
        Map<String, Integer> counts = new HashMap<>();
        int state = 7;
        long total = 0;
        for (long i = Long.parseLong(arguments[0]); i > 0; i--) {
            state = state * 1103515245 + 12345;
            String word = "w" + Integer.toHexString((state >>> 12) & 0xfff);
            total += counts.merge(word, 1, Integer::sum) & 1;
        }
        System.out.println(counts.size() + " " + total);
    }
}
