# Bodies that attract each other, with numbers that awk keeps as doubles.
BEGIN {
    n = 5
    for (i = 0; i < n; i++) {
        x[i] = i * 1.5; y[i] = (i * i) % 7; m[i] = 1 + i / 3; u[i] = 0; v[i] = 0
    }
    for (step = 0; step < steps; step++) {
        for (i = 0; i < n; i++)
            for (j = 0; j < n; j++)
                if (i != j) {
                    dx = x[j] - x[i]; dy = y[j] - y[i]
                    r = dx * dx + dy * dy + 0.1
                    f = m[j] / (r * sqrt(r))
                    u[i] += 0.001 * f * dx; v[i] += 0.001 * f * dy
                }
        for (i = 0; i < n; i++) { x[i] += 0.001 * u[i]; y[i] += 0.001 * v[i] }
    }
    print x[0], y[0]
}
