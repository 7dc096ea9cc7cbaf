/* Texts of errors. */
#ifndef LNORM_MESSAGE_H
#define LNORM_MESSAGE_H

#include "problem.h"

#if defined __GNUC__
#define LNORM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LNORM_PRINTF(text, first)
#endif

/* Room for "[9223372036854775807, ...]" of LNORM_MAX_NDIM extents. */
typedef struct lnorm_text {
    char at[LNORM_MAX_NDIM * 22 + 4];
} lnorm_text;

/* "[4, 2, 3]", with `first` before the first extent: "[*, 2]" for first = "*, ". */
lnorm_text lnorm_shape_text(const char *first, int ndim, const int64_t *shape);

/* "float32", or "a type of code 0, 64 bits, 1 lanes" for what has no name here */
lnorm_text lnorm_dtype_text(lnorm_dtype dtype);

/* Fills error (NULL, or of this library's size) and returns status. */
lnorm_status lnorm_fail(lnorm_error *error, lnorm_status status, const char *format, ...) LNORM_PRINTF(3, 4);

/* Copies what happened to the user's error, which may be NULL or of another version's size; returns its status. */
lnorm_status lnorm_report(lnorm_error *user, const lnorm_error *error);

/* Checks a struct that users fill, which begins with its size: `size` bytes of it are known here; a larger one, of a
 * newer version, is taken where the rest is zero. `name` is the argument's name. The second copies what is known. */
lnorm_status lnorm_check_struct(size_t size, const void *given, const char *name, lnorm_error *error);
lnorm_status lnorm_copy_struct(void *known, size_t size, const void *given, const char *name, lnorm_error *error);

#endif
