#include "results.h"
#include "interrupt.h"
#include "report.h"
#include "verb.h"

#include "../files/target.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The directory that a name is in; 0 where it cannot be seen. */
static int examine_directory(const char *path, struct stat *about) {
    size_t length = lnorm_target_directory(path);
    char *directory = length ? strndup(path, length) : strdup(".");
    int seen = directory && !stat(directory, about);
    free(directory);
    return seen;
}

/* Names of what is not there yet. */
static int same_new_file(const char *a, const char *b) {
    struct stat first, second;
    char *one = NULL, *other = NULL;
    int same = !lnorm_target_resolve(&one, a) && !lnorm_target_resolve(&other, b) &&
               !strcmp(one + lnorm_target_directory(one), other + lnorm_target_directory(other)) &&
               examine_directory(one, &first) && examine_directory(other, &second) &&
               first.st_dev == second.st_dev && first.st_ino == second.st_ino;
    free(one);
    free(other);
    return same;
}

static int same_target(const char *a, const char *b) {
    struct stat first, second;
    if (!strcmp(a, b))
        return strncmp(a, "/dev/", 5) != 0;
    if (!strcmp(a, "-") || !strcmp(b, "-"))
        return 0;
    int missing = (stat(a, &first) != 0) + (stat(b, &second) != 0);
    if (missing)
        return missing == 2 && same_new_file(a, b);
    return S_ISREG(first.st_mode) && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* A name by which a model or one of its tensors would be read. */
static int names_a_model(const char *path) {
    static const char extension[] = ".safetensors";
    const size_t length = sizeof extension - 1;
    for (const char *at = strstr(path, extension); at; at = strstr(at + 1, extension))
        if (!at[length] || at[length] == ':')
            return 1;
    return 0;
}

static int check_one(const result *results, int i) {
    const result *r = &results[i];
    if (names_a_model(r->path))
        return report_usage("--%s %s: results are .npy files; expected a name without .safetensors", r->option,
                            r->path);
    if (!strcmp(r->path, "-") && isatty(STDOUT_FILENO))
        return report_usage("--%s -: standard output is a terminal; expected a pipe or a file", r->option);
    for (int k = 0; k < i; k++)
        if (results[k].path && same_target(results[k].path, r->path))
            return report_usage("--%s %s: is what --%s writes, too; expected another file", r->option, r->path,
                                results[k].option);
    return DONE;
}

static int nothing_wanted(const result *results, int count) {
    char names[100] = "";
    for (int i = 0; i < count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s--%s", i ? ", " : "", results[i].option);
    return report_usage("nothing to write: expected at least one of %s", names);
}

int results_check(const result *results, int count) {
    int wanted = 0, status = DONE;
    for (int i = 0; i < count && !status; i++)
        if (results[i].path) {
            wanted++;
            status = check_one(results, i);
        }
    return status || wanted ? status : nothing_wanted(results, count);
}

lnorm_tensor result_tensor(const result *r, void *data) {
    return lnorm_dense(data, r->dtype, r->ndim, r->shape);
}

int results_open(result *results, int count) {
    lnorm_error error = LNORM_ERROR_INIT;
    for (int i = 0; i < count; i++) {
        result *r = &results[i];
        if (!r->path)
            continue;
        r->writer = output_create(r->path, r->dtype, r->ndim, r->shape, &error);
        if (!r->writer) {
            results_abort(results, count);
            return report_failure("--%s: %s", r->option, error.message);
        }
    }
    return DONE;
}

static int commit_one(result *r) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_file_writer *writer = r->writer;
    r->writer = NULL;
    return output_commit(writer, &error) ? report_failure("--%s: %s", r->option, error.message) : DONE;
}

int results_commit(result *results, int count) {
    int status = DONE;
    for (int i = 0; i < count && !status; i++)
        if (results[i].writer)
            status = commit_one(&results[i]);
    results_abort(results, count);
    return status;
}

void results_abort(result *results, int count) {
    for (int i = 0; i < count; i++) {
        output_abort(results[i].writer);
        results[i].writer = NULL;
    }
}
