#include "target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40, LONGEST_LINK = 4096 };

size_t lnorm_target_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* `length` bytes of a, then b, in new memory. */
static char *joined(const char *a, size_t length, const char *b) {
    size_t rest = strlen(b) + 1;
    char *result = malloc(length + rest);
    if (result) {
        memcpy(result, a, length);
        memcpy(result + length, b, rest);
    }
    return result;
}

/* One link further: a link that does not begin with '/' counts from the directory that it is in. */
static char *followed(const char *path) {
    char link[LONGEST_LINK + 1];
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0 || length == LONGEST_LINK) {
        errno = length < 0 ? errno : ENAMETOOLONG;
        return NULL;
    }
    link[length] = 0;
    return joined(path, link[0] == '/' ? 0 : lnorm_target_directory(path), link);
}

int lnorm_target_resolve(char **target, const char *path) {
    struct stat about;
    char *at = joined(path, 0, path);
    for (int links = 0; at; links++) {
        if (lstat(at, &about) || !S_ISLNK(about.st_mode)) { /* what does not exist yet is a name, too */
            *target = at;
            return 0;
        }
        char *next = links < MOST_LINKS ? followed(at) : NULL;
        int reason = links < MOST_LINKS ? errno : ELOOP;
        free(at);
        if (!next)
            return reason;
        at = next;
    }
    return ENOMEM;
}
