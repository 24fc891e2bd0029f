/*
 * First process of the emulated machine.
 *
 * It loads the kernel modules of the image, puts the host's file system (read-only, by 9p) under
 * a tmpfs that takes the writes, runs one command there, passes on what the command prints, and
 * switches the machine off. What to do stands in files that the launcher adds to the image:
 *
 *   /modules/order   names of the modules, one a line, in the order to load them
 *   /job/argv        the command, each word ended by a zero byte
 *   /job/env         its environment, likewise
 *   /job/cwd         its working directory
 *   /job/share       a directory of the host to be writable, or empty
 *   /job/time        seconds since 1970
 *   /job/nodes       number of memory nodes to show to the access counter; 0 without it
 *
 * To the host go frames over a virtio port: a byte for the kind, the length in 4 bytes (least
 * first), and that many bytes. Kinds: 'b' booted, with the seconds since the kernel started; 'o'
 * and 'e' standard output and error of the command; 'x' its exit status; 'm' why it was not run.
 *
 * Called by any other name than init it is `atoll-roi`: it marks regions of interest from a shell.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atoll_roi.h"

#define PORT "/dev/vport0p1"
#define MPOL_BIND 2

/* A process that the command left behind may hold its pipes: wait this long for more output. */
#define LAST_OUTPUT_MS 300

static int port = -1;

static void switch_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    _exit(1);
}

static void send_all(const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = write(port, data, bytes);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return; /* nobody listens: nothing is left to do about it */
        data += sent;
        bytes -= sent;
    }
}

static void frame(char kind, const char *data, uint32_t bytes)
{
    unsigned char head[5] = {kind, bytes, bytes >> 8, bytes >> 16, bytes >> 24};
    send_all((char *)head, sizeof head);
    send_all(data, bytes);
}

/* Tells the host why nothing can be run, and switches off. */
static void fail(const char *what, ...)
{
    char text[512];
    int error = errno;
    va_list values;
    va_start(values, what);
    int length = vsnprintf(text, sizeof text, what, values);
    va_end(values);
    if (length < (int)sizeof text)
        snprintf(text + length, sizeof text - length, ": %s", strerror(error));
    if (port >= 0)
        frame('m', text, strlen(text));
    else
        dprintf(2, "init: %s\n", text);
    switch_off();
}

/* A file of the image as text; *bytes is its length where that is asked for. */
static char *job(const char *name, size_t *bytes)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/job/%s", name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0)
        fail("cannot open %s", path);
    char *text = calloc(1, status.st_size + 1);
    if (!text || read(file, text, status.st_size) != status.st_size)
        fail("cannot read %s", path);
    close(file);
    if (bytes)
        *bytes = status.st_size;
    return text;
}

/* A file of words that each end in a zero byte, as an array that ends in NULL. */
static char **words(const char *name)
{
    size_t bytes, count = 0;
    char *text = job(name, &bytes);
    for (size_t at = 0; at < bytes; at++)
        count += text[at] == 0;
    char **list = calloc(count + 1, sizeof *list);
    if (!list)
        fail("no memory for %s", name);
    for (size_t at = 0; at < count; at++, text += strlen(text) + 1)
        list[at] = text;
    return list;
}

static void attach(const char *source, const char *target, const char *kind, unsigned long flags,
                   const char *options)
{
    mkdir(target, 0755);
    if (mount(source, target, kind, flags, options) < 0)
        fail("cannot mount %s on %s", source, target);
}

static void load_modules(void)
{
    char name[128], path[160];
    FILE *order = fopen("/modules/order", "re");
    if (!order)
        fail("cannot open /modules/order");
    while (fscanf(order, "%127s", name) == 1) {
        snprintf(path, sizeof path, "/modules/%s", name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || (syscall(SYS_finit_module, file, "", 0) < 0 && errno != EEXIST))
            fail("cannot load the kernel module %s", name);
        close(file);
    }
    fclose(order);
}

/* The port appears a moment after its driver was loaded. */
static void open_port(void)
{
    for (int tries = 0; tries < 5000 && port < 0; tries++) {
        port = open(PORT, O_WRONLY | O_CLOEXEC);
        if (port < 0)
            usleep(1000);
    }
    if (port < 0)
        fail("cannot open " PORT);
}

/* The host's root with a tmpfs over it, under /new. */
static void host_root(void)
{
    attach("host", "/host", "9p", MS_RDONLY,
           "trans=virtio,version=9p2000.L,msize=512000,cache=loose,access=any");
    attach("writes", "/writes", "tmpfs", 0, "size=75%");
    mkdir("/writes/upper", 0755);
    mkdir("/writes/work", 0755);
    attach("root", "/new", "overlay", 0, "lowerdir=/host,upperdir=/writes/upper,workdir=/writes/work");
    attach("proc", "/new/proc", "proc", 0, NULL);
    attach("sys", "/new/sys", "sysfs", 0, NULL);
    attach("dev", "/new/dev", "devtmpfs", 0, NULL);
    attach("pts", "/new/dev/pts", "devpts", 0, "ptmxmode=666");
    attach("shm", "/new/dev/shm", "tmpfs", 0, NULL);
    attach("run", "/new/run", "tmpfs", 0, "mode=755");
    attach("cgroup", "/new/sys/fs/cgroup", "cgroup2", 0, NULL);
    /* For the lab's own look behind the scenes; not every kernel has them. */
    mount("debug", "/new/sys/kernel/debug", "debugfs", 0, NULL);
    mount("trace", "/new/sys/kernel/tracing", "tracefs", 0, NULL);
    symlink("/proc/self/fd", "/new/dev/fd");
    symlink("fd/0", "/new/dev/stdin");
    symlink("fd/1", "/new/dev/stdout");
    symlink("fd/2", "/new/dev/stderr");
}

static void share(const char *directory)
{
    char target[4200];
    if (!*directory)
        return;
    snprintf(target, sizeof target, "/new%s", directory);
    attach("share", target, "9p", 0,
           "trans=virtio,version=9p2000.L,msize=512000,cache=mmap,access=any");
}

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (handle >= 0) {
        ioctl(handle, SIOCSIFFLAGS, &request);
        close(handle);
    }
}

static void set_clock(void)
{
    struct timeval now = {.tv_sec = atoll(job("time", NULL))};
    settimeofday(&now, NULL);
}

/* This program as /run/atoll/atoll-roi, for the command. */
static void install_roi(void)
{
    char buffer[65536];
    ssize_t bytes;
    mkdir("/new/run/atoll", 0755);
    int from = open("/init", O_RDONLY | O_CLOEXEC);
    int to = open("/new/run/atoll/atoll-roi", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    while ((bytes = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, bytes) != bytes)
            fail("cannot write atoll-roi");
    close(from);
    close(to);
}

/* Writes to a page of each node in turn, so that the access counter can check where it takes
 * the nodes' memory to be. */
static void show_nodes(void)
{
    int nodes = atoi(job("nodes", NULL));
    for (int node = 0; node < nodes; node++) {
        unsigned long mask[4] = {0};
        mask[node / 64] = 1ul << (node % 64);
        volatile char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || syscall(SYS_mbind, page, 4096, MPOL_BIND, mask, 257, 0) < 0)
            fail("cannot bind a page to node %d", node);
        *page = 1;
        __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c1, 'A', 'T', 'L'\n\tmovb $2, %0"
                         : "=m"(*page)
                         : "i"(ATOLL_ON_NODE)
                         : "memory");
        munmap((void *)page, 4096);
    }
}

static void booted(void)
{
    char text[64] = "";
    int file = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (bytes > 0)
        frame('b', text, strcspn(text, " \n"));
    close(file);
}

struct command {
    char **argv, **env, *cwd;
};

/* Makes the host's root the root; what is in the image can no longer be reached. */
static void enter_host_root(void)
{
    if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0)
        fail("cannot enter the host's file system");
}

static void start_command(const struct command *command, int out, int error)
{
    char **argv = command->argv;
    const char *cwd = command->cwd;
    sigset_t none;
    environ = command->env;
    setsid();
    dup2(out, 1);
    dup2(error, 2);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(cwd) < 0) {
        dprintf(2, "atoll lab machine: cannot enter %s: %s\n", cwd, strerror(errno));
        _exit(126);
    }
    ATOLL_MARK(ATOLL_COMMAND_BEGIN);
    execvp(argv[0], argv);
    int missing = errno == ENOENT || errno == ENOTDIR;
    dprintf(2, "atoll lab machine: cannot run '%s' in the emulated machine: %s\n", argv[0],
            missing ? "command not found" : strerror(errno));
    _exit(missing ? 127 : 126);
}

/* Passes on what is there; 0 when there will be no more. */
static int pass_on(int from, char kind)
{
    static char buffer[32768];
    ssize_t bytes = read(from, buffer, sizeof buffer);
    if (bytes > 0)
        frame(kind, buffer, bytes);
    return bytes > 0 || (bytes < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Runs the command and passes on its output until it and the output have ended. Returns its exit
 * status, or 128 and the number of the signal that ended it. */
static int run(const struct command *command)
{
    int out[2], error[2], status = -1, state;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    int ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ended < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
        fail("cannot make pipes");
    pid_t first = fork();
    if (first < 0)
        fail("cannot start a process");
    if (first == 0)
        start_command(command, out[1], error[1]);
    close(out[1]);
    close(error[1]);

    struct pollfd wait[3] = {
        {.fd = out[0], .events = POLLIN},
        {.fd = error[0], .events = POLLIN},
        {.fd = ended, .events = POLLIN},
    };
    while (wait[0].fd >= 0 || wait[1].fd >= 0 || status < 0) {
        int ready = poll(wait, 3, status < 0 ? -1 : LAST_OUTPUT_MS);
        if (ready == 0)
            break;
        for (int at = 0; at < 2; at++)
            if (wait[at].fd >= 0 && wait[at].revents && !pass_on(wait[at].fd, "oe"[at]))
                wait[at].fd = -1;
        struct signalfd_siginfo info;
        while (read(ended, &info, sizeof info) > 0)
            ;
        pid_t pid;
        while ((pid = waitpid(-1, &state, WNOHANG)) > 0)
            if (pid == first) {
                status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
                ATOLL_MARK(ATOLL_COMMAND_END);
            }
    }
    return status;
}

static int mark(int count, char **words)
{
    for (int at = 1; at < count; at++) {
        if (!strcmp(words[at], "start"))
            atoll_roi_start();
        else if (!strcmp(words[at], "stop"))
            atoll_roi_stop();
        else if (!strcmp(words[at], "flush"))
            atoll_roi_flush();
        else {
            dprintf(2, "usage: atoll-roi start|stop|flush ...\n");
            return 2;
        }
    }
    return 0;
}

int main(int count, char **argv)
{
    char text[16];
    if (getpid() != 1)
        return mark(count, argv);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("sys", "/sys", "sysfs", 0, NULL);
    mount("dev", "/dev", "devtmpfs", 0, NULL);
    load_modules();
    open_port();
    host_root();
    share(job("share", NULL));
    set_clock();
    loopback_up();
    install_roi();
    show_nodes();
    struct rlimit files = {65536, 65536};
    setrlimit(RLIMIT_NOFILE, &files);
    booted();
    struct command command = {words("argv"), words("env"), job("cwd", NULL)};
    enter_host_root();
    int status = run(&command);
    snprintf(text, sizeof text, "%d", status);
    frame('x', text, strlen(text));
    switch_off();
}
