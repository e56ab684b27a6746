/* SPDX-License-Identifier: Apache-2.0 */
/* The best mix: every operator in the form that was fastest for it. A session has one precision, so
 * for each precision that was measured the best forms are added up, and the smallest sum wins. */
#include "whatif/whatif.h"

static sonde_precision precision_of(const sn_scenario *s, sonde_precision now)
{
    return s->has_precision ? s->precision : now;
}

/* The scenario of this precision that is fastest for a row; SIZE_MAX: there is none. */
static size_t fastest(const sonde_whatif *w, const sonde_whatif_row *row, sonde_precision now,
                      sonde_precision precision)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < w->answers.n; i++) {
        const sn_answer *a = &w->answers.data[i];
        if (!a->measured || (i && !sn_scenario_is_mixable(&a->asked)) ||
            precision_of(&a->asked, now) != precision)
            continue;
        if (best == SIZE_MAX || row->times_ns[i] < SN_CLEARLY * row->times_ns[best])
            best = i;
    }
    return best;
}

/* What the operators would take; those that have no form of this precision make it impossible. */
static double sum(const sonde_whatif *w, sonde_precision now, sonde_precision precision)
{
    const sn_whatif_rows *rows = &w->rows[SONDE_BY_NODE];
    double total = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const size_t k = fastest(w, &rows->data[i], now, precision);
        if (k == SIZE_MAX)
            return -1;
        total += rows->data[i].times_ns[k];
    }
    return total;
}

bool sn_whatif_mix(const sonde_whatif *w, const sn_model *source, sn_node_form *forms,
                   sonde_precision now, sonde_precision *precision)
{
    const sn_whatif_rows *rows = &w->rows[SONDE_BY_NODE];
    double least = sum(w, now, now);
    bool changed = false;
    *precision = now;
    for (size_t i = 1; i < w->answers.n; i++) {
        const sonde_precision p = precision_of(&w->answers.data[i].asked, now);
        const double total = sum(w, now, p);
        if (total >= 0 && total < least) {
            least = total;
            *precision = p;
        }
    }
    for (size_t i = 0; i < rows->n; i++)
        rows->data[i].best =
            rows->data[i].bracket ? 0 : fastest(w, &rows->data[i], now, *precision);
    for (size_t i = 0; i < source->origins.list.n; i++) {
        const uint32_t row = w->row_of_node[i];
        if (row >= rows->n)
            continue;
        const sn_scenario *s = &w->answers.data[rows->data[row].best].asked;
        forms[i] = (sn_node_form){(uint8_t)s->sparsity, (uint8_t)s->form};
        changed = changed || s->sparsity || s->form;
    }
    return changed || *precision != now;
}
