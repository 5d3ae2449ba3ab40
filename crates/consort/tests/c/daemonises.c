/* Starts a daemon by the customary double fork, which outlives it by far, and says its pid. */
#include "spin.h"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int link[2];
    pid_t daemon = 0;
    if (pipe(link))
        return 9;
    if (fork() == 0) {
        setsid();
        if (fork())
            _exit(0);
        daemon = getpid();
        if (write(link[1], &daemon, sizeof daemon) != sizeof daemon)
            _exit(9);
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        alarm(120);
        for (;;)
            spin(2);
    }
    if (read(link[0], &daemon, sizeof daemon) != sizeof daemon)
        return 9;
    wait(0);
    spin(400);
    printf("%d\n", daemon);
    return 0;
}
