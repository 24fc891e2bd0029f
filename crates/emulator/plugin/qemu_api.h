/*
 * The part of QEMU's plugin interface, version 1 (QEMU 7.2 and 8), that the access counter uses.
 *
 * Debian installs QEMU without its plugin header, so what we call is declared here, from the
 * interface's documentation (https://www.qemu.org/docs/master/devel/tcg-plugins.html). Types that
 * the interface calls opaque are left incomplete.
 */
#ifndef ATOLL_QEMU_API_H
#define ATOLL_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

/* The version of the interface that a plugin was written for. */
EXPORTED extern int qemu_plugin_version;
#define PLUGIN_VERSION 1

/* Called when the plugin is loaded; anything but 0 ends the emulator. */
EXPORTED int qemu_plugin_install(uint64_t id, const void *machine, int count, char **arguments);

struct qemu_plugin_tb;     /* a block of code being translated */
struct qemu_plugin_insn;   /* an instruction of it */
struct qemu_plugin_hwaddr; /* where an access really goes */
typedef uint32_t qemu_plugin_meminfo_t;

/* Callbacks that do not look at registers; accesses of both kinds; adding to a number in place. */
enum { CALLBACK_NO_REGISTERS = 0 };
enum { READS_AND_WRITES = 3 };
enum { ADD_U64 = 0 };

/* When a block is translated, and when the emulator ends. */
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                           void (*call)(uint64_t id, struct qemu_plugin_tb *));
void qemu_plugin_register_atexit_cb(uint64_t id, void (*call)(uint64_t id, void *), void *data);

/* The block and its instructions. */
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);

/* What is to happen when they are executed. */
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation,
                                              void *number, uint64_t operand);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *,
                                            void (*call)(unsigned cpu, void *data), int flags,
                                            void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*call)(unsigned cpu, qemu_plugin_meminfo_t,
                                                   uint64_t address, void *data),
                                      int flags, int accesses, void *data);

/* An access: how many bytes (as a power of two), which way, and where to. */
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#endif
