/*
 * The access counter: a plugin of the emulator that models the caches of a NUMA machine and counts
 * the lines that are filled from, and written back to, the memory of each node by each node.
 *
 * The model
 * - Three levels of set-associative caches with least-recently-used replacement and lines of 64
 *   bytes. A miss fills all levels; a level holds what it holds, whatever the others do (neither
 *   inclusive nor exclusive). A dirty line that leaves a level is marked in the next one that
 *   has it; where none has, it is written back to memory.
 * - Accesses of user programs to data count; instruction fetches and the kernel do not.
 * - There is no coherence between caches of the same level: false sharing and transfers from
 *   cache to cache are not seen.
 * - There is no hardware prefetching, which changes who asks for a line but not where it is.
 *
 * Windows: ranges of addresses that a program names before or in a region. Fills that are asked for by
 * an address in one are counted apart as well. Nothing tells programs from each other: one that
 * runs meanwhile and has something else at the same addresses would be counted with it.
 *
 * Arguments
 *   out=FD         an open file that takes a line of JSON for each region
 *   roi=on|off     whether the program marks regions, or the whole command is one
 *   nodes=N        number of memory nodes; mib=M: memory of each
 *   cpus=LIST      for each cpu its node and its three caches, as NODE.L1.L2.LLC, joined by '+'
 *   l1=B.W, l2=B.W, llc=B.W   capacity in bytes and ways
 *
 * Marks of regions are NOPs: see guest/atoll_roi.h.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll_roi.h"
#include "qemu_api.h"

EXPORTED int qemu_plugin_version = PLUGIN_VERSION;

enum { MAX_NODES = 32, MAX_CPUS = 128, LEVELS = 3, LINE_BITS = 6, PAGE_BITS = 12, TLB = 512,
       MAX_WINDOWS = 64 };

/* ---- Caches ---- */

/* Lines are kept as their number plus one, shifted, with the lowest bit for dirty; 0 is no line.
 * The ways of a set are in the order of their last use. */
struct cache {
    uint64_t *lines;
    uint64_t sets;
    unsigned ways;
    unsigned cpu; /* one of those that use it */
    bool shared;
    atomic_flag busy;
};

static void lock(struct cache *cache)
{
    if (cache->shared)
        while (atomic_flag_test_and_set_explicit(&cache->busy, memory_order_acquire))
            ;
}

static void unlock(struct cache *cache)
{
    if (cache->shared)
        atomic_flag_clear_explicit(&cache->busy, memory_order_release);
}

static inline uint64_t *set_of(struct cache *cache, uint64_t line)
{
    uint64_t sets = cache->sets;
    uint64_t set = sets & (sets - 1) ? line % sets : line & (sets - 1);
    return cache->lines + set * cache->ways;
}

/* Uses a line, which is put in where it is missing. Returns whether it was there; *victim is what
 * had to leave for it. */
static inline bool use(struct cache *cache, uint64_t line, bool dirty, uint64_t *victim)
{
    uint64_t wanted = (line + 1) << 1;
    lock(cache);
    uint64_t *set = set_of(cache, line);
    unsigned at = 0, last = cache->ways - 1;
    while (at < last && (set[at] & ~1ull) != wanted)
        at++;
    uint64_t was = set[at];
    bool hit = (was & ~1ull) == wanted;
    for (; at > 0; at--)
        set[at] = set[at - 1];
    set[0] = (hit ? was : wanted) | dirty;
    *victim = hit ? 0 : was;
    unlock(cache);
    return hit;
}

/* A dirty line leaves the level above: marks it here. Returns whether it is here. */
static bool take_back(struct cache *cache, uint64_t line)
{
    uint64_t wanted = (line + 1) << 1;
    bool found = false;
    lock(cache);
    uint64_t *set = set_of(cache, line);
    for (unsigned at = 0; at < cache->ways && !found; at++)
        if ((set[at] & ~1ull) == wanted) {
            set[at] |= 1;
            found = true;
        }
    unlock(cache);
    return found;
}

/* ---- Processors ---- */

/* Written by one cpu each, read by whichever ends a region. */
typedef _Atomic uint64_t counter;

static inline void bump(counter *counter)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

static uint64_t value(counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Where a page of a program's addresses is; valid in the generation it was noted in. */
struct translation {
    uint64_t generation, virtual_page, page;
};

struct cpu {
    unsigned node;
    struct cache *caches[LEVELS];
    int shows; /* the mark that says what its next access shows: a node, an end of a window */
    uint64_t generation;
    struct translation tlb[TLB];
    counter accesses, misses[LEVELS - 1];
    counter fills[MAX_NODES], write_backs[MAX_NODES], in_windows[MAX_NODES];
};

static struct cpu cpus[MAX_CPUS];
static struct cache caches[LEVELS][MAX_CPUS];
static unsigned cpu_count, nodes = 1;
static uint64_t node_bytes;
static FILE *out;
static bool marks;
static atomic_bool counting;

/* Instructions of programs; translated code adds to it in place. */
static counter instructions;

/* ---- Nodes ---- */

/* What the emulator reports as physical address. QEMU 7.2 adds a block's place among the
 * blocks to its place in memory, so that node n with B bytes starts at 2nB. Later ones report the guest's
 * address, with a gap below 4 GiB where there is more than 2.75 GiB of memory. */
enum layout { BLOCKS, ADDRESSES, LAYOUTS };
static enum layout layout;
static bool fits[LAYOUTS] = {true, true};
static unsigned nodes_shown;

static unsigned node_in(enum layout layout, uint64_t address)
{
    const uint64_t gap_end = 4ull << 30, all = nodes * node_bytes;
    const uint64_t low = all >= 0xb0000000 ? 0x80000000 : all;
    if (layout == BLOCKS)
        return address / (2 * node_bytes);
    return (address >= gap_end ? address - gap_end + low : address) / node_bytes;
}

static inline unsigned node_of(uint64_t line)
{
    unsigned node = node_in(layout, line << LINE_BITS);
    return node < nodes ? node : nodes - 1;
}

/* The guest's first process has stored to memory of the next node: which layout explains it? */
static void check_node(uint64_t address)
{
    for (int each = 0; each < LAYOUTS; each++)
        fits[each] &= node_in(each, address) == nodes_shown;
    nodes_shown++;
    layout = fits[BLOCKS] ? BLOCKS : ADDRESSES;
}

/* ---- Windows ---- */

static struct window {
    uint64_t first, last;
} windows[MAX_WINDOWS];
static atomic_uint window_count;
static bool too_many_windows;

static bool in_window(uint64_t address)
{
    unsigned count = atomic_load_explicit(&window_count, memory_order_acquire);
    for (unsigned at = 0; at < count; at++)
        if (windows[at].first <= address && address <= windows[at].last)
            return true;
    return false;
}

/* An end of a window: the last byte completes what the first has begun. */
static void show_window(int mark, uint64_t address)
{
    unsigned count = atomic_load(&window_count);
    if (count == MAX_WINDOWS) {
        too_many_windows = true;
    } else if (mark == ATOLL_WINDOW_FIRST) {
        windows[count].first = address;
    } else {
        windows[count].last = address;
        atomic_store_explicit(&window_count, count + 1, memory_order_release);
    }
}

/* ---- Accesses ---- */

/* A dirty line leaves a cache of this level, counted from 0. */
static void leave(struct cpu *cpu, int level, uint64_t line)
{
    while (++level < LEVELS)
        if (take_back(cpu->caches[level], line))
            return;
    bump(&cpu->write_backs[node_of(line)]);
}

static void access_line(struct cpu *cpu, uint64_t line, bool store, uint64_t address)
{
    for (int level = 0; level < LEVELS; level++) {
        uint64_t victim;
        /* Dirty is known to the first level only, until the line leaves it. */
        bool hit = use(cpu->caches[level], line, store && level == 0, &victim);
        if (victim & 1)
            leave(cpu, level, (victim >> 1) - 1);
        if (hit)
            return;
        if (level < LEVELS - 1)
            bump(&cpu->misses[level]);
    }
    bump(&cpu->fills[node_of(line)]);
    if (in_window(address))
        bump(&cpu->in_windows[node_of(line)]);
}

/* The page that is accessed, asked of the emulator once for each generation. */
static bool translate(struct cpu *cpu, qemu_plugin_meminfo_t info, uint64_t address,
                      uint64_t *page)
{
    uint64_t virtual_page = address >> PAGE_BITS;
    struct translation *known = &cpu->tlb[virtual_page % TLB];
    if (known->generation != cpu->generation || known->virtual_page != virtual_page) {
        struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
        if (!place || qemu_plugin_hwaddr_is_io(place))
            return false;
        known->page = qemu_plugin_hwaddr_phys_addr(place) >> PAGE_BITS;
        known->virtual_page = virtual_page;
        known->generation = cpu->generation;
    }
    *page = known->page;
    return true;
}

static void on_access(unsigned index, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
    (void)data;
    struct cpu *cpu = &cpus[index];
    uint64_t page;
    if (!atomic_load_explicit(&counting, memory_order_relaxed) && !cpu->shows)
        return;
    if (!translate(cpu, info, address, &page))
        return;
    uint64_t in_page = address & ((1 << PAGE_BITS) - 1);
    bool store = qemu_plugin_mem_is_store(info);
    if (cpu->shows) {
        int mark = cpu->shows;
        cpu->shows = 0;
        if (mark == ATOLL_ON_NODE)
            check_node(page << PAGE_BITS);
        else
            show_window(mark, address);
        return;
    }
    uint64_t line = (page << PAGE_BITS | in_page) >> LINE_BITS;
    uint64_t last = in_page + (1u << qemu_plugin_mem_size_shift(info)) - 1;
    bump(&cpu->accesses);
    access_line(cpu, line, store, address);
    /* Into the next line, but not the next page, whose place is not known here. */
    if (last >> LINE_BITS != in_page >> LINE_BITS && last >> PAGE_BITS == 0)
        access_line(cpu, line + 1, store, address + (last - in_page));
}

/* The kernel has a cpu forget where pages are. */
static void on_forget(unsigned index, void *data)
{
    (void)data;
    cpus[index].generation++;
}

/* ---- Regions ---- */

/* What had been counted when the region began; cpus are never interrupted to set counters to 0. */
struct sums {
    uint64_t accesses, misses[LEVELS - 1], instructions;
    uint64_t fills[MAX_NODES][MAX_NODES], write_backs[MAX_NODES][MAX_NODES];
    uint64_t in_windows[MAX_NODES][MAX_NODES];
};
static struct sums before;

static void sum(struct sums *sums)
{
    memset(sums, 0, sizeof *sums);
    sums->instructions = value(&instructions);
    for (unsigned at = 0; at < cpu_count; at++) {
        struct cpu *cpu = &cpus[at];
        sums->accesses += value(&cpu->accesses);
        for (int level = 0; level < LEVELS - 1; level++)
            sums->misses[level] += value(&cpu->misses[level]);
        for (unsigned node = 0; node < nodes; node++) {
            sums->fills[cpu->node][node] += value(&cpu->fills[node]);
            sums->write_backs[cpu->node][node] += value(&cpu->write_backs[node]);
            sums->in_windows[cpu->node][node] += value(&cpu->in_windows[node]);
        }
    }
}

static void print_matrix(const char *name, uint64_t now[MAX_NODES][MAX_NODES],
                         uint64_t before[MAX_NODES][MAX_NODES])
{
    fprintf(out, ",\"%s\":[", name);
    for (unsigned from = 0; from < nodes; from++)
        for (unsigned to = 0; to < nodes; to++)
            fprintf(out, "%s%" PRIu64 "%s", to ? "," : from ? ",[" : "[",
                    now[from][to] - before[from][to], to + 1 == nodes ? "]" : "");
    fprintf(out, "]");
}

static void start_region(void)
{
    sum(&before);
    atomic_store(&counting, true);
}

static void stop_region(void)
{
    static struct sums now;
    if (!atomic_exchange(&counting, false))
        return;
    sum(&now);
    fprintf(out, "{\"accesses\":%" PRIu64 ",\"l1_misses\":%" PRIu64 ",\"l2_misses\":%" PRIu64
                 ",\"instructions\":%" PRIu64,
            now.accesses - before.accesses, now.misses[0] - before.misses[0],
            now.misses[1] - before.misses[1], now.instructions - before.instructions);
    print_matrix("dram", now.fills, before.fills);
    print_matrix("write_backs", now.write_backs, before.write_backs);
    if (atomic_exchange(&window_count, 0))
        print_matrix("windows", now.in_windows, before.in_windows);
    fprintf(out, "}\n");
    fflush(out);
}

/* Empties all caches. Dirty lines go to memory, and are counted like others. */
static void flush(void)
{
    for (int level = 0; level < LEVELS; level++)
        for (unsigned each = 0; each < MAX_CPUS && caches[level][each].lines; each++) {
            struct cache *cache = &caches[level][each];
            for (uint64_t at = 0; at < cache->sets * cache->ways; at++) {
                uint64_t line = cache->lines[at];
                cache->lines[at] = 0;
                if (line & 1)
                    leave(&cpus[cache->cpu], level, (line >> 1) - 1);
            }
        }
}

static void on_mark(unsigned index, void *data)
{
    switch ((int)(intptr_t)data) {
    case ATOLL_ROI_START:
        if (marks) {
            stop_region();
            start_region();
        }
        break;
    case ATOLL_ROI_STOP:
        if (marks)
            stop_region();
        break;
    case ATOLL_ROI_FLUSH:
        flush();
        break;
    case ATOLL_COMMAND_BEGIN:
        if (!marks)
            start_region();
        break;
    case ATOLL_COMMAND_END:
        if (!marks)
            stop_region();
        break;
    case ATOLL_WINDOW_FIRST:
    case ATOLL_WINDOW_LAST:
        if (marks)
            cpus[index].shows = (int)(intptr_t)data;
        break;
    case ATOLL_ON_NODE:
        cpus[index].shows = ATOLL_ON_NODE;
        break;
    }
}

/* ---- Translation ---- */

/* The number of a mark, 0 for other instructions. */
static int mark_of(const uint8_t *code, size_t size)
{
    static const uint8_t start[3] = {0x0f, 0x1f, 0x80}, end[3] = {'A', 'T', 'L'};
    if (size != 7 || memcmp(code, start, 3) || memcmp(code + 4, end, 3))
        return 0;
    return code[3];
}

/* Whether an instruction of the kernel changes where a cpu's pages are: a move to CR3 or CR4,
 * INVLPG, INVPCID. */
static bool forgets(const uint8_t *code, size_t size)
{
    while (size > 0 && (*code == 0x66 || (*code & 0xf0) == 0x40))
        code++, size--;
    if (size < 3 || code[0] != 0x0f)
        return false;
    unsigned mode = code[2] >> 6, middle = code[2] >> 3 & 7;
    return (code[1] == 0x22 && (middle == 3 || middle == 4)) ||
           (code[1] == 0x01 && mode != 3 && middle == 7) || (code[1] == 0x38 && code[2] == 0x82);
}

static void on_translation(uint64_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    bool kernel = qemu_plugin_tb_vaddr(block) >> 63;
    if (!kernel)
        qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &instructions, count);
    for (size_t at = 0; at < count; at++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, at);
        const uint8_t *code = qemu_plugin_insn_data(instruction);
        size_t size = qemu_plugin_insn_size(instruction);
        int mark = kernel ? 0 : mark_of(code, size);
        if (mark)
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_mark, CALLBACK_NO_REGISTERS,
                                                   (void *)(intptr_t)mark);
        else if (!kernel)
            qemu_plugin_register_vcpu_mem_cb(instruction, on_access, CALLBACK_NO_REGISTERS,
                                             READS_AND_WRITES, NULL);
        else if (forgets(code, size))
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_forget, CALLBACK_NO_REGISTERS,
                                                   NULL);
    }
}

static void on_exit_of_machine(uint64_t id, void *data)
{
    (void)id;
    (void)data;
    stop_region();
    if (too_many_windows)
        fprintf(out, "{\"error\":\"a program named more than %d windows\"}\n", MAX_WINDOWS);
    if (nodes_shown != nodes || !(fits[BLOCKS] || fits[ADDRESSES]))
        fprintf(out, "{\"error\":\"%u of %u nodes were shown, and this emulator's addresses are "
                     "%sunderstood\"}\n",
                nodes_shown, nodes, fits[BLOCKS] || fits[ADDRESSES] ? "" : "not ");
    fclose(out);
}

/* ---- Start ---- */

static bool parse_level(const char *text, int level)
{
    uint64_t bytes;
    unsigned ways;
    if (sscanf(text, "%" SCNu64 ".%u", &bytes, &ways) != 2 || !ways || bytes < ways << LINE_BITS)
        return false;
    for (unsigned at = 0; at < MAX_CPUS; at++) {
        caches[level][at].ways = ways;
        caches[level][at].sets = (bytes >> LINE_BITS) / ways;
    }
    return true;
}

static bool parse_cpus(const char *text)
{
    for (int used; *text && cpu_count < MAX_CPUS; text += used + (text[used] == '+')) {
        struct cpu *cpu = &cpus[cpu_count];
        unsigned cache[LEVELS];
        if (sscanf(text, "%u.%u.%u.%u%n", &cpu->node, &cache[0], &cache[1], &cache[2], &used) != 4)
            return false;
        if (cpu->node >= MAX_NODES)
            return false;
        cpu->generation = 1;
        for (int level = 0; level < LEVELS; level++) {
            if (cache[level] >= MAX_CPUS)
                return false;
            cpu->caches[level] = &caches[level][cache[level]];
        }
        cpu_count++;
    }
    return cpu_count > 0 && !*text;
}

/* Takes memory for the caches that are used, once their sizes are known. */
static bool build(void)
{
    for (unsigned at = 0; at < cpu_count; at++)
        for (int level = 0; level < LEVELS; level++) {
            struct cache *cache = cpus[at].caches[level];
            cache->shared = cache->lines != NULL;
            if (cache->lines)
                continue;
            cache->cpu = at;
            atomic_flag_clear(&cache->busy);
            cache->lines = calloc(cache->sets * cache->ways, sizeof *cache->lines);
            if (!cache->lines || !cache->sets)
                return false;
        }
    return true;
}

static bool argument(const char *name, const char *text)
{
    static const char *const names[LEVELS] = {"l1", "l2", "llc"};
    for (int level = 0; level < LEVELS; level++)
        if (!strcmp(name, names[level]))
            return parse_level(text, level);
    if (!strcmp(name, "out"))
        out = fdopen(atoi(text), "w");
    else if (!strcmp(name, "roi"))
        marks = !strcmp(text, "on");
    else if (!strcmp(name, "nodes"))
        nodes = atoi(text);
    else if (!strcmp(name, "mib"))
        node_bytes = strtoull(text, NULL, 10) << 20;
    else if (!strcmp(name, "cpus"))
        return parse_cpus(text);
    else
        return false;
    return true;
}

EXPORTED int qemu_plugin_install(uint64_t id, const void *machine, int count, char **arguments)
{
    (void)machine;
    for (int at = 0; at < count; at++) {
        char *value = strchr(arguments[at], '=');
        if (value)
            *value++ = 0;
        if (!value || !argument(arguments[at], value)) {
            fprintf(stderr, "access counter: argument '%s' is not understood\n", arguments[at]);
            return 1;
        }
    }
    if (!out || !node_bytes || nodes < 1 || nodes > MAX_NODES || !build()) {
        fprintf(stderr, "access counter: an argument is missing, or there is no memory\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, on_exit_of_machine, NULL);
    return 0;
}
