/** Bodies that attract one another: floating-point arithmetic in code compiled at run time. */
public class Planets {
    static final int BODIES = 5;

    public static void main(String[] arguments) {
        double[] x = new double[3 * BODIES], v = new double[3 * BODIES];
        for (int i = 0; i < 3 * BODIES; i++) {
            x[i] = Math.sin(i + 1.0);
            v[i] = 0.1 * Math.cos(i + 1.0);
        }
        for (long step = Long.parseLong(arguments[0]); step > 0; step--) advance(x, v, 1e-4);
        System.out.println(x[0] + " " + v[0]);
    }

    static void advance(double[] x, double[] v, double dt) {
        for (int i = 0; i < BODIES; i++) {
            for (int j = i + 1; j < BODIES; j++) {
                double dx = x[3 * i] - x[3 * j];
                double dy = x[3 * i + 1] - x[3 * j + 1];
                double dz = x[3 * i + 2] - x[3 * j + 2];
                double square = dx * dx + dy * dy + dz * dz + 0.01;
                double pull = dt / (square * Math.sqrt(square));
                v[3 * i] -= dx * pull;
                v[3 * i + 1] -= dy * pull;
                v[3 * i + 2] -= dz * pull;
                v[3 * j] += dx * pull;
                v[3 * j + 1] += dy * pull;
                v[3 * j + 2] += dz * pull;
            }
        }
        for (int i = 0; i < 3 * BODIES; i++) x[i] += dt * v[i];
    }
}
