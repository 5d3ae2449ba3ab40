/* A few hundred milliseconds of integer work that no compiler removes. */
static void spin(unsigned long rounds)
{
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < rounds; i++)
        sum += i;
}
