/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes nobody here has heard of. A file that is newer than this version may say with one that
 * a node means something else than it did, so such a node is refused; com.microsoft has no versions
 * to tell by and its attributes do grow, so there it always is. In operator sets that are known
 * completely the attribute can only be an exporter's own addition: that is said in the log. */
#include "ops/framework/attributes.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WARNINGS = 16 };

static const struct known {
    const char *domain, *op_type, *names;
} known[] = {
#define SN_ATTRIBUTES(domain, op_type, names) {domain, op_type, names},
#include "ops/framework/attributes.inc"
#undef SN_ATTRIBUTES
};

static const struct {
    const char *domain, *shown;
    int32_t newest; /* 0: has no versions that tell anything */
} domains[] = {
    {"", "ai.onnx", SN_NEWEST_OPSET},
    {"ai.onnx.ml", "ai.onnx.ml", 5},
    {"ai.onnx.preview", "ai.onnx.preview", 1},
    {"ai.onnx.preview.training", "ai.onnx.preview.training", 1},
    {"com.microsoft", "com.microsoft", 0},
};
enum { N_DOMAINS = sizeof domains / sizeof domains[0] };

int32_t sn_domain_newest(const char *domain)
{
    for (int d = 0; d < N_DOMAINS; d++)
        if (strcmp(domains[d].domain, domain) == 0)
            return domains[d].newest;
    return 0;
}

typedef struct check {
    const sn_log *log;
    bool told_newer[N_DOMAINS];
    int n;
    struct {
        const sn_node *node;
        const char *name;
    } told[MOST_WARNINGS];
} check;

static int by_name(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    const int order = strcmp(x->domain, y->domain);
    return order ? order : strcmp(x->op_type, y->op_type);
}

/* What the operator says itself goes before the table. */
static const char *names_of(const sn_node *n)
{
    if (n->op && n->op->attributes)
        return n->op->attributes;
    const struct known key = {n->domain, n->op_type, NULL};
    const struct known *row =
        bsearch(&key, known, sizeof known / sizeof known[0], sizeof known[0], by_name);
    return row ? row->names : "";
}

static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; n > 0 && (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static sonde_status SONDE_PRINTF(3, 4)
    refuse(sonde_error *err, const sn_node *n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sonde_status st = sn_node_fail_va(err, SONDE_UNSUPPORTED, n, fmt, args);
    va_end(args);
    return st;
}

static void warn(check *c, const sn_node *n, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->told[i].name, name) == 0 && strcmp(c->told[i].node->op_type, n->op_type) == 0)
            return;
    if (!c->log || c->n == MOST_WARNINGS)
        return;
    c->told[c->n].node = n;
    c->told[c->n++].name = name;
    sonde_error text = {.status = SONDE_OK};
    refuse(&text, n, "attribute '%s' is unknown and is ignored", name);
    sn_log_write(c->log, SN_LOG_WARN, "%s", text.message);
}

static sonde_status check_node(check *c, const sn_node *n, sonde_error *err)
{
    int d = 0;
    while (d < N_DOMAINS && strcmp(domains[d].domain, n->domain) != 0)
        d++;
    if (d == N_DOMAINS)
        return SONDE_OK;
    const int32_t newest = domains[d].newest;
    if (newest && n->opset > newest && c->log && !c->told_newer[d]) {
        c->told_newer[d] = true;
        sn_log_write(c->log, SN_LOG_WARN,
                     "the model uses opset %d of %s; this version supports up to opset %d and runs "
                     "operators as defined there",
                     n->opset, domains[d].shown, newest);
    }
    if (n->n_attrs == 0)
        return SONDE_OK;
    const char *names = names_of(n);
    for (uint32_t i = 0; i < n->n_attrs; i++) {
        const char *name = n->attrs[i].name;
        /* Names that begin so are a tool's own by ONNX's rules. */
        if (strncmp(name, "__", 2) == 0 || has_word(names, name))
            continue;
        if (newest == 0)
            return refuse(err, n, "attribute '%s' is unknown to this version", name);
        if (n->opset > newest)
            return refuse(err, n,
                          "attribute '%s' is unknown to this version, which supports up to opset "
                          "%d; the node has opset %d",
                          name, newest, n->opset);
        warn(c, n, name);
    }
    return SONDE_OK;
}

static sonde_status check_graph(check *c, const sn_graph *g, sonde_error *err)
{
    sn_graph_each (n, g) {
        SN_TRY(check_node(c, n, err));
        for (uint32_t i = 0; i < n->n_attrs; i++) {
            const sn_attr *a = &n->attrs[i];
            if (a->kind == SN_ATTR_GRAPH && a->graph)
                SN_TRY(check_graph(c, a->graph, err));
            for (size_t k = 0; a->kind == SN_ATTR_GRAPHS && k < a->n; k++)
                SN_TRY(check_graph(c, a->graphs[k], err));
        }
    }
    return SONDE_OK;
}

sonde_status sn_ops_check_attributes(const sn_graph *g, const sn_log *log, sonde_error *err)
{
    check c = {.log = log};
    return check_graph(&c, g, err);
}
