/* SPDX-License-Identifier: Apache-2.0 */
/* Options of verbs whose results may go into the history. */
#include "sonde/experimental/history.h"
#include "tool.h"

#define AT(field) offsetof(keep_options, field)

const option_row keep_option_rows[] = {
    {0, "save", OPT_MAYBE, AT(save), "DB",
     "add the result to the history in DB (default: $SONDE_HISTORY, else the user's); 'sonde "
     "history' shows it"},
    {0, "note", OPT_TEXT, AT(note), "TEXT", "with --save: a note"},
    {0, "commit", OPT_TEXT, AT(commit), "ID",
     "with --save: the commit that was measured (default: $GITHUB_SHA, $CI_COMMIT_SHA, or what git "
     "has checked out here)"},
    {0}};

int keep_options_check(void *values)
{
    const keep_options *k = values;
    if (!k->save && (k->note || k->commit))
        return fail_usage("--%s belongs to an entry of the history and needs --save",
                          k->note ? "note" : "commit");
    if (k->save && !sonde_history_available())
        return fail_usage("--save: this build of sonde keeps no history: SQLite (libsqlite3) was "
                          "not there when it was built");
    return -1;
}
