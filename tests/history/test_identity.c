/* SPDX-License-Identifier: Apache-2.0 */
/* What models and commits are known by. */
#include <sys/stat.h>

#include "history/entries.h"
#include "sonde/experimental/save.h"

static void hash_of(sonde_model *m, sonde_model_hashes *h)
{
    sonde_error err;
    h->struct_size = sizeof *h;
    CHECK_OK(sonde_model_hashes_get(m, h, &err));
    CHECK(strlen(h->content) == 32 && strlen(h->form) == 32);
}

static void hash_at(const char *path, sonde_model_hashes *h)
{
    sonde_error err;
    sonde_model *m = NULL;
    CHECK_OK(sonde_model_load(NULL, path, NULL, &m, &err));
    hash_of(m, h);
    sonde_model_release(m);
}

static void hash_zoo(const char *name, uint64_t seed, sonde_model_hashes *h)
{
    sonde_error err;
    sonde_model *m = NULL;
    CHECK_OK(sonde_zoo_build(NULL, name, seed, &m, &err));
    hash_of(m, h);
    sonde_model_release(m);
}

/* Histories know models by these: a change of the hash, or of what the reader makes of a model,
 * would cut every series in two. */
TEST(hashes_stay_the_same_from_version_to_version)
{
    sonde_model_hashes h;
    hash_zoo("tiny_cnn", 0, &h);
    CHECK_STR(h.content, "d874d0694dba69ec09eda0f0a0bb7c79");
    CHECK_STR(h.form, "d91cb4cf946d319e91346e72aaab9d8d");
}

TEST(the_content_tells_weights_apart_and_the_form_does_not)
{
    sonde_model_hashes a, b, c;
    hash_zoo("tiny_cnn", 0, &a);
    hash_zoo("tiny_cnn", 1, &b);
    hash_zoo("tiny_mlp", 0, &c);
    CHECK(strcmp(a.content, b.content) != 0);
    CHECK_STR(a.form, b.form);
    CHECK(strcmp(a.form, c.form) != 0);
}

TEST(it_does_not_matter_where_weights_lie)
{
    sonde_error err;
    sonde_model *m = NULL;
    sonde_model_hashes inside, outside;
    sonde_save_options o = SONDE_INIT(sonde_save_options);
    const char *one = in_dir("one.onnx"), *two = in_dir("two.onnx");
    CHECK_OK(sonde_zoo_build(NULL, "tiny_resnet", 0, &m, &err));
    CHECK_OK(sonde_model_save_with(m, one, NULL, &err));
    o.external_data = 1;
    CHECK_OK(sonde_model_save_with(m, two, &o, &err));
    hash_at(one, &inside);
    hash_at(two, &outside);
    CHECK_STR(inside.content, outside.content);
    CHECK_STR(inside.form, outside.form);
    hash_of(m, &outside);
    CHECK_STR(inside.content, outside.content);
    sonde_model_release(m);
    /* One byte of a weight, in the file beside the model. */
    FILE *f = fopen(in_dir("two.onnx.data"), "r+b");
    CHECK(f && fseek(f, 1000, SEEK_SET) == 0 && fputc(0x55, f) != EOF && fclose(f) == 0);
    hash_at(two, &outside);
    CHECK(strcmp(inside.content, outside.content) != 0);
    CHECK_STR(inside.form, outside.form);
}

/* ------------------------------------------------------------------ commits */

static char folder[TEMP_PATH];

static void put(const char *name, const char *content)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *p = path + strlen(folder) + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0700);
            *p = '/';
        }
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(content, f) >= 0 && fclose(f) == 0);
}

static void check_commit(const char *below, const char *expected)
{
    char path[400], text[72];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    CHECK_STR(sonde_commit_find(path, text, sizeof text), expected);
}

#define A "0123456789012345678901234567890123456789"
#define B "abcdefabcdefabcdefabcdefabcdefabcdefabcd"

TEST(the_commit_is_read_from_files_of_git)
{
    unsetenv("GITHUB_SHA");
    unsetenv("CI_COMMIT_SHA");
    temp_make(folder);
    put("r/.git/HEAD", "ref: refs/heads/main\n");
    put("r/src/deep/x", "");
    check_commit("r", ""); /* no commit yet */
    put("r/.git/packed-refs",
        "# pack-refs with: peeled\n" B " refs/heads/other\n" A " refs/heads/main\n^" B "\n");
    check_commit("r", A);
    check_commit("r/src/deep", A);
    put("r/.git/refs/heads/main", B "\n");
    check_commit("r/src", B);
    put("r/.git/HEAD", A "\n"); /* detached */
    check_commit("r", A);
    /* A worktree: a file names its folder, which names the common one. */
    put("w/.git", "gitdir: ../r/.git/worktrees/w\n");
    put("r/.git/worktrees/w/HEAD", "ref: refs/heads/other\n");
    put("r/.git/worktrees/w/commondir", "../..\n");
    check_commit("w", B);
    put("r/.git/refs/heads/other", A "\n");
    check_commit("w", A);
    static const char *const odd[] = {"",      "ref: ../../../etc/passwd", "ref: refs/../../x",
                                      "zzzz",  "ref: refs/heads/none",     A A A,
                                      "0123\n"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        put("r/.git/HEAD", odd[i]);
        check_commit("r", "");
    }
    char small[20];
    CHECK_STR(sonde_commit_find(folder, small, sizeof small), "");
    CHECK_STR(sonde_commit_find("/no/such/folder", small, sizeof small), "");
    setenv("CI_COMMIT_SHA", B, 1);
    check_commit("r", B);
    setenv("GITHUB_SHA", A, 1);
    check_commit("r", A);
    setenv("GITHUB_SHA", "'; DROP TABLE", 1);
    check_commit("r", B);
    unsetenv("GITHUB_SHA");
    unsetenv("CI_COMMIT_SHA");
    temp_remove(folder);
}

TEST_MAIN()
