/* Code at the end of a page whose next page comes late or never. KIND says who serves it:
 *   memory: a userfaultfd;  file: a file system of this process (FUSE).
 * Runs for SECONDS in THREADS threads, each on pages of its own. With a DELAY in milliseconds the page
 * comes after that time, else never. Exit status 77: this host does not permit it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

/* mov ecx, 1000000; dec ecx; jnz; ret */
static const unsigned char loop[] = {0xb9, 0x40, 0x42, 0x0f, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
/* The loop ends two bytes before its page does. */
static const size_t start = PAGE - sizeof loop - 2;
static double end;
static int delay_ms;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void refuse(const char *what)
{
    perror(what);
    exit(77);
}

static unsigned char *behind_memory(void)
{
    unsigned char *page = mmap(0, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page + start, loop, sizeof loop);
    return page;
}

static void *serve_memory(void *fd)
{
    int uffd = *(int *)fd;
    struct uffd_msg message;
    while (read(uffd, &message, sizeof message) == sizeof message) {
        usleep(delay_ms * 1000);
        struct uffdio_zeropage zero = {
            .range = {message.arg.pagefault.address & ~(PAGE - 1ul), PAGE}};
        ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
    }
    return 0;
}

static void guard(int uffd, unsigned char *page)
{
    struct uffdio_register ranges = {.range = {(unsigned long)page + PAGE, PAGE},
                                     .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(uffd, UFFDIO_REGISTER, &ranges))
        refuse("UFFDIO_REGISTER");
}

static void answer(int fuse, unsigned long unique, const void *body, size_t size, int error)
{
    char reply[sizeof(struct fuse_out_header) + 2 * PAGE];
    struct fuse_out_header *head = (void *)reply;
    *head = (struct fuse_out_header){.len = sizeof *head + size, .error = error, .unique = unique};
    memcpy(reply + sizeof *head, body, size);
    if (write(fuse, reply, head->len) < 0)
        return;
}

/* Every name is the same file of two pages. */
static void *serve_file(void *fd)
{
    int fuse = *(int *)fd;
    static char request[1 << 17];
    for (;;) {
        if (read(fuse, request, sizeof request) <= 0)
            return 0;
        struct fuse_in_header *in = (void *)request;
        struct fuse_attr attr = {.ino = in->nodeid, .size = 2 * PAGE, .blocks = 16, .nlink = 1,
                                 .mode = in->nodeid == 1 ? S_IFDIR | 0755 : S_IFREG | 0755};
        if (in->opcode == FUSE_INIT) {
            struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31,
                                        .max_write = PAGE};
            answer(fuse, in->unique, &out, sizeof out, 0);
        } else if (in->opcode == FUSE_LOOKUP) {
            attr.ino = 2;
            attr.mode = S_IFREG | 0755;
            struct fuse_entry_out out = {.nodeid = 2, .attr = attr, .entry_valid = 60,
                                         .attr_valid = 60};
            answer(fuse, in->unique, &out, sizeof out, 0);
        } else if (in->opcode == FUSE_GETATTR) {
            struct fuse_attr_out out = {.attr = attr, .attr_valid = 60};
            answer(fuse, in->unique, &out, sizeof out, 0);
        } else if (in->opcode == FUSE_OPEN) {
            struct fuse_open_out out = {0};
            answer(fuse, in->unique, &out, sizeof out, 0);
        } else if (in->opcode == FUSE_READ) {
            struct fuse_read_in *read_in = (void *)(in + 1);
            char page[PAGE] = {0};
            if (read_in->offset == 0)
                memcpy(page + start, loop, sizeof loop);
            else if (delay_ms == 0)
                continue; /* never */
            else
                usleep(delay_ms * 1000);
            answer(fuse, in->unique, page, PAGE, 0);
        } else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET &&
                   in->opcode != FUSE_INTERRUPT) {
            answer(fuse, in->unique, "", 0, -38 /* ENOSYS */);
        }
    }
}

static unsigned char *behind_file(const char *folder)
{
    static int fuse;
    fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0)
        refuse("/dev/fuse");
    if (unshare(CLONE_NEWNS) || mount("none", "/", 0, MS_REC | MS_PRIVATE, 0))
        refuse("unshare");
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,max_read=4096",
             fuse);
    if (mount("late", folder, "fuse", MS_NOSUID | MS_NODEV, options))
        refuse("mount");
    /* A process of its own, so that it answers while this one closes its files. */
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fclose(stdout);
        serve_file(&fuse);
        _exit(0);
    }
    close(fuse);
    char name[256];
    snprintf(name, sizeof name, "%s/code", folder);
    int file = open(name, O_RDONLY);
    if (file < 0)
        refuse(name);
    unsigned char *page = mmap(0, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        refuse("mmap");
    return page;
}

static void *run(void *page)
{
    void (*code)(void) = (void (*)(void))((unsigned char *)page + start);
    while (now() < end)
        for (int i = 0; i < 20; i++)
            code();
    return 0;
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    end = now() + atof(words[2]);
    int threads = atoi(words[3]);
    delay_ms = count > 4 ? atoi(words[4]) : 0;
    pthread_t workers[64];
    unsigned char *pages[64];
    if (strcmp(words[1], "file") == 0) {
        for (int i = 0; i < threads; i++)
            pages[i] = i == 0 ? behind_file(words[5]) : pages[0];
    } else {
        static int uffd;
        uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
        struct uffdio_api api = {.api = UFFD_API};
        if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api))
            refuse("userfaultfd");
        for (int i = 0; i < threads; i++)
            guard(uffd, pages[i] = behind_memory());
        pthread_t server;
        if (delay_ms)
            pthread_create(&server, 0, serve_memory, &uffd);
    }
    for (int i = 0; i < threads; i++)
        pthread_create(&workers[i], 0, run, pages[i]);
    for (int i = 0; i < threads; i++)
        pthread_join(workers[i], 0);
    puts("done");
    fflush(stdout);
    _exit(0);
}
