/* Closes every descriptor and blocks every signal. */
#include "spin.h"
#include <signal.h>
#include <unistd.h>

int main(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    spin(300);
    return 6;
}
