/*
 * Region of interest: what a program marks for the access counter of `atoll lab machine --count=roi`.
 *
 * A mark is a long NOP with a number in its unused displacement, `nopl NUMBER(%rax)`: it reads
 * nothing, writes nothing, and on a real processor does nothing. Each costs one instruction.
 * Marks act on the whole machine, not on the calling thread. The Rust side is `emulator::roi`.
 *
 * A program may name windows, ranges of its addresses: lines from memory that are asked for by
 * addresses in them are counted once more, apart. Windows belong to the region that ends next.
 */
#ifndef ATOLL_ROI_H
#define ATOLL_ROI_H

/* The last three bytes of the displacement, "ATL", tell our NOPs from a compiler's. */
#define ATOLL_MARK(code) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, 'A', 'T', 'L'" ::"i"(code) : "memory")

/* Marks of programs. */
#define ATOLL_ROI_START 1 /* count from here on: a new region begins */
#define ATOLL_ROI_STOP 2  /* the region ends here */
#define ATOLL_ROI_FLUSH 3 /* empty the modelled caches; dirty lines are written back */

#define ATOLL_WINDOW_FIRST 7 /* this cpu's next access is to the first byte of a window */
#define ATOLL_WINDOW_LAST 8  /* this cpu's next access is to the last byte of that window */

/* Marks of the guest's first process. */
#define ATOLL_COMMAND_BEGIN 4 /* the command is about to be started */
#define ATOLL_COMMAND_END 5   /* the command has ended */
#define ATOLL_ON_NODE 6       /* the next store of this cpu is to memory of the next node, from 0 on */

static inline void atoll_roi_start(void) { ATOLL_MARK(ATOLL_ROI_START); }
static inline void atoll_roi_stop(void) { ATOLL_MARK(ATOLL_ROI_STOP); }
static inline void atoll_roi_flush(void) { ATOLL_MARK(ATOLL_ROI_FLUSH); }

/* Both bytes are read once before: a page that is not there would be brought in between mark and
 * access, where another process might run. */
static inline void atoll_roi_window(const void *start, unsigned long bytes)
{
    const char *first = start, *last = first + bytes - 1;
    char byte;
    __asm__ volatile("movb %1, %0\n\tmovb %2, %0\n\t"
                     ".byte 0x0f, 0x1f, 0x80, %c3, 'A', 'T', 'L'\n\tmovb %1, %0\n\t"
                     ".byte 0x0f, 0x1f, 0x80, %c4, 'A', 'T', 'L'\n\tmovb %2, %0"
                     : "=&q"(byte)
                     : "m"(*first), "m"(*last), "i"(ATOLL_WINDOW_FIRST), "i"(ATOLL_WINDOW_LAST)
                     : "memory");
}

#endif
