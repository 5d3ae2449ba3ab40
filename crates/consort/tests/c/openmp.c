/* A floating-point loop on all threads of OpenMP. */
#include <stdio.h>

int main(void)
{
    double total = 0;
#pragma omp parallel for reduction(+ : total) num_threads(4) schedule(static)
    for (long part = 0; part < 32; part++) {
        double x = (double)part + 1.5, sum = 0;
        for (int i = 0; i < 4000000; i++) {
            x = x * 0.999999 + 0.5 / (x + 1.0);
            sum += x * x;
        }
        total += sum > 0 ? 1 : 0;
    }
    printf("%.0f\n", total);
    return 0;
}
