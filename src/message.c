#include "compact.inc"

#include "message.h"
#include "environment.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *lnorm_version(void) {
    return LNORM_VERSION_STRING;
}

const char *lnorm_status_string(lnorm_status status) {
    switch (status) {
    case LNORM_OK: return "ok";
    case LNORM_INVALID_ARGUMENT: return "invalid argument";
    case LNORM_SHAPE_MISMATCH: return "shape mismatch";
    case LNORM_UNSUPPORTED_DTYPE: return "unsupported dtype";
    case LNORM_UNSUPPORTED: return "unsupported";
    case LNORM_OUT_OF_MEMORY: return "out of memory";
    case LNORM_NOT_AVAILABLE: return "not available";
    }
    return "unknown status";
}

lnorm_text lnorm_shape_text(const char *first, int ndim, const int64_t *shape) {
    lnorm_text text;
    size_t used = (size_t)snprintf(text.at, sizeof text.at, "[%s", first);
    for (int i = 0; i < ndim && used < sizeof text.at; i++)
        used += (size_t)snprintf(text.at + used, sizeof text.at - used, "%s%lld", i ? ", " : "", (long long)shape[i]);
    if (used < sizeof text.at)
        snprintf(text.at + used, sizeof text.at - used, "]");
    return text;
}

/* DLPack's type codes */
static const char *code_name(unsigned code) {
    static const char *const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
    return code < sizeof names / sizeof *names ? names[code] : NULL;
}

lnorm_text lnorm_dtype_text(lnorm_dtype dtype) {
    lnorm_text text;
    const char *name = code_name(dtype.code);
    if (name && dtype.lanes == 1)
        snprintf(text.at, sizeof text.at, "%s%u", name, (unsigned)dtype.bits);
    else
        snprintf(text.at, sizeof text.at, "a type of code %u, %u bits, %u lanes", (unsigned)dtype.code,
                 (unsigned)dtype.bits, (unsigned)dtype.lanes);
    return text;
}

/* Printing a double rounds as the caller's mode says, and may trap where he traps. */
lnorm_status lnorm_fail(lnorm_error *error, lnorm_status status, const char *format, ...) {
    va_list arguments;
    lnorm_environment caller;
    if (!error)
        return status;
    caller = lnorm_environment_enter();
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    lnorm_environment_leave(caller);
    error->status = status;
    return status;
}

lnorm_status lnorm_report(lnorm_error *user, const lnorm_error *error) {
    const size_t before = offsetof(lnorm_error, message);
    if (user && user->size > before) {
        size_t room = user->size - before, length = strlen(error->message);
        if (length >= room)
            length = room - 1;
        user->status = error->status;
        memcpy(user->message, error->message, length);
        user->message[length] = 0;
    }
    return error->status;
}

lnorm_status lnorm_check_struct(size_t size, const void *given, const char *name, lnorm_error *error) {
    size_t given_size;
    if (!given)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT, "%s: expected a pointer, got NULL", name);
    memcpy(&given_size, given, sizeof given_size);
    if (given_size < size)
        return lnorm_fail(error, LNORM_INVALID_ARGUMENT,
                          "%s.size: expected sizeof(lnorm_%s), at least %llu, got %llu (start from its ..._INIT)", name,
                          name, (unsigned long long)size, (unsigned long long)given_size);
    for (size_t i = size; i < given_size; i++)
        if (((const unsigned char *)given)[i])
            return lnorm_fail(error, LNORM_UNSUPPORTED,
                              "%s: a member beyond byte %llu is set, which lnorm %s does not know", name,
                              (unsigned long long)size, LNORM_VERSION_STRING);
    return LNORM_OK;
}

lnorm_status lnorm_copy_struct(void *known, size_t size, const void *given, const char *name, lnorm_error *error) {
    lnorm_status status = lnorm_check_struct(size, given, name, error);
    if (!status)
        memcpy(known, given, size);
    return status;
}

#include "compact_end.inc"
