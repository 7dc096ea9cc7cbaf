#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(lnorm_error *error, lnorm_status status, const char *message) {
    const size_t before = offsetof(lnorm_error, message);
    if (!error || error->size <= before)
        return;
    size_t room = error->size - before, length = strlen(message);
    if (length >= room)
        length = room - 1;
    error->status = status;
    memcpy(error->message, message, length);
    error->message[length] = 0;
}

static void print(char *message, size_t room, const char *format, va_list arguments) {
    if (vsnprintf(message, room, format, arguments) < 0)
        message[0] = 0;
}

lnorm_status lnorm_files_fail(lnorm_error *error, lnorm_status status, const char *format, ...) {
    char message[sizeof((lnorm_error *)0)->message];
    va_list arguments;
    va_start(arguments, format);
    print(message, sizeof message, format, arguments);
    va_end(arguments);
    fill(error, status, message);
    return status;
}

lnorm_status lnorm_files_refused(lnorm_error *error, int reason, const char *format, ...) {
    char message[sizeof((lnorm_error *)0)->message], text[128];
    va_list arguments;
    va_start(arguments, format);
    print(message, sizeof message, format, arguments);
    va_end(arguments);
    if (strerror_r(reason, text, sizeof text))
        snprintf(text, sizeof text, "error %d", reason);
    size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, ": %s", text);
    lnorm_status status = reason == ENOMEM ? LNORM_OUT_OF_MEMORY : LNORM_NOT_AVAILABLE;
    fill(error, status, message);
    return status;
}

lnorm_status lnorm_files_succeed(lnorm_error *error) {
    fill(error, LNORM_OK, "");
    return LNORM_OK;
}

lnorm_status lnorm_files_no_memory(lnorm_error *error, const char *name) {
    return lnorm_files_fail(error, LNORM_OUT_OF_MEMORY, "%s: out of memory", name);
}

lnorm_files_text lnorm_files_quote(const char *name) {
    return lnorm_files_quote_bytes(name, strlen(name));
}

/* Control characters: C0, DEL, and C1 as UTF-8 has it (0xC2 0x80 .. 0xC2 0x9F). */
static int unprintable(const unsigned char *at, const unsigned char *end) {
    return *at < 0x20 || *at == 0x7F || (*at == 0xC2 && at + 1 < end && at[1] < 0xA0);
}

lnorm_files_text lnorm_files_quote_bytes(const char *name, size_t length) {
    lnorm_files_text text;
    const unsigned char *begin = (const unsigned char *)name, *end = begin + length, *at = end;
    const char *dots = "";
    size_t room = sizeof text.at - sizeof "'...'", used = 0;
    while (at > begin) { /* as much of the end as fits */
        size_t width = unprintable(at - 1, end) ? 4 : 1;
        if (width > room) {
            dots = "...";
            while (at < end && (*at & 0xC0) == 0x80) /* not from the middle of a character */
                at++;
            break;
        }
        room -= width;
        at--;
    }
    used += (size_t)snprintf(text.at, sizeof text.at, "'%s", dots);
    for (; at < end; at++)
        if (unprintable(at, end))
            used += (size_t)snprintf(text.at + used, sizeof text.at - used, "\\x%02x", (unsigned)*at);
        else
            text.at[used++] = (char)*at;
    text.at[used++] = '\'';
    text.at[used] = 0;
    return text;
}

lnorm_files_text lnorm_files_shape(int32_t ndim, const int64_t *shape) {
    lnorm_files_text text;
    size_t used = 1;
    text.at[0] = '[';
    for (int32_t i = 0; i < ndim; i++) {
        if (sizeof text.at - used < sizeof ", -9223372036854775808, ...]") {
            used += (size_t)snprintf(text.at + used, sizeof text.at - used, ", ...");
            break;
        }
        used += (size_t)snprintf(text.at + used, sizeof text.at - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    }
    text.at[used++] = ']';
    text.at[used] = 0;
    return text;
}

const char *lnorm_files_format(const unsigned char *bytes) {
    static const struct {
        const char *begins, *name;
    } formats[] = {{"\x93NUMPY", "an .npy file"},
                   {"PK\x03\x04", "a zip archive, as .npz files and PyTorch's are"},
                   {"GGUF", "a GGUF file"},
                   {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
                   {"version ", "text, as Git LFS leaves in place of a file that was not downloaded"}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!memcmp(bytes, formats[i].begins, strlen(formats[i].begins)))
            return formats[i].name;
    return NULL;
}
