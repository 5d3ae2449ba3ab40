/* Says as whom it runs and how wide its words are, after some work. */
#include "spin.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words)
{
    spin(count > 1 ? strtoll(words[1], 0, 10) : 300);
    printf("user %d as %d, %d bits\n", (int)getuid(), (int)geteuid(), (int)(8 * sizeof(void *)));
    return 0;
}
