# A Mandelbrot set and some fits, computed by gnuplot's own interpreter; `n` is given from outside.
set terminal dumb
set output "/dev/null"
f(x, y, a, b, k) = k <= 0 || a * a + b * b > 4 ? k : f(x, y, a * a - b * b + x, 2 * a * b + y, k - 1)
set isosamples n, n
set samples n
splot [-2:1] [-1:1] f(x, y, 0, 0, 60)
