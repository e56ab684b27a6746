/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders by their paths. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "sonde/experimental/file.h"
#include "tool.h"

const sonde_load_options unmapped = {.struct_size = sizeof unmapped, .no_mmap = 1};

bool is_zoo(const char *model)
{
    return strncmp(model, "zoo:", 4) == 0;
}

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

int write_text(const char *path, const char *data, size_t bytes)
{
    sonde_error err;
    if (strcmp(path, "-") != 0)
        return sonde_file_write(path, data, bytes, &err) ? fail("%s", err.message) : EXIT_OK;
    errno = 0;
    if (fwrite(data, 1, bytes, stdout) == bytes && fflush(stdout) == 0)
        return EXIT_OK;
    return fail("cannot write to standard output: %s",
                errno ? strerror(errno) : "the write failed");
}
