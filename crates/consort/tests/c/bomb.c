/* N processes, forked as fast as possible, that are alive together for a while. */
#include "spin.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    int wanted = count > 1 ? atoi(words[1]) : 10, ended = 0;
    for (int i = 0; i < wanted; i++) {
        pid_t child = fork();
        if (child < 0)
            return 9;
        if (child == 0) {
            spin(2);
            usleep(300000);
            _exit(0);
        }
    }
    while (wait(0) > 0)
        ended++;
    printf("%d processes\n", ended);
    return 0;
}
