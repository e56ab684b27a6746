/* SPDX-License-Identifier: Apache-2.0 */
/* What is served: the report page at "/", and at "/data" the profile that stands in it, for a page
 * that is open while a run goes on. Only the page is made; the data are taken out of it, so that
 * both always say the same and nothing is compressed twice. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "view/parts.h"

enum { A_PART = 1, ALL }; /* marks of answers */

/* ------------------------------------------------------------------ the page's parts */
typedef struct growing {
    char *data;
    size_t n, cap;
} growing;

static void append(void *user, const char *data, size_t bytes)
{
    growing *g = user;
    if (g->cap - g->n < bytes) {
        g->cap = (g->n + bytes) * 3 / 2 + (64 << 10);
        g->data = need(realloc(g->data, g->cap));
    }
    if (bytes)
        memcpy(g->data + g->n, data, bytes);
    g->n += bytes;
}

/* Behind `what`, from `at` on; NULL: it is not there. */
static const char *behind(const char *at, const char *end, const char *what)
{
    const char *found = memmem(at, (size_t)(end - at), what, strlen(what));
    return found ? found + strlen(what) : NULL;
}

/* The policy that the page itself states. */
static char *policy_of(const growing *page)
{
    static const char mark[] = "http-equiv=\"Content-Security-Policy\" content=\"";
    const char *at = behind(page->data, page->data + page->n, mark), *end = page->data + page->n;
    const char *quote = at ? memchr(at, '"', (size_t)(end - at)) : NULL;
    return quote ? text_of("%.*s", (int)(quote - at), at) : text_of("default-src 'none'");
}

/* Base64 without spaces ► bytes. */
static http_body *decode(const char *from, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char value[256] = {0};
    for (unsigned k = 0; k < 64; k++)
        value[(unsigned char)digits[k]] = (unsigned char)k;
    char *data = need(malloc(n / 4 * 3 + 3));
    size_t bytes = 0;
    for (size_t i = 0; i + 4 <= n; i += 4) {
        unsigned bits = 0;
        for (size_t k = 0; k < 4; k++)
            bits = bits << 6 | value[(unsigned char)from[i + k]];
        data[bytes++] = (char)(bits >> 16 & 255);
        data[bytes++] = (char)(bits >> 8 & 255);
        data[bytes++] = (char)(bits & 255);
    }
    for (size_t k = 1; k <= 2 && k <= n && from[n - k] == '='; k++)
        bytes--;
    return http_body_of(data, bytes);
}

/* The last profile in the page: of two the newer one. A title has its quotes escaped, and base64
 * has no '<'. */
static http_body *data_of(const growing *page)
{
    static const char mark[] = "<script type=\"application/x-sonde-profile\" title=\"";
    const char *at = page->data, *end = page->data + page->n, *from = NULL, *to = NULL;
    while ((at = behind(at, end, mark)) && (at = behind(at, end, "\">"))) {
        const char *tag = memchr(at, '<', (size_t)(end - at));
        if (!tag)
            break;
        from = at;
        to = at = tag;
    }
    return decode(from, (size_t)(to - from));
}

/* ------------------------------------------------------------------ making it */
int shown_open(shown *s)
{
    unsigned char secret[TOKEN_BYTES];
    pthread_condattr_t clock;
    *s = (shown){.live = true};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->news, &clock);
    pthread_condattr_destroy(&clock);
    if (getentropy(secret, sizeof secret))
        return fail("the system has no random numbers for the address");
    for (size_t i = 0; i < TOKEN_BYTES; i++)
        snprintf(s->token + 2 * i, 3, "%02x", secret[i]);
    return EXIT_OK;
}

void shown_close(shown *s)
{
    http_body_drop(s->page);
    http_body_drop(s->data);
    free(s->policy);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
}

int shown_set(shown *s, const sonde_profile *profile, const sonde_export_options *how, bool live)
{
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    growing page = {0};
    sonde_error err;
    if (how)
        o = *how;
    o.format = ".html";
    o.live = live;
    if (sonde_profile_write(profile, &o, append, &page, &err)) {
        free(page.data);
        return fail("%s", err.message);
    }
    char *policy = policy_of(&page);
    http_body *data = data_of(&page), *whole = http_body_of(page.data, page.n);
    pthread_mutex_lock(&s->lock);
    http_body *old_page = s->page, *old_data = s->data;
    char *old_policy = s->policy;
    s->page = whole;
    s->data = data;
    s->policy = policy;
    s->version++;
    s->live = live;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
    http_body_drop(old_page);
    http_body_drop(old_data);
    free(old_policy);
    return EXIT_OK;
}

void shown_end(shown *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->live)
        s->version++; /* whoever has the data shall hear that these were all */
    s->live = false;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

void shown_finish(shown *s)
{
    pthread_mutex_lock(&s->lock);
    s->finishing = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

void shown_ask(shown *s)
{
    pthread_mutex_lock(&s->lock);
    s->asked = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

void shown_stop(shown *s)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    pthread_cond_broadcast(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* ------------------------------------------------------------------ waiting */
static struct timespec moment_in(double ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double s = ms / 1e3;
    t.tv_sec += (time_t)s;
    t.tv_nsec += (long)((s - (double)(time_t)s) * 1e9);
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

bool shown_wait(shown *s, double ms)
{
    const struct timespec until = moment_in(ms);
    pthread_mutex_lock(&s->lock);
    while (!s->over && pthread_cond_timedwait(&s->news, &s->lock, &until) == 0)
        continue;
    const bool over = s->over;
    pthread_mutex_unlock(&s->lock);
    return !over;
}

bool shown_wait_asked(shown *s, double ms)
{
    const struct timespec until = moment_in(ms);
    pthread_mutex_lock(&s->lock);
    while (!s->over && !s->finishing && pthread_cond_timedwait(&s->news, &s->lock, &until) == 0)
        continue;
    while (!s->over && !s->finishing && !s->asked)
        pthread_cond_wait(&s->news, &s->lock);
    const bool go_on = !s->over && !s->finishing;
    s->asked = false; /* now: who asks while the page is made is told by the next */
    pthread_mutex_unlock(&s->lock);
    return go_on;
}

/* ------------------------------------------------------------------ answers */
/* All with the lock held. */
static void answer_page(const shown *s, http_answer *a)
{
    a->mark = s->live ? A_PART : ALL;
    a->status = 200;
    a->type = "text/html; charset=utf-8";
    a->body = http_body_ref(s->page);
    a->policy = text_of("%s", s->policy);
}

static void answer_data(shown *s, const request *r, http_answer *a)
{
    char tag[24];
    snprintf(tag, sizeof tag, "\"%u\"", s->version);
    a->more = text_of("ETag: %s\r\n%s", tag, s->live ? "" : "X-Sonde-Ended: 1\r\n");
    s->asked = true;
    pthread_cond_broadcast(&s->news);
    if (request_has(r, tag)) {
        a->status = 304;
        return;
    }
    a->status = 200;
    a->type = "application/octet-stream"; /* a page unpacks it; a browser must not */
    a->body = http_body_ref(s->data);
    a->mark = s->live ? A_PART : ALL;
}

static void answer(void *user, const request *r, http_answer *a)
{
    shown *s = user;
    a->status = request_check(r, s->token, s->port, &a->text);
    if (a->status == 405)
        a->more = text_of("Allow: GET, HEAD\r\n");
    if (a->status)
        return;
    pthread_mutex_lock(&s->lock);
    if (strcmp(r->path, "/") == 0) {
        answer_page(s, a);
    } else if (strcmp(r->path, "/data") == 0) {
        answer_data(s, r, a);
    } else {
        a->status = 404;
        a->text = "There is nothing here: the page is at /, its data are at /data.";
    }
    pthread_mutex_unlock(&s->lock);
}

/* With --once it is over when everything was fetched, in a page or as data. */
static void sent(void *user, int mark)
{
    shown *s = user;
    if (s->once && mark == ALL)
        shown_stop(s);
}

http_site shown_site(shown *s, bool (*over)(void *user))
{
    return (http_site){.answer = answer, .sent = sent, .over = over, .user = s};
}
