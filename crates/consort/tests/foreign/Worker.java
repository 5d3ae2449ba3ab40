/** Two threads of opposite kinds, their code compiled while they run. */
public class Worker {
    static double fp(int rounds) {
        double x = 0;
        for (int i = 1; i < rounds; i++) {
            x = x * 0.999 + Math.sqrt(i) / (1 + x * 1e-9);
        }
        return x;
    }

    static long integer(int rounds) {
        long hash = 17;
        for (int i = 0; i < rounds; i++) {
            hash = hash * 31 + (hash >>> 7) ^ i;
        }
        return hash;
    }

    public static void main(String[] words) throws InterruptedException {
        double[] sum = new double[1];
        long[] hash = new long[1];
        Thread one = new Thread(() -> {
            for (int k = 0; k < 12; k++) {
                sum[0] += fp(5_000_000);
            }
        }, "fp-worker");
        Thread two = new Thread(() -> {
            for (int k = 0; k < 30; k++) {
                hash[0] += integer(8_000_000);
            }
        }, "int-worker");
        one.start();
        two.start();
        one.join();
        two.join();
        System.out.println(sum[0] + " " + hash[0]);
    }
}
