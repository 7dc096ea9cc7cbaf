/* Names of files to be written. */
#ifndef LNORM_FILES_TARGET_H
#define LNORM_FILES_TARGET_H

#include <stddef.h>

/* What the symbolic links of path lead to, whether it exists or not, in new memory; 0, or the system's reason. */
int lnorm_target_resolve(char **target, const char *path);

/* The length of the directory part of a path, with its last '/'; 0 where there is none. */
size_t lnorm_target_directory(const char *path);

#endif
