/* Errors and the words that their messages are made of. */
#ifndef LNORM_FILES_FAILURE_H
#define LNORM_FILES_FAILURE_H

#include "lnorm_files.h"

#if defined __GNUC__
#define LNORM_FILES_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define LNORM_FILES_PRINTF(text, first)
#endif

/* The four types, as messages name them. */
#define LNORM_FILES_FLOATS "float64, float32, float16 or bfloat16"

/* Room for quotes, "..." and a name's last bytes, each of them possibly escaped: error messages have 500. */
typedef struct lnorm_files_text {
    char at[128];
} lnorm_files_text;

/* Fills the user's error (NULL, or of any size) and returns status. */
lnorm_status lnorm_files_fail(lnorm_error *error, lnorm_status status, const char *format, ...)
    LNORM_FILES_PRINTF(3, 4);

/* The same for a call that the system refused: ": " and its reason follow the text. LNORM_OUT_OF_MEMORY where that is
 * ENOMEM, otherwise LNORM_NOT_AVAILABLE. */
lnorm_status lnorm_files_refused(lnorm_error *error, int reason, const char *format, ...) LNORM_FILES_PRINTF(3, 4);

lnorm_status lnorm_files_succeed(lnorm_error *error);

lnorm_status lnorm_files_no_memory(lnorm_error *error, const char *name);

/* 'name' in quotes, what is not printable escaped (file and tensor names may come from anywhere, and messages go to a
 * terminal); of a long one the end is shown. */
lnorm_files_text lnorm_files_quote(const char *name);
lnorm_files_text lnorm_files_quote_bytes(const char *name, size_t length);

/* What a file is that begins with these LNORM_FILES_BEGINNING bytes, where one often gets it in place of another:
 * "an .npy file"; NULL where they tell nothing. */
enum { LNORM_FILES_BEGINNING = 8 };
const char *lnorm_files_format(const unsigned char *bytes);

/* "[4, 2, 3]"; of a long one the beginning is shown. */
lnorm_files_text lnorm_files_shape(int32_t ndim, const int64_t *shape);

#endif
