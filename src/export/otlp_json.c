/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes in the JSON of OTLP: values state their type, and integers of 64 bits are texts. */
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "export/otlp.h"
#include "export/writer.h"

/* ------------------------------------------------------------------ values */
/* At most SN_OTLP_TEXT_BYTES of a text, whole characters. Not inlined: gcc 13 then warns of texts
 * that are known and shorter. */
__attribute__((noinline)) static void put_text(sn_writer *w, const char *s)
{
    char part[SN_OTLP_TEXT_BYTES + 1];
    const size_t n = s ? strnlen(s, sizeof part) : 0;
    if (n < sizeof part) {
        sn_put_json(w, s);
        return;
    }
    size_t cut = SN_OTLP_TEXT_BYTES;
    while (cut > SN_OTLP_TEXT_BYTES - 4 && ((unsigned char)s[cut] & 0xC0) == 0x80)
        cut--;
    memcpy(part, s, cut);
    part[cut] = 0;
    sn_put_json(w, part);
}

static void begin(sn_writer *w, bool *first, const char *key, const char *type)
{
    sn_put(w, *first ? "{\"key\":" : ",{\"key\":");
    *first = false;
    put_text(w, key);
    sn_put(w, ",\"value\":{\"");
    sn_put(w, type);
    sn_put(w, "\":");
}

void sn_otlp_text(sn_writer *w, bool *first, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    begin(w, first, key, "stringValue");
    put_text(w, value);
    sn_put(w, "}}");
}

void sn_otlp_integer(sn_writer *w, bool *first, const char *key, int64_t value)
{
    begin(w, first, key, "intValue");
    sn_put(w, "\"");
    sn_put_i64(w, value);
    sn_put(w, "\"}}");
}

void sn_otlp_true(sn_writer *w, bool *first, const char *key)
{
    begin(w, first, key, "boolValue");
    sn_put(w, "true}}");
}

void sn_otlp_list_begin(sn_writer *w, bool *first, const char *key)
{
    begin(w, first, key, "arrayValue");
    sn_put(w, "{\"values\":[");
}

void sn_otlp_list_item(sn_writer *w, size_t index, const char *value)
{
    if (index >= SN_OTLP_LIST_ITEMS)
        return;
    sn_put(w, index ? ",{\"stringValue\":" : "{\"stringValue\":");
    put_text(w, value);
    sn_put(w, "}");
}

void sn_otlp_list_end(sn_writer *w)
{
    sn_put(w, "]}}}");
}

/* ------------------------------------------------------------------ the resource */
typedef struct pair { /* of "key=value,…" */
    char key[128], value[SN_OTLP_TEXT_BYTES];
} pair;

/* Spaces around are left out, "%20" is one; what does not fit is cut. */
static void decode(const char *from, size_t n, char *to, size_t room)
{
    while (n && (*from == ' ' || *from == '\t'))
        from++, n--;
    while (n && (from[n - 1] == ' ' || from[n - 1] == '\t'))
        n--;
    size_t k = 0;
    for (size_t used; n && k + 1 < room; from += used, n -= used) {
        const int byte = sn_percent_byte(from, n, &used);
        if (byte)
            to[k++] = (char)byte;
    }
    to[k] = 0;
}

/* The pair at *at, which goes behind it; false: there is none. What has no '=' has no key. */
static bool next_pair(const char **at, pair *p)
{
    if (!*at || !**at)
        return false;
    const size_t n = strcspn(*at, ","), key = strcspn(*at, "=,");
    p->key[0] = p->value[0] = 0;
    if (key < n) {
        decode(*at, key, p->key, sizeof p->key);
        decode(*at + key + 1, n - key - 1, p->value, sizeof p->value);
    }
    *at += (*at)[n] ? n + 1 : n;
    return true;
}

#define LABEL "sonde.label."

/* Whether two texts are one in JSON, where bytes that are no character all look alike. */
static bool look_alike(const char *a, const char *b)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    uint32_t c, d;
    while (*x && *y) {
        const size_t n = sn_utf8_char(x, strnlen((const char *)x, 4), &c);
        const size_t m = sn_utf8_char(y, strnlen((const char *)y, 4), &d);
        if ((n ? c : 0xFFFD) != (m ? d : 0xFFFD))
            return false;
        x += n ? n : 1;
        y += m ? m : 1;
    }
    return *x == *y;
}

/* The host has a name of its own among attributes; and keys differ, so that of two labels that look
 * alike there is the first. */
static bool is_shown(const sn_labels *labels, size_t k)
{
    const char *key = labels->list.data[k].key;
    if (strcmp(key, SN_LABEL_HOST) == 0)
        return false;
    for (size_t i = 0; i < k; i++)
        if (look_alike(labels->list.data[i].key, key))
            return false;
    return true;
}

/* Whether the profile itself says this. */
static bool is_ours(const sn_profile *p, const char *key)
{
    static const char *const keys[] = {"service.name", "process.pid", "host.cpu.model.name",
                                       "sonde.version", "sonde.cpu.level"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        if (strcmp(key, keys[k]) == 0)
            return true;
    if (strncmp(key, LABEL, sizeof LABEL - 1) != 0)
        return false;
    for (size_t k = 0; k < p->labels.list.n; k++)
        if (look_alike(p->labels.list.data[k].key, key + sizeof LABEL - 1))
            return is_shown(&p->labels, k);
    return false;
}

static void put_labels(sn_writer *w, bool *first, const sn_labels *labels)
{
    char key[sizeof LABEL + SN_LABEL_KEY_BYTES];
    for (size_t k = 0; k < labels->list.n; k++) {
        snprintf(key, sizeof key, LABEL "%s", labels->list.data[k].key);
        if (is_shown(labels, k))
            sn_otlp_text(w, first, key, labels->list.data[k].value);
    }
}

void sn_otlp_put_resource(sn_writer *w, const sn_profile *p, const sn_otlp_resource *resource,
                          bool one_of_several)
{
    char name[SN_OTLP_TEXT_BYTES];
    const char *host = sn_labels_get(&p->labels, SN_LABEL_HOST);
    bool first = true, host_said = false;
    pair one;
    snprintf(name, sizeof name, "sonde");
    for (const char *at = resource->attributes; next_pair(&at, &one);) {
        if (strcmp(one.key, "service.name") == 0 && one.value[0])
            snprintf(name, sizeof name, "%s", one.value);
        host_said |= strcmp(one.key, "host.name") == 0 && one.value[0];
    }
    host_said &= !one_of_several || !*host;
    const bool said = resource->service_name && *resource->service_name;
    sn_put(w, "{\"attributes\":[");
    sn_otlp_text(w, &first, "service.name", said ? resource->service_name : name);
    for (const char *at = resource->attributes; next_pair(&at, &one);)
        if (one.key[0] && !is_ours(p, one.key) && (host_said || strcmp(one.key, "host.name") != 0))
            sn_otlp_text(w, &first, one.key, one.value);
    if (!host_said)
        sn_otlp_text(w, &first, "host.name", host);
    if (p->pid > 0)
        sn_otlp_integer(w, &first, "process.pid", p->pid);
    sn_otlp_text(w, &first, "host.cpu.model.name", p->cpu_model);
    sn_otlp_text(w, &first, "sonde.version", p->version);
    sn_otlp_text(w, &first, "sonde.cpu.level", p->cpu_level);
    put_labels(w, &first, &p->labels);
    sn_put(w, "]}");
}
