/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of a result. */
#include <stddef.h>

#include "whatif/whatif.h"

size_t sonde_whatif_scenario_count(const sonde_whatif *w)
{
    return w ? w->answers.n : 0;
}

sonde_status sonde_whatif_scenario_get(const sonde_whatif *result, size_t index,
                                       sonde_whatif_scenario *scenario, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(scenario, err);
    if (index >= result->answers.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu scenarios, no scenario %zu",
                       result->answers.n, index);
    return sn_api_copy_out(scenario, &result->answers.data[index].shown, sizeof *scenario, err);
}

static const sn_whatif_rows *rows_by(const sonde_whatif *w, sonde_by by)
{
    return w && (int)by >= 0 && by < SONDE_BY_KERNEL ? &w->rows[by] : NULL;
}

size_t sonde_whatif_row_count(const sonde_whatif *result, sonde_by by)
{
    const sn_whatif_rows *rows = rows_by(result, by);
    return rows ? rows->n : 0;
}

sonde_status sonde_whatif_row_get(const sonde_whatif *result, sonde_by by, size_t index,
                                  sonde_whatif_row *row, sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(row, err);
    const sn_whatif_rows *rows = rows_by(result, by);
    if (!rows)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "there are no rows by %d", (int)by);
    if (index >= rows->n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu rows, no row %zu", rows->n, index);
    return sn_api_copy_out(row, &rows->data[index], sizeof *row, err);
}

sonde_status sonde_whatif_ratios(const sonde_whatif *result, sonde_export_options *options,
                                 sonde_error *err)
{
    SN_REQUIRE(result, err);
    SN_REQUIRE(options, err);
    if (options->struct_size < offsetof(sonde_export_options, measured_about))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size of the options is too small for measured ratios; initialise "
                       "the struct with SONDE_INIT");
    options->measured = result->ratios.data;
    options->measured_count = result->ratios.n;
    if (options->struct_size >= sizeof *options) /* else of an older caller */
        options->measured_about = result->about_ratios;
    return SONDE_OK;
}
