/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's side of the protocol in docs/benchmarking.md: settings are lines without an answer,
 * commands get one line back. Whatever else happens (silence, an end, nonsense) becomes a state and
 * a sentence, and the rest of the bench goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/parts.h"

static void give_up(talk *t, bench_state state, char *message)
{
    if (t->state) {
        free(message);
        return;
    }
    t->state = state;
    t->message = message;
}

bool talk_start(talk *t, const bench_setting *s)
{
    const char *argv[4];
    runtime_command(s->all, s->runtime, argv);
    char *log = text_of("driver_%td.log", s->runtime - s->all->items);
    *t = (talk){.timeout_s = s->timeout_s, .log = scratch_path(log)};
    free(log);
    const child_setup setup = {
        .cores = s->cores, .talks = true, .error_log = s->verbose ? NULL : t->log};
    char *why = NULL;
    if (!child_start(&t->process, argv, &setup, &why)) {
        give_up(t, BENCH_FAILED, why);
        return false;
    }
    child *c = &t->process;
    char *label = printable(s->model->label);
    bool heard = child_send(c, "model %s", s->model->path) && child_send(c, "label %s", label) &&
                 child_send(c, "threads %d", s->threads) &&
                 child_send(c, "instances %d", s->instances);
    for (size_t i = 0; i < s->runtime->options.n; i++)
        heard = heard && child_send(c, "option %s", s->runtime->options.items[i]);
    for (size_t i = 0; i < s->model->inputs.n; i++)
        heard = heard && child_send(c, "inputs %s", s->model->inputs.items[i]);
    if (*s->model->preprocess)
        heard = heard && child_send(c, "preprocess %s", s->model->preprocess);
    for (size_t i = 0; i < s->model->images.n; i++)
        heard = heard && child_send(c, "image %s", s->model->images.items[i]);
    free(label);
    return true; /* one that does not listen ends, and the first answer says so */
}

/* ------------------------------------------------------------------ asking */
static void it_ended(talk *t)
{
    const int status = child_end(&t->process);
    char *said = last_line(t->log);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && strstr(said, "cannot run"))
        give_up(t, BENCH_FAILED, text_of("%s", said));
    else if (WIFSIGNALED(status))
        give_up(t, BENCH_CRASHED,
                text_of("ended by signal %d (%s)%s%s", WTERMSIG(status),
                        strsignal(WTERMSIG(status)), *said ? ": " : "", said));
    else
        give_up(t, BENCH_CRASHED,
                text_of("ended with status %d%s%s", WEXITSTATUS(status), *said ? ": " : "", said));
    free(said);
}

/* "error …" and its kind; false: the line is something else. */
static bool refused(talk *t, const char *line)
{
    static const struct {
        const char *word;
        bench_state state;
    } words[] = {
        {"missing", BENCH_MISSING}, {"unsupported", BENCH_UNSUPPORTED}, {"error", BENCH_FAILED}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i].word);
        if (strncmp(line, words[i].word, n) == 0 && (line[n] == ' ' || !line[n])) {
            give_up(t, words[i].state, printable(line[n] ? line + n + 1 : line));
            return true;
        }
    }
    return false;
}

bool talk_ask(talk *t, const char *line, const char *word, char **rest)
{
    char *reply = NULL;
    const size_t n = strlen(word);
    if (t->state || t->stopped)
        return false;
    (void)child_send(&t->process, "%s", line);
    switch (child_read(&t->process, t->timeout_s, &reply)) {
    case ANSWER_INTERRUPTED:
        t->stopped = true;
        return false;
    case ANSWER_LATE:
        give_up(t, BENCH_HUNG, text_of("no answer to '%s' within %g s", line, t->timeout_s));
        return false;
    case ANSWER_END:
        it_ended(t);
        return false;
    case ANSWER_LINE:
        break;
    }
    reply[strcspn(reply, "\r")] = 0;
    if (strncmp(reply, word, n) == 0 && (reply[n] == ' ' || !reply[n])) {
        *rest = reply[n] ? reply + n + 1 : reply + n;
        return true;
    }
    if (!refused(t, reply)) {
        char *said = printable(reply);
        give_up(t, BENCH_CRASHED,
                text_of("answered '%.40s%s' to '%s'", said, strlen(said) > 40 ? "…" : "", line));
        free(said);
    }
    return false;
}

char *talk_forgive(talk *t)
{
    if (t->state != BENCH_UNSUPPORTED && t->state != BENCH_FAILED)
        return NULL;
    char *message = t->message;
    t->message = NULL;
    t->state = BENCH_OK;
    return message;
}

bool talk_times(talk *t, const char *line, bench_series *into, bench_when when, double *wall_ms)
{
    char *rest = NULL;
    if (!talk_ask(t, line, "times", &rest))
        return false;
    double sum_ms = 0;
    size_t n = 0;
    *wall_ms = 0;
    for (char *end; *rest; rest = end + strspn(end, " ")) {
        const bool wall = strncmp(rest, "wall ", 5) == 0;
        const double ns = strtod(wall ? rest + 5 : rest, &end);
        if (end == (wall ? rest + 5 : rest) || !(ns >= 0 && ns < 1e18)) {
            char *said = printable(rest);
            give_up(t, BENCH_CRASHED,
                    text_of("its answer contains '%.40s', which is not a time", said));
            free(said);
            return false;
        }
        if (wall) {
            *wall_ms = ns / 1e6;
            continue;
        }
        bench_series_add(into, ns / 1e6, when);
        sum_ms += ns / 1e6;
        n++;
    }
    if (!n) {
        give_up(t, BENCH_CRASHED, text_of("answered '%s' without times", line));
        return false;
    }
    *wall_ms = *wall_ms > 0 ? *wall_ms : sum_ms;
    return true;
}

void talk_end(talk *t)
{
    if (!t->state && !t->stopped)
        (void)child_send(&t->process, "quit");
    (void)child_end(&t->process);
    free(t->log);
    free(t->message);
    *t = (talk){.process = {.to = -1, .from = -1}};
}
