/* SPDX-License-Identifier: Apache-2.0 */
/* Reports speak of the model as its author wrote it: types, names and attributes of nodes, names of
 * tensors. What passes make is nobody's business but the program's. */
#include "api/zoo_session.h"
#include "ops/framework/op.h"

/* Fused and joined products, gates, chains, integers, bodies; the last one is slow as it is. */
static const char *const models[] = {
    "tiny_mlp",          "tiny_cnn",      "tiny_resnet",        "tiny_regnet_y",  "tiny_mobilenet",
    "tiny_efficientnet", "tiny_cnn_int8", "tiny_regnet_y_int8", "tiny_attention", "tiny_vit",
    "tiny_bert",         "tiny_chain",    "tiny_loop",          "tiny_if",        "mobilenet_v2"};
enum { MODELS = sizeof models / sizeof *models };

/* Names that come from a file, and types that people know. */
typedef struct words {
    sn_map tensors, nodes, types, attributes;
} words;

static void add(sn_map *m, const char *word)
{
    if (!sn_map_put(m, word, m, NULL))
        abort();
}

static void collect(words *w, const sn_graph *g)
{
    for (size_t i = 0; i < g->values.n; i++)
        add(&w->tensors, g->values.data[i]->name);
    for (const sn_node *n = g->first; n; n = n->next) {
        const sn_graph *body;
        add(&w->nodes, n->name);
        add(&w->types, n->op_type);
        for (uint32_t i = 0; i < n->n_attrs; i++)
            add(&w->attributes, n->attrs[i].name);
        for (uint32_t k = 0; (body = sn_node_body(n, k)); k++)
            collect(w, body);
    }
}

static void words_init(words *w, sn_allocator *alloc, const sn_graph *g)
{
    sn_map_init(&w->tensors, alloc);
    sn_map_init(&w->nodes, alloc);
    sn_map_init(&w->types, alloc);
    sn_map_init(&w->attributes, alloc);
    collect(w, g);
    static const char *const recognised[] = {"Gelu",        "Swish", "Silu", "HardSwish",
                                             "HardSigmoid", "Mish",  "…"};
    for (size_t i = 0; i < sizeof recognised / sizeof *recognised; i++)
        add(&w->types, recognised[i]);
}

static void words_free(words *w)
{
    sn_map_free(&w->tensors);
    sn_map_free(&w->nodes);
    sn_map_free(&w->types);
    sn_map_free(&w->attributes);
}

/* All parts of "a+b" are known. Names with a '+' of their own are not used here. */
static bool all_known(const sn_map *known, const char *text, char between)
{
    for (const char *at = text; *at;) {
        const char *end = strchr(at, between);
        const size_t n = end ? (size_t)(end - at) : strlen(at);
        if (n && !sn_map_get_n(known, at, n))
            return false;
        at += n + (end != NULL);
    }
    return true;
}

static bool attributes_known(const words *w, const char *text)
{
    for (const char *at = text; *at;) {
        const size_t name = strcspn(at, "="), rest = strcspn(at, ";");
        if (name > rest || !sn_map_get_n(&w->attributes, at, name))
            return false;
        at += rest + (at[rest] == ';');
    }
    return true;
}

static void check_tensors(const words *w, const sn_prof_step *s, const sn_prof_tensor *list,
                          uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_MSG(all_known(&w->tensors, list[i].name, '+'), "%s '%s': tensor '%s'", s->op_type,
                  s->name, list[i].name);
}

static void check_steps(const words *w, const sn_profile *p)
{
    for (size_t i = 0; i < p->steps.n; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        const bool reorder = strcmp(s->op_type, "[Reorder]") == 0;
        CHECK_MSG(reorder || sn_map_get(&w->types, s->op_type), "type '%s'", s->op_type);
        CHECK_MSG(all_known(&w->types, s->post_op, '+'), "post op '%s'", s->post_op);
        CHECK_MSG(!*s->name || sn_map_get(&w->nodes, s->name), "node '%s'", s->name);
        CHECK_MSG(attributes_known(w, s->attributes), "%s '%s': attributes %s", s->op_type, s->name,
                  s->attributes);
        CHECK(s->n_origins > 0);
        for (uint32_t k = 0; k < s->n_origins; k++)
            CHECK(sn_map_get(&w->nodes, s->origins[k].name) &&
                  sn_map_get(&w->types, s->origins[k].op_type));
        check_tensors(w, s, s->inputs, s->n_inputs);
        check_tensors(w, s, s->outputs, s->n_outputs);
    }
    for (size_t i = 0; i < p->lives.n; i++) {
        const char *name = p->lives.data[i].name; /* in brackets: no tensor of the file */
        CHECK_MSG(p->lives.data[i].place == SN_LIFE_WORKSPACE || *name == '[' ||
                      all_known(&w->tensors, name, '+'),
                  "memory of '%s'", name);
    }
}

/* ------------------------------------------------------------------ whole files */
typedef struct output {
    char *text;
    size_t n;
} output;

static void take(void *user, const char *data, size_t size)
{
    output *o = user;
    o->text = realloc(o->text, o->n + size + 1);
    if (!o->text)
        abort();
    memcpy(o->text + o->n, data, size);
    o->n += size;
    o->text[o->n] = 0;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static const char *find_word(const output *o, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = o->text, *end = o->text + o->n; end - at >= (ptrdiff_t)n; at++) {
        at = memchr(at, word[0], (size_t)(end - at));
        if (!at || end - at < (ptrdiff_t)n)
            return NULL;
        if (memcmp(at, word, n) == 0 && (at == o->text || !is_letter(at[-1])) && !is_letter(at[n]))
            return at;
    }
    return NULL;
}

/* Types of the operators that only passes make, as the registry has them. */
static void check_words(const output *o, const char *suffix, const char *model)
{
    const sn_op *op;
    size_t internal = 0;
    for (size_t k = 0; (op = sn_op_row(k)); k++)
        for (; op->name; op++) {
            if (strcmp(op->domain, "sonde") != 0)
                continue;
            internal++;
            const char *at = find_word(o, op->name);
            if (at && strcmp(op->name, "Reorder") == 0 && at > o->text && at[-1] == '[')
                continue;
            CHECK_MSG(!at, "%s in the %s of %s: %.60s", op->name, suffix, model, at ? at : "");
        }
    CHECK(internal >= 5);
}

static sonde_status check_model(const char *name, bool optimized, sonde_error *err)
{
    sonde_context *context = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_profile *profile = NULL;
    sonde_session_options options = SONDE_INIT(sonde_session_options);
    sonde_value *in[MAX_PORTS] = {0}, *out[64] = {0};
    size_t n = 0;
    options.no_optimize = !optimized;
    sonde_status st = sonde_context_create(NULL, &context, err);
    st = st ? st : zoo_model(context, name, &model, err);
    st = st ? st : sonde_session_create(model, &options, &session, err);
    st = st ? st : random_inputs(context, session, 2, in, &n, err);
    st = st ? st : sonde_profiler_start(context, 3, err);
    const size_t outputs = st ? 0 : sonde_session_output_count(session);
    st = st ? st : sonde_session_run(session, NULL, NULL, in, n, NULL, out, outputs, err);
    st = st ? st : sonde_profiler_stop(context, &profile, err);
    if (!st) {
        words w;
        words_init(&w, &context->alloc, model->core->graph);
        check_steps(&w, profile->core);
        words_free(&w);
    }
    for (size_t k = 0; !st && sonde_format_suffix(k); k++) {
        sonde_export_options e = SONDE_INIT(sonde_export_options);
        output o = {0};
        e.format = sonde_format_suffix(k);
        e.folded_nodes = 1;
        st = sonde_profile_write(profile, &e, take, &o, err);
        if (st == SONDE_UNSUPPORTED && strcmp(e.format, ".html") == 0)
            st = SONDE_OK; /* a build without Node.js */
        if (!st)
            check_words(&o, e.format, name);
        free(o.text);
    }
    for (int kind = SONDE_REPORT_SUMMARY; !st && kind <= SONDE_REPORT_MEMORY; kind++) {
        output o = {0};
        st = sonde_profile_report(profile, (sonde_report)kind, take, &o, err);
        if (!st)
            check_words(&o, "report", name);
        free(o.text);
    }
    release_all(out, outputs);
    release_all(in, n);
    sonde_profile_release(profile);
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(context);
    return st;
}

TEST(reports_of_optimised_models_speak_of_the_file)
{
    sonde_error err = {0};
    for (size_t i = 0; i < MODELS; i++)
        CHECK_MSG(check_model(models[i], true, &err) == SONDE_OK, "%s: %s", models[i], err.message);
}

TEST(reports_of_models_as_they_are_speak_of_the_file)
{
    sonde_error err = {0};
    for (size_t i = 0; i + 1 < MODELS; i++)
        CHECK_MSG(check_model(models[i], false, &err) == SONDE_OK, "%s: %s", models[i],
                  err.message);
}

TEST_MAIN()
