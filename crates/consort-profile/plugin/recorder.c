/* A QEMU user-mode plugin that sends what a program executes to Consort.
 *
 * Translated blocks are described once; after that each execution of a block is a word and each
 * access to memory is a word, in program order per thread. Between sampled windows blocks carry
 * a counter only: at each change QEMU is asked to translate afresh.
 *
 * src/recorder/wire.rs reads what this writes; both name the fields alike.
 */
#include "api.h"

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
/* Instructions that a thread takes at a time from the rest of a stage when there are several. */
#define RATION 16384

enum kind { DESCRIBED = 1, EXECUTED = 2, FINISHED = 3 };
enum stage { SKIP = 0, WARM = 1, WINDOW = 2 };
/* How the recording ended. */
enum end { PROGRAM_ENDED = 0, LIMIT_REACHED = 1, PROGRAM_REPLACED = 2 };

#define WORD_BLOCK (UINT64_C(8) << 60)
#define WORD_STAGE (UINT64_C(9) << 60)
#define WORD_SYSCALL (UINT64_C(10) << 60)
#define WORD_ARGUMENT (UINT64_C(11) << 60)
#define LOW_60 ((UINT64_C(1) << 60) - 1)
#define ADDRESS ((UINT64_C(1) << 50) - 1)

struct header {
    uint32_t kind;
    uint32_t thread;
    uint64_t bytes;
};

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
};

static qemu_plugin_id_t self;
static int channel = -1;
static uint64_t first_skip, every, warm, window, limit;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread *threads[MAX_THREADS];
static unsigned int thread_count;
static unsigned char descriptions[DESCRIPTIONS];
static size_t described;
static uint32_t blocks;

static volatile enum stage stage = SKIP;
static volatile bool recording;
static int64_t stage_left;
static uint64_t recorded;

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
        send_part(EXECUTED, number, thread->words, thread->used * sizeof thread->words[0]);
    thread->used = 0;
}

static void flush(unsigned int number)
{
    pthread_mutex_lock(&lock);
    flush_locked(number);
    pthread_mutex_unlock(&lock);
}

static void finish_locked(enum end end)
{
    uint64_t executed = 0;
    for (unsigned int i = 0; i < MAX_THREADS; i++) {
        if (threads[i] == NULL)
            continue;
        flush_locked(i);
        executed += threads[i]->executed;
    }
    uint64_t last[2] = {end, executed};
    send_part(FINISHED, 0, last, sizeof last);
}

static struct thread *thread_of(unsigned int number)
{
    if (number >= MAX_THREADS)
        return NULL;
    if (threads[number] == NULL) {
        pthread_mutex_lock(&lock);
        threads[number] = calloc(1, sizeof *threads[number]);
        thread_count++;
        pthread_mutex_unlock(&lock);
    }
    return threads[number];
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
    if (of == SKIP)
        return (int64_t)(every - warm - window);
    return (int64_t)(of == WARM ? warm : window);
}

/* What comes behind a stage; stages of no length are passed over. */
static enum stage stage_behind(enum stage of)
{
    static const enum stage next[] = {WARM, WINDOW, SKIP};
    enum stage to = next[of];
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
    if (was != recording)
        qemu_plugin_reset(self, install);
}

static void stop_at_limit(void)
{
    finish_locked(LIMIT_REACHED);
    syscall(SYS_exit_group, 0);
}

/* Gives a thread its next share of the stage, which may be a new one. */
static void refill(unsigned int number, struct thread *thread)
{
    pthread_mutex_lock(&lock);
    if (stage_left <= 0) {
        if (limit != 0 && recorded >= limit)
            stop_at_limit();
        enter_locked(stage_behind(stage));
        put(thread, WORD_STAGE | ((uint64_t)stage << 56) | (thread->executed & (LOW_60 >> 4)));
    }
    int64_t share = thread_count == 1 || stage_left < RATION ? stage_left : RATION;
    int64_t until_limit = (int64_t)(limit - recorded);
    if (limit != 0 && stage == WINDOW && share >= until_limit) {
        share = until_limit;
        stage_left = share;
    }
    stage_left -= share;
    if (stage == WINDOW)
        recorded += (uint64_t)share;
    thread->left += share;
    pthread_mutex_unlock(&lock);
    (void)number;
}

static void on_execute(unsigned int number, void *data)
{
    const struct block *block = data;
    struct thread *thread = thread_of(number);
    if (thread == NULL)
        return;
    while (thread->left <= 0)
        refill(number, thread);
    thread->left -= block->instructions;
    thread->executed += block->instructions;
    if (!recording || !block->records)
        return;
    if (thread->used > WORDS - BLOCK_WORDS)
        flush(number);
    put(thread, WORD_BLOCK | block->number);
}

static void on_access(unsigned int number, qemu_plugin_meminfo_t info, uint64_t address,
                      void *data)
{
    struct thread *thread = number < MAX_THREADS ? threads[number] : NULL;
    if (!recording || thread == NULL)
        return;
    uint64_t store = qemu_plugin_mem_is_store(info) ? UINT64_C(1) << 62 : 0;
    uint64_t size = (uint64_t)(qemu_plugin_mem_size_shift(info) & 7) << 59;
    put(thread, store | size | ((uint64_t)(uintptr_t)data << 50) | (address & ADDRESS));
}

static void on_syscall(qemu_plugin_id_t id, unsigned int number, int64_t call, uint64_t a1,
                       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                       uint64_t a7, uint64_t a8)
{
    struct thread *thread = thread_of(number);
    (void)id, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (thread == NULL || call < 0)
        return;
    if (thread->used > WORDS - BLOCK_WORDS)
        flush(number);
    put(thread, WORD_SYSCALL | ((uint64_t)call & LOW_60));
    put(thread, WORD_ARGUMENT | (a1 & LOW_60));
    put(thread, WORD_ARGUMENT | (a2 & LOW_60));
    if (call == SYS_execve || call == SYS_execveat) {
        pthread_mutex_lock(&lock);
        finish_locked(PROGRAM_REPLACED);
        pthread_mutex_unlock(&lock);
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

/* Whether an instruction is a system call. It touches no memory, and QEMU before 8.0 leaves it by
 * a jump that keeps a pointer to its callbacks, which the next reset frees. */
static bool is_system_call(const struct qemu_plugin_insn *insn)
{
    static const unsigned char code[] = {0x0f, 0x05};
    return qemu_plugin_insn_size(insn) == sizeof code &&
           memcmp(qemu_plugin_insn_haddr(insn), code, sizeof code) == 0;
}

static void register_accesses(struct qemu_plugin_insn *insn, size_t number)
{
    if (!is_system_call(insn))
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
        for (size_t i = 0; i < block->instructions; i++)
            register_accesses(qemu_plugin_tb_get_insn(from, i), i);
    }
    qemu_plugin_register_vcpu_tb_exec_cb(from, on_execute, QEMU_PLUGIN_CB_NO_REGS, block);
}

static void on_exit_of_program(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    pthread_mutex_lock(&lock);
    finish_locked(PROGRAM_ENDED);
    pthread_mutex_unlock(&lock);
}

/* Children of the program go on unrecorded. */
static void on_fork_in_child(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
}

static void install(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_atexit_cb(id, on_exit_of_program, NULL);
}

static uint64_t option(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return strtoull(argv[i] + length + 1, NULL, 10);
    return 0;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                               char **argv)
{
    (void)info;
    self = id;
    channel = (int)option(argc, argv, "channel");
    first_skip = option(argc, argv, "skip");
    every = option(argc, argv, "every");
    warm = option(argc, argv, "warm");
    window = option(argc, argv, "window");
    limit = option(argc, argv, "limit");
    fcntl(channel, F_SETFD, FD_CLOEXEC);
    pthread_atfork(NULL, NULL, on_fork_in_child);
    stage = first_skip > 0 ? SKIP : stage_behind(SKIP);
    stage_left = first_skip > 0 ? (int64_t)first_skip : length_of(stage);
    recording = stage != SKIP;
    install(id);
    return 0;
}
