/* A QEMU user-mode plugin that counts each thread's instructions between the events that tell.c
 * tells. Blocks of code are counted when they begin; one that a signal or fault leaves early counts
 * whole.
 *
 * Output, one line each, all of the region of interest (numbers are instructions unless said):
 *   total ALL                       of all threads from the start to the end of the program
 *   thread T IN_REGION              of one thread in the region
 *   barrier T STRETCH               from the last barrier, or the region's begin, to this one
 *   rest T STRETCH                  from the last barrier to the thread's or the region's end
 *   lock T ADDRESS TIMES HELD       how often one thread had one lock, and for how long together
 *   wait T CONDITIONS SEMAPHORES POSTS   how often
 */
#include "api.h"
#include "events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

EXPORT int qemu_plugin_version = CONSORT_API;

#define MAX_THREADS 128
#define LOCKS (1 << 16)
#define NESTED 16

struct lock {
    uint64_t address, times, held;
};

struct thread {
    uint64_t count;
    uint64_t begin; /* where the region began */
    uint64_t since; /* where the stretch began */
    uint64_t conditions, semaphores, posts;
    uint64_t held_address[NESTED], held_since[NESTED];
    unsigned nested;
    struct lock *locks;
} __attribute__((aligned(128)));

static struct thread threads[MAX_THREADS];
static bool region;
static uint64_t region_end[MAX_THREADS];
static bool ended;
static FILE *out;
static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void execute(unsigned int t, void *data)
{
    threads[t].count += (uintptr_t)data;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    uintptr_t n = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_cb(block, execute, QEMU_PLUGIN_CB_NO_REGS, (void *)n);
}

static struct lock *find(struct thread *thread, uint64_t address)
{
    if (!thread->locks)
        thread->locks = calloc(LOCKS, sizeof(struct lock));
    size_t at = (address >> 3) * 0x9E3779B97F4A7C15u >> 48;
    while (thread->locks[at].address && thread->locks[at].address != address)
        at = (at + 1) % LOCKS;
    thread->locks[at].address = address;
    return &thread->locks[at];
}

static void hold(struct thread *thread, uint64_t address)
{
    if (thread->nested == NESTED)
        abort();
    thread->held_address[thread->nested] = address;
    thread->held_since[thread->nested++] = thread->count;
}

/* Locks are let go in any order. */
static void let_go(struct thread *thread, uint64_t address)
{
    for (unsigned i = thread->nested; i-- > 0;) {
        if (thread->held_address[i] != address)
            continue;
        struct lock *lock = find(thread, address);
        lock->times++;
        lock->held += thread->count - thread->held_since[i];
        thread->nested--;
        for (; i < thread->nested; i++) {
            thread->held_address[i] = thread->held_address[i + 1];
            thread->held_since[i] = thread->held_since[i + 1];
        }
        return;
    }
}

static void line(const char *what, unsigned t, uint64_t instructions)
{
    pthread_mutex_lock(&printing);
    fprintf(out, "%s %u %" PRIu64 "\n", what, t, instructions);
    pthread_mutex_unlock(&printing);
}

static void mark_region(bool begins)
{
    for (unsigned t = 0; t < MAX_THREADS; t++) {
        if (begins)
            threads[t].begin = threads[t].since = threads[t].count;
        else
            region_end[t] = threads[t].count;
    }
    region = begins;
    ended = !begins;
}

static void hear(qemu_plugin_id_t id, unsigned int t, int64_t number, uint64_t event,
                 uint64_t object, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7,
                 uint64_t a8)
{
    (void)id, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != EVENT_CALL)
        return;
    struct thread *thread = &threads[t];
    if (event == REGION_BEGIN || event == REGION_END) {
        mark_region(event == REGION_BEGIN);
        return;
    }
    if (!region)
        return;
    switch (event) {
    case LOCKED:
        hold(thread, object);
        break;
    case UNLOCKING:
        let_go(thread, object);
        break;
    case BARRIER_IN:
        line("barrier", t, thread->count - thread->since);
        break;
    case BARRIER_OUT:
        thread->since = thread->count;
        break;
    case COND_WAIT:
        thread->conditions++;
        let_go(thread, object);
        break;
    case COND_WOKEN:
        hold(thread, object);
        break;
    case SEM_WAIT:
        thread->semaphores++;
        break;
    case SEM_POST:
        thread->posts++;
        break;
    }
}

static void report(unsigned t)
{
    struct thread *thread = &threads[t];
    uint64_t end = ended ? region_end[t] : thread->count;
    line("thread", t, end - thread->begin);
    line("rest", t, end - thread->since);
    fprintf(out, "wait %u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t, thread->conditions,
            thread->semaphores, thread->posts);
    for (size_t i = 0; thread->locks && i < LOCKS; i++) {
        struct lock *lock = &thread->locks[i];
        if (lock->times)
            fprintf(out, "lock %u %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", t, lock->address,
                    lock->times, lock->held);
    }
}

static void finish(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    uint64_t all = 0;
    for (unsigned t = 0; t < MAX_THREADS; t++)
        all += threads[t].count;
    fprintf(out, "total %" PRIu64 "\n", all);
    for (unsigned t = 0; t < MAX_THREADS; t++)
        if (threads[t].count)
            report(t);
    fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    (void)info;
    /* One argument: out=FILE. */
    if (argc != 1)
        return 1;
    char *file = argv[0];
    while (*file && *file++ != '=')
        ;
    out = fopen(file, "w");
    if (!out)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_vcpu_syscall_cb(id, hear);
    qemu_plugin_register_atexit_cb(id, finish, NULL);
    return 0;
}
