/* A QEMU user-mode plugin that sends what a program executes to Consort.
 *
 * Translated blocks are described once; after that each execution of a block is a word and each
 * access to memory is a word, in program order per thread. Between sampled windows blocks carry
 * a counter only: at each change QEMU is asked to translate afresh. What threads do to each other,
 * by beginning, ending, waiting and waking, is sent apart, in the order of the whole program.
 *
 * src/recorder/wire.rs reads what this writes; both name the fields alike.
 */
#include "api.h"
#include "calls.h"
#include "code.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

EXPORT int qemu_plugin_version = CONSORT_API;

#define MAX_THREADS 1024
#define WORDS 65536
/* Most words that one block is given room for ahead of its execution. */
#define BLOCK_WORDS 8192
#define DESCRIPTIONS (1 << 20)
/* Instructions that a thread takes at a time from the rest of a stage, which all threads share. */
#define RATION 16384
#define EVENTS 1024
/* Most distances of windows that follow each other. */
#define MAX_STEPS 16
/* Instructions between two reports of how many there were, for a program that is killed. */
#define PROGRESS (1 << 20)

struct block {
    uint32_t number;
    uint32_t instructions;
    bool records;
};

struct thread {
    uint64_t words[WORDS];
    size_t used;
    int64_t left;
    uint64_t executed;
    /* Its place in the order in which threads began; QEMU gives numbers again. */
    uint32_t place;
    /* The stage and the number of threads that its words tell of. */
    uint64_t mark;
    uint64_t living;
    bool makes_thread;
};

static qemu_plugin_id_t self;
static int channel = -1;
static uint64_t first_skip, warm, window, limit;
/* Distances of windows, and the number of windows at each; the last distance has no end. */
static uint64_t every[MAX_STEPS], count[MAX_STEPS];
static unsigned int steps, step;
/* Windows of this step that have ended. */
static uint64_t windows;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads[MAX_THREADS];
static struct thread *first;
static uint32_t threads_begun;
/* Threads that were asked for and have not ended. */
static volatile uint64_t living = 1;
static uint64_t executed_by_ended;
static struct event events[EVENTS];
static size_t events_used;
static unsigned char descriptions[DESCRIPTIONS];
static size_t described;
static uint32_t blocks;

static volatile enum stage stage = SKIP;
static volatile bool recording;
/* The word that tells of the stage, and of how many there were before. */
static volatile uint64_t mark;
static int64_t stage_left;
static uint64_t recorded;
/* Instructions that threads were given, and those of the last report. */
static uint64_t given, reported;

static void send_bytes(const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0 && channel >= 0) {
        ssize_t sent = write(channel, at, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            channel = -1;
            return;
        }
        at += sent;
        bytes -= (size_t)sent;
    }
}

static void send_part(enum kind kind, unsigned int thread, const void *from, size_t bytes)
{
    struct header header = {kind, thread, bytes};
    send_bytes(&header, sizeof header);
    send_bytes(from, bytes);
}

/* Descriptions go first, so that the reader knows every block before it is executed. */
static void flush_descriptions(void)
{
    if (described > 0)
        send_part(DESCRIBED, 0, descriptions, described);
    described = 0;
}

static void flush_locked(unsigned int number)
{
    struct thread *thread = threads[number];
    flush_descriptions();
    if (thread->used > 0)
        send_part(EXECUTED, thread->place, thread->words, thread->used * sizeof thread->words[0]);
    thread->used = 0;
}

static void flush(unsigned int number)
{
    pthread_mutex_lock(&lock);
    flush_locked(number);
    pthread_mutex_unlock(&lock);
}

static void flush_events(void)
{
    if (events_used > 0)
        send_part(HAPPENED, 0, events, events_used * sizeof events[0]);
    events_used = 0;
}

static struct event *event_locked(const struct thread *thread, enum deed deed, int64_t call)
{
    if (events_used == EVENTS)
        flush_events();
    struct event *event = &events[events_used++];
    memset(event, 0, sizeof *event);
    event->thread = thread->place;
    event->deed = deed;
    event->call = (uint64_t)call;
    event->executed = thread->executed;
    event->executed_by_first = first->executed;
    return event;
}

static void finish_locked(enum end end)
{
    uint64_t executed = executed_by_ended;
    for (unsigned int i = 0; i < MAX_THREADS; i++) {
        if (threads[i] == NULL)
            continue;
        flush_locked(i);
        executed += threads[i]->executed;
        event_locked(threads[i], ENDED, 0);
    }
    flush_events();
    uint64_t last[2] = {end, executed};
    send_part(FINISHED, 0, last, sizeof last);
}

static void begin_locked(unsigned int number)
{
    struct thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        return;
    thread->place = threads_begun++;
    thread->mark = UINT64_MAX;
    thread->living = 1;
    if (first == NULL)
        first = thread;
    threads[number] = thread;
    event_locked(thread, BEGAN, 0);
}

static struct thread *thread_of(unsigned int number)
{
    if (number >= MAX_THREADS)
        return NULL;
    if (threads[number] == NULL) {
        pthread_mutex_lock(&lock);
        begin_locked(number);
        pthread_mutex_unlock(&lock);
    }
    return threads[number];
}

/* The first thread stays, for events tell how far it came. */
static void end_locked(unsigned int number)
{
    struct thread *thread = threads[number];
    flush_locked(number);
    event_locked(thread, ENDED, 0);
    living--;
    executed_by_ended += thread->executed;
    threads[number] = NULL;
    if (thread != first)
        free(thread);
}

static void put(struct thread *thread, uint64_t word)
{
    if (thread->used < WORDS)
        thread->words[thread->used++] = word;
}

static int64_t length_of(enum stage of)
{
    if (window == 0)
        return of == SKIP ? (int64_t)first_skip : INT64_MAX;
    uint64_t gap = every[step] - window;
    uint64_t warms = warm < gap ? warm : gap;
    if (of == SKIP)
        return (int64_t)(gap - warms);
    return (int64_t)(of == WARM ? warms : window);
}

/* What comes behind a stage; stages of no length are passed over. */
static enum stage stage_behind(enum stage of)
{
    static const enum stage next[] = {WARM, WINDOW, SKIP};
    enum stage to = next[of];
    if (of == WINDOW && ++windows == count[step] && step + 1 < steps) {
        step++;
        windows = 0;
    }
    while (length_of(to) == 0)
        to = next[to];
    return window == 0 ? WINDOW : to;
}

static void install(qemu_plugin_id_t id);

static void enter_locked(enum stage to)
{
    bool was = recording;
    stage = to;
    stage_left = length_of(to);
    recording = to != SKIP;
    mark = WORD_STAGE | ((uint64_t)to << 56) | ((mark + 1) & (LOW_60 >> 4));
    if (was != recording)
        qemu_plugin_reset(self, install);
}

static void stop_at_limit(void)
{
    finish_locked(LIMIT_REACHED);
    syscall(SYS_exit_group, 0);
}

/* Gives a thread its next share of the stage, which may be a new one. */
static void refill(struct thread *thread)
{
    pthread_mutex_lock(&lock);
    if (stage_left <= 0) {
        if (limit != 0 && recorded >= limit)
            stop_at_limit();
        enter_locked(stage_behind(stage));
    }
    int64_t share = stage_left < RATION ? stage_left : RATION;
    int64_t until_limit = (int64_t)(limit - recorded);
    if (limit != 0 && stage == WINDOW && share >= until_limit) {
        share = until_limit;
        stage_left = share;
    }
    stage_left -= share;
    if (stage == WINDOW)
        recorded += (uint64_t)share;
    thread->left += share;
    if (given - reported >= PROGRESS) {
        reported = given;
        send_part(PROGRESSED, 0, &given, sizeof given);
    }
    given += (uint64_t)share;
    pthread_mutex_unlock(&lock);
}

static void on_execute(unsigned int number, void *data)
{
    const struct block *block = data;
    struct thread *thread = thread_of(number);
    if (thread == NULL)
        return;
    while (thread->left <= 0)
        refill(thread);
    thread->left -= block->instructions;
    thread->executed += block->instructions;
    if (!recording || !block->records)
        return;
    if (thread->used > WORDS - BLOCK_WORDS)
        flush(number);
    if (thread->mark != mark) {
        thread->mark = mark;
        put(thread, thread->mark);
    }
    put(thread, WORD_BLOCK | block->number);
}

static void on_access(unsigned int number, qemu_plugin_meminfo_t info, uint64_t address,
                      void *data)
{
    struct thread *thread = number < MAX_THREADS ? threads[number] : NULL;
    if (!recording || thread == NULL || thread->mark != mark)
        return;
    uint64_t store = qemu_plugin_mem_is_store(info) ? UINT64_C(1) << 62 : 0;
    uint64_t size = (uint64_t)(qemu_plugin_mem_size_shift(info) & 7) << 59;
    put(thread, store | size | ((uint64_t)(uintptr_t)data << 50) | (address & ADDRESS));
}

/* Tells of calls that other threads feel. */
static void tell_locked(unsigned int number, int64_t call, const uint64_t arguments[3])
{
    struct thread *thread = threads[number];
    thread->makes_thread = makes_thread(call, arguments[0]);
    living += thread->makes_thread;
    /* What waits leaves nothing behind. */
    if (may_block(call) && living > 1)
        flush_locked(number);
    if (call == SYS_exit)
        end_locked(number);
    else if (call == SYS_clone || may_block(call))
        memcpy(event_locked(thread, CALLED, call)->arguments, arguments, 3 * sizeof *arguments);
    if (call == SYS_execve || call == SYS_execveat)
        finish_locked(PROGRAM_REPLACED);
}

static void on_syscall(qemu_plugin_id_t id, unsigned int number, int64_t call, uint64_t a1,
                       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                       uint64_t a7, uint64_t a8)
{
    struct thread *thread = thread_of(number);
    const uint64_t arguments[3] = {a1, a2, a3};
    (void)id, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (thread == NULL || call < 0)
        return;
    if (thread->used > WORDS - BLOCK_WORDS)
        flush(number);
    put(thread, WORD_SYSCALL | ((uint64_t)call & LOW_60));
    for (int i = 0; i < 3; i++)
        put(thread, WORD_ARGUMENT | (arguments[i] & LOW_60));
    pthread_mutex_lock(&lock);
    tell_locked(number, call, arguments);
    pthread_mutex_unlock(&lock);
}

static void on_return(qemu_plugin_id_t id, unsigned int number, int64_t call, int64_t returned)
{
    struct thread *thread = thread_of(number);
    (void)id;
    if (thread == NULL || call < 0)
        return;
    pthread_mutex_lock(&lock);
    if (thread->makes_thread && returned < 0)
        living--;
    thread->makes_thread = false;
    if (call == SYS_clone || may_block(call))
        event_locked(thread, RETURNED, call)->arguments[0] = (uint64_t)returned;
    pthread_mutex_unlock(&lock);
    if (thread->living != living) {
        thread->living = living;
        put(thread, WORD_LIVING | (thread->living & LOW_60));
    }
}

static void describe_locked(const struct qemu_plugin_tb *from, const struct block *block)
{
    size_t worst = 16 + (size_t)block->instructions * 16;
    if (described + worst > DESCRIPTIONS)
        flush_descriptions();
    unsigned char *at = descriptions + described;
    uint64_t start = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(from, 0));
    memcpy(at, &block->number, 4);
    memcpy(at + 4, &block->instructions, 4);
    memcpy(at + 8, &start, 8);
    at += 16;
    for (size_t i = 0; i < block->instructions; i++) {
        const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(from, i);
        size_t size = qemu_plugin_insn_size(insn);
        *at++ = (unsigned char)size;
        memcpy(at, qemu_plugin_insn_haddr(insn), size);
        at += size;
    }
    described = (size_t)(at - descriptions);
}

static void register_accesses(struct qemu_plugin_insn *insn, size_t number, bool records)
{
    const unsigned char *code = qemu_plugin_insn_haddr(insn);
    size_t size = qemu_plugin_insn_size(insn);
    if (records ? !is_system_call(code, size) : is_by_function(code, size))
        qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW, (void *)(uintptr_t)number);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *from)
{
    struct block *block = malloc(sizeof *block);
    (void)id;
    if (block == NULL)
        return;
    block->instructions = (uint32_t)qemu_plugin_tb_n_insns(from);
    block->records = recording;
    block->number = 0;
    if (block->records) {
        pthread_mutex_lock(&lock);
        block->number = blocks++;
        describe_locked(from, block);
        pthread_mutex_unlock(&lock);
    }
    for (size_t i = 0; i < block->instructions; i++)
        register_accesses(qemu_plugin_tb_get_insn(from, i), i, block->records);
    qemu_plugin_register_vcpu_tb_exec_cb(from, on_execute, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void on_exit_of_program(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    pthread_mutex_lock(&lock);
    finish_locked(PROGRAM_ENDED);
    pthread_mutex_unlock(&lock);
}

/* A child is made while nobody holds the lock, or it would wait for who is not in it. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Children of the program go on unrecorded. */
static void on_fork_in_child(void)
{
    after_fork();
    if (channel >= 0)
        close(channel);
    channel = -1;
}

static void install(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
}

/* Reads numbers with a plus between them; returns how many there are. */
static unsigned int options(int argc, char **argv, const char *name, unsigned int most,
                            uint64_t numbers[])
{
    size_t length = strlen(name);
    const char *from = NULL;
    unsigned int found = 0;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            from = argv[i] + length;
    while (from != NULL && found < most) {
        char *end;
        numbers[found++] = strtoull(from + 1, &end, 10);
        from = *end == '+' ? end : NULL;
    }
    return found;
}

static uint64_t option(int argc, char **argv, const char *name)
{
    uint64_t number = 0;
    options(argc, argv, name, 1, &number);
    return number;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                               char **argv)
{
    (void)info;
    self = id;
    channel = (int)option(argc, argv, "channel");
    first_skip = option(argc, argv, "skip");
    steps = options(argc, argv, "every", MAX_STEPS, every);
    options(argc, argv, "windows", MAX_STEPS, count);
    warm = option(argc, argv, "warm");
    window = option(argc, argv, "window");
    limit = option(argc, argv, "limit");
    fcntl(channel, F_SETFD, FD_CLOEXEC);
    pthread_atfork(before_fork, after_fork, on_fork_in_child);
    stage = first_skip > 0 ? SKIP : stage_behind(SKIP);
    stage_left = first_skip > 0 ? (int64_t)first_skip : length_of(stage);
    recording = stage != SKIP;
    mark = WORD_STAGE | ((uint64_t)stage << 56);
    install(id);
    return 0;
}
