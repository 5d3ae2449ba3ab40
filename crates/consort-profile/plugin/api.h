/* The part of QEMU's plugin interface that the recorder uses.
 *
 * Declared here because Debian has no package with the header. Names and types are those of
 * QEMU's manual (docs/devel/tcg-plugins); what is used here is the same from QEMU 6.0 to 10.
 */
#ifndef CONSORT_API_H
#define CONSORT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

typedef void (*simple_cb)(qemu_plugin_id_t id);
typedef void (*thread_cb)(qemu_plugin_id_t id, unsigned int thread);
typedef void (*exit_cb)(qemu_plugin_id_t id, void *data);
typedef void (*translate_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*execute_cb)(unsigned int thread, void *data);
typedef void (*memory_cb)(unsigned int thread, qemu_plugin_meminfo_t info, uint64_t address,
                          void *data);
typedef void (*syscall_cb)(qemu_plugin_id_t id, unsigned int thread, int64_t number, uint64_t a1,
                           uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                           uint64_t a7, uint64_t a8);
typedef void (*return_cb)(qemu_plugin_id_t id, unsigned int thread, int64_t number,
                          int64_t returned);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translate_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, execute_cb cb,
                                          enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, memory_cb cb,
                                      enum qemu_plugin_cb_flags flags,
                                      enum qemu_plugin_mem_rw rw, void *data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, syscall_cb cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, return_cb cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, exit_cb cb, void *data);
void qemu_plugin_reset(qemu_plugin_id_t id, simple_cb cb);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t n);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#endif
