/* Works in a thread whose name clears the screen, breaks the line, turns the direction of text and
   begins a control sequence in one character. */
#include "spin.h"
#include <pthread.h>
#include <sys/prctl.h>

static void *named(void *unused)
{
    prctl(PR_SET_NAME, "\x1b[2J\nx\xe2\x80\xae\xc2\x9b");
    spin(400);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, named, 0);
    return pthread_join(thread, 0);
}
