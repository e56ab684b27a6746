/* SPDX-License-Identifier: Apache-2.0 */
/* The program: picks the verb. `sonde MODEL` is `sonde profile MODEL`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"
#include "tool.h"

const command commands[] = {
#define COMMAND(id, arguments, summary) {#id, arguments, summary, cmd_##id},
#include "commands.inc"
#undef COMMAND
    {NULL, NULL, NULL, NULL}};

static void print_help(void)
{
    printf("Usage: sonde VERB [OPTION]... [ARGUMENT]...\n"
           "       sonde MODEL            the same as: sonde profile MODEL\n"
           "\n"
           "Runs ONNX models and shows where their time and memory go.\n"
           "\n"
           "Verbs:\n");
    for (const command *c = commands; c->name; c++) {
        char *left = text_of("%s %s", c->name, c->arguments);
        printf("  %-24s  %s\n", left, c->summary);
        free(left);
    }
    printf("\n"
           "MODEL is a path to an ONNX file or zoo:NAME, a built-in model; zoo:NAME?batch=8 sets\n"
           "its dimensions. 'sonde VERB --help' describes a verb and its options.\n"
           "\n"
           "Exit status: 0 success, 1 error, 2 wrong usage, 3 a comparison failed, 128 + N ended\n"
           "by signal N: 130 after Ctrl-C, 143 after SIGTERM. After a signal, the results so far\n"
           "are shown; a file is written whole or not at all.\n");
}

static bool looks_like_a_model(const char *word)
{
    return is_zoo(word) || ends_with(word, ".onnx") || is_file(word) || strchr(word, '/');
}

static int unknown_verb(const char *word)
{
    const char *names[32];
    size_t n = 0;
    for (const command *c = commands; c->name && n < 31; c++)
        names[n++] = c->name;
    names[n] = NULL;
    const char *near = closest(word, names);
    if (near)
        return fail_usage("unknown verb '%s'; did you mean '%s'?", word, near);
    return fail_usage("'%s' is neither a verb nor a model; see 'sonde --help'", word);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_help();
        return EXIT_OK;
    }
    if (strcmp(word, "--version") == 0) {
        printf("sonde %s\n", sonde_version());
        return EXIT_OK;
    }
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, word) == 0)
            return c->run(argc - 2, argv + 2);
    if (strcmp(word, "bench-driver") == 0) /* started by bench, not by people */
        return bench_driver();
    if (word[0] == '-')
        return fail_usage("unknown option '%s'; the verb comes first, see 'sonde --help'", word);
    if (looks_like_a_model(word))
        return cmd_profile(argc - 1, argv + 1);
    return unknown_verb(word);
}

/* What was printed and did not arrive (a full disk) is an error too. */
int main(int argc, char **argv)
{
    interrupt_watch();
    const int code = interrupt_code(run(argc, argv));
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code)
        return code;
    return fail("cannot write to standard output%s%s", errno ? ": " : "",
                errno ? strerror(errno) : "");
}
