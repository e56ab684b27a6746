/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, asking and ending processes. The new process waits until its counters are attached; its
 * clock starts when it is let go, so what forking costs the bench is nobody's time. */
#include "bench/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

/* ------------------------------------------------------------------ in the new process */
static void pin(const char *cores)
{
    cpu_set_t *set = CPU_ALLOC(BENCH_CPUS);
    const size_t bytes = CPU_ALLOC_SIZE(BENCH_CPUS);
    if (!set)
        return;
    CPU_ZERO_S(bytes, set);
    for (char *end; cores && *cores; cores = *end == ',' ? end + 1 : end) {
        const long core = strtol(cores, &end, 10);
        if (end == cores)
            break;
        if (core >= 0 && core < BENCH_CPUS)
            CPU_SET_S((size_t)core, bytes, set);
    }
    if (CPU_COUNT_S(bytes, set))
        (void)sched_setaffinity(0, bytes, set);
    CPU_FREE(set);
}

static void open_as(const char *path, int flags, int fd)
{
    const int opened = open(path, flags | O_CLOEXEC, 0600);
    if (opened >= 0 && opened != fd)
        dup2(opened, fd);
}

static _Noreturn void become(const char *const *argv, const child_setup *setup, const int *go,
                             const int *in, const int *out, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    signal(SIGPIPE, SIG_DFL);
    if (setup->talks) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
    } else {
        open_as("/dev/null", O_RDONLY, STDIN_FILENO);
        open_as("/dev/null", O_WRONLY, STDOUT_FILENO);
    }
    if (setup->error_log)
        open_as(setup->error_log, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    pin(setup->cores);
    setenv("TMPDIR", scratch_folder(), 1); /* what runtimes leave behind goes with ours */
    char start;
    if (read(go[0], &start, 1) != 1)
        _exit(127);
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    dprintf(STDERR_FILENO, "cannot run '%s': %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* ------------------------------------------------------------------ starting */
static void close_pair(int *fd)
{
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

/* Forks; the process waits for a byte in *go. */
static pid_t fork_it(child *c, const char *const *argv, const child_setup *setup, int *go,
                     char **why)
{
    int start[2] = {-1, -1}, in[2] = {-1, -1}, out[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(start, O_CLOEXEC) == 0 &&
        (!setup->talks || (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0))) {
        fflush(NULL);
        const pid_t parent = getpid();
        pid = fork();
        if (pid == 0)
            become(argv, setup, start, in, out, parent);
    }
    if (pid < 0) {
        *why = text_of("cannot start '%s': %s", argv[0], strerror(errno));
        close_pair(start);
        close_pair(in);
        close_pair(out);
        return pid;
    }
    setpgid(pid, pid); /* also here: whoever comes first */
    close(start[0]);
    *go = start[1];
    *c = (child){.pid = pid, .to = -1, .from = -1};
    if (setup->talks) {
        close(in[0]);
        close(out[1]);
        c->to = in[1];
        c->from = out[0];
        fcntl(c->to, F_SETFL, O_NONBLOCK);
    }
    return pid;
}

static void let_go(int go)
{
    (void)!write(go, "", 1);
    close(go);
}

bool child_start(child *c, const char *const *argv, const child_setup *setup, char **why)
{
    int go = -1;
    *c = (child){.to = -1, .from = -1};
    if (fork_it(c, argv, setup, &go, why) < 0)
        return false;
    let_go(go);
    return true;
}

/* ------------------------------------------------------------------ talking */
bool child_send(child *c, const char *fmt, ...)
{
    enum { STUCK_MS = 10000 };
    char line[8192];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    if (c->to < 0 || n < 0 || n >= (int)sizeof line - 1)
        return false;
    line[n] = '\n';
    for (size_t at = 0, all = (size_t)n + 1; at < all;) {
        struct pollfd p = {.fd = c->to, .events = POLLOUT}; /* the pipe is full: it may be stuck */
        const ssize_t wrote = write(c->to, line + at, all - at);
        if (wrote < 0 && errno == EAGAIN && poll(&p, 1, STUCK_MS) == 1)
            continue;
        if (wrote < 0 && (errno != EINTR || interrupted()))
            return false;
        at += wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

/* The first line of the buffer, taken out of it on the next call. */
static char *whole_line(child *c)
{
    char *end = c->n ? memchr(c->buffer, '\n', c->n) : NULL;
    if (end)
        *end = 0;
    return end ? c->buffer : NULL;
}

/* What came before the current line was handed out is dropped. */
static void drop_line(child *c)
{
    char *end = c->n ? memchr(c->buffer, 0, c->n) : NULL;
    if (!end)
        return;
    const size_t used = (size_t)(end - c->buffer) + 1;
    memmove(c->buffer, c->buffer + used, c->n - used);
    c->n -= used;
}

child_answer child_read(child *c, double timeout_s, char **line)
{
    enum { MOST = 1 << 26 }; /* of one line; who says more talks nonsense */
    const double end = now_ms() + timeout_s * 1e3;
    drop_line(c);
    while (!(*line = whole_line(c))) {
        const double left = end - now_ms();
        struct pollfd p = {.fd = c->from, .events = POLLIN};
        if (interrupted())
            return ANSWER_INTERRUPTED;
        if (left <= 0)
            return ANSWER_LATE;
        const int ready = poll(&p, 1, left > 1e6 ? 1000000 : (int)left + 1);
        if (ready <= 0)
            continue;
        if (c->n + 65536 > c->cap)
            c->buffer = need(realloc(c->buffer, c->cap = 2 * c->cap + 65536));
        const ssize_t got = read(c->from, c->buffer + c->n, c->cap - c->n - 1);
        if (got == 0 || c->n > MOST || (got < 0 && errno != EINTR))
            return ANSWER_END;
        for (ssize_t i = 0; i < got; i++) /* a NUL byte would look like a line's end */
            if (!c->buffer[c->n + (size_t)i])
                c->buffer[c->n + (size_t)i] = '?';
        c->n += got > 0 ? (size_t)got : 0;
    }
    return ANSWER_LINE;
}

double child_peak_rss(const child *c)
{
    char path[64], line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)c->pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

double child_cpu_ms(const child *c)
{
    clockid_t its_clock;
    struct timespec used;
    if (!c->pid || clock_getcpuclockid(c->pid, &its_clock) || clock_gettime(its_clock, &used))
        return 0;
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* The state of a thread follows its name, which is in brackets. */
static bool thread_works(const char *path)
{
    char line[512] = "";
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    const char *name_end = strrchr(line, ')');
    return name_end && strncmp(name_end, ") R", 3) == 0;
}

bool child_works(const child *c)
{
    char path[512];
    bool works = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)c->pid);
    DIR *threads = c->pid ? opendir(path) : NULL;
    for (struct dirent *e; threads && !works && (e = readdir(threads));) {
        snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)c->pid, e->d_name);
        works = thread_works(path);
    }
    if (threads)
        closedir(threads);
    return works;
}

/* ------------------------------------------------------------------ ending */
/* Whether it has ended. It is not collected yet, so that its number stays its own until what it has
 * started is ended too. */
static bool has_ended(pid_t pid, int flags)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | flags) == 0 && info.si_pid == pid;
}

static int collect(pid_t pid, struct rusage *used)
{
    int status = 0;
    kill(-pid, SIGKILL); /* the group */
    while (wait4(pid, &status, 0, used) < 0 && errno == EINTR)
        continue;
    return status;
}

int child_end(child *c)
{
    enum { PATIENCE_MS = 2000 };
    int status = 0;
    if (c->to >= 0)
        close(c->to);
    if (c->from >= 0)
        close(c->from);
    if (c->pid) {
        const double end = now_ms() + (double)PATIENCE_MS;
        while (!has_ended(c->pid, WNOHANG) && now_ms() < end && !interrupted())
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        status = collect(c->pid, NULL);
    }
    free(c->buffer);
    *c = (child){.to = -1, .from = -1};
    return status;
}

/* ------------------------------------------------------------------ whole programs */
static volatile sig_atomic_t too_late;

static void on_alarm(int number)
{
    too_late = number;
}

static void set_alarm(double seconds)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {
        .it_value = {.tv_sec = (time_t)seconds,
                     .tv_usec = (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6)},
        .it_interval = {.tv_usec = seconds > 0 ? 200000 : 0}}; /* again, should one be missed */
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static double ms_of(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

child_answer child_run(const char *const *argv, const child_setup *setup, double timeout_s,
                       child_usage *usage, char **why)
{
    child c;
    counters count;
    struct rusage used = {.ru_maxrss = 0};
    child_answer answer = ANSWER_END;
    int go = -1;
    *usage = (child_usage){.status = 0};
    if (fork_it(&c, argv, setup, &go, why) < 0)
        return ANSWER_LATE;
    counters_open(&count, setup->counts ? c.pid : -1);
    too_late = 0;
    set_alarm(timeout_s);
    const double start = now_ms();
    let_go(go);
    while (answer == ANSWER_END && !has_ended(c.pid, 0))
        if (too_late || interrupted())
            answer = interrupted() ? ANSWER_INTERRUPTED : ANSWER_LATE;
    usage->wall_ms = now_ms() - start;
    set_alarm(0);
    usage->status = collect(c.pid, &used);
    usage->user_ms = ms_of(used.ru_utime);
    usage->system_ms = ms_of(used.ru_stime);
    usage->rss_bytes = (double)used.ru_maxrss * 1024;
    counters_close(&count, &used, usage->counters);
    return answer;
}

/* ------------------------------------------------------------------ what it complained about */
char *last_line(const char *path)
{
    char tail[2048], *start = tail;
    FILE *f = fopen(path, "re");
    size_t n = 0;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        const long size = ftell(f);
        fseek(f, size > (long)sizeof tail - 1 ? size - (long)sizeof tail + 1 : 0, SEEK_SET);
        n = fread(tail, 1, sizeof tail - 1, f);
    }
    if (f)
        fclose(f);
    while (n && (tail[n - 1] == '\n' || tail[n - 1] == ' '))
        n--;
    tail[n] = 0;
    for (char *p = tail; *p; p++)
        if (*p == '\n')
            start = p + 1;
    return printable(start);
}
