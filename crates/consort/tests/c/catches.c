/* Says each signal that it gets until SIGUSR2, which ends it with 5. */
#include <signal.h>
#include <stdio.h>

int main(void)
{
    sigset_t set;
    int got = 0;
    sigemptyset(&set);
    const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGTSTP, SIGCONT, SIGALRM};
    for (unsigned i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&set, watched[i]);
    sigprocmask(SIG_BLOCK, &set, 0);
    puts("ready");
    fflush(stdout);
    while (got != SIGUSR2) {
        sigwait(&set, &got);
        printf("%d\n", got);
        fflush(stdout);
    }
    return 5;
}
