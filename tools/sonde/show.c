/* SPDX-License-Identifier: Apache-2.0 */
/* A profile on the terminal and in files: what `profile` and `report` do with the one they have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tool.h"

static void write_stdout(void *user, const char *s, size_t n)
{
    (void)user;
    fwrite(s, 1, n, stdout);
}

/* Columns of the terminal; 0 where the output goes elsewhere: the plain table. */
static int terminal_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    const long n = columns ? strtol(columns, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (int)n : 0;
}

static int print_table(const sonde_profile *profile, const options *o)
{
    sonde_table_options table = SONDE_INIT(sonde_table_options);
    table.sort_by_name = o->sort && strcmp(o->sort, "name") == 0;
    table.by_shape = o->by_shape;
    table.by_node = o->by_node;
    table.filter_op = o->filter_op;
    table.width = terminal_width();
    table.color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    sonde_error err;
    if (sonde_profile_table(profile, &table, write_stdout, NULL, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* Views beside the table. */
static int print_reports(const sonde_profile *profile, const options *o)
{
    static const struct {
        const char *name;
        sonde_report kind;
    } kinds[] = {
        {"summary", SONDE_REPORT_SUMMARY},       {"records", SONDE_REPORT_SUMMARY_BY_RECORD},
        {"inferences", SONDE_REPORT_INFERENCES}, {"executions", SONDE_REPORT_EXECUTIONS},
        {"operators", SONDE_REPORT_OPERATORS},   {"external", SONDE_REPORT_EXTERNAL_OPERATORS},
        {"memory", SONDE_REPORT_MEMORY}};
    const char *names[sizeof kinds / sizeof *kinds + 1] = {NULL};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        names[k] = kinds[k].name;
    for (size_t i = 0; i < o->reports.n; i++) {
        size_t k = 0;
        while (names[k] && strcmp(names[k], o->reports.items[i]) != 0)
            k++;
        if (!names[k]) {
            const char *near = closest(o->reports.items[i], names);
            return fail_usage("there is no report '%s'%s%s%s", o->reports.items[i],
                              near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        sonde_error err;
        printf("\n");
        if (sonde_profile_report(profile, kinds[k].kind, write_stdout, NULL, &err))
            return fail("%s", err.message);
    }
    return EXIT_OK;
}

/* --json is always the summary, whatever the file is called: saved under a name that says so, then
 * moved to where it belongs. */
static int save_summary(const sonde_profile *profile, const char *path)
{
    const bool to_stdout = strcmp(path, "-") == 0;
    const char *folder = getenv("TMPDIR");
    char *base = to_stdout
                     ? text_of("%s/sonde-%ld", folder && *folder ? folder : "/tmp", (long)getpid())
                     : text_of("%s", path);
    char *saved = text_of("%s.summary.json", base);
    sonde_error err;
    int code = EXIT_OK;
    if (sonde_profile_save(profile, saved, &err))
        code = fail("%s", err.message);
    else if (!to_stdout && rename(saved, path) != 0)
        code = fail("cannot write '%s': %s", path, strerror(errno));
    if (to_stdout && !code) {
        FILE *f = fopen(saved, "rb");
        char piece[4096];
        for (size_t n; f && (n = fread(piece, 1, sizeof piece, f)) > 0;)
            fwrite(piece, 1, n, stdout);
        if (f)
            fclose(f);
        remove(saved);
    }
    free(saved);
    free(base);
    return code;
}

int show_profile(const sonde_profile *profile, const options *o)
{
    sonde_error err;
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    int code = json_only || o->quiet ? EXIT_OK : print_table(profile, o);
    if (!code && !json_only)
        code = print_reports(profile, o);
    if (!code && o->json)
        code = save_summary(profile, o->json);
    for (size_t i = 0; i < o->outputs.n && !code; i++)
        if (sonde_profile_save_with(profile, o->outputs.items[i], &o->export_options, &err))
            code = fail("%s", err.message);
    return code;
}
