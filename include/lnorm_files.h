/* lnorm_files: arrays and parameters of lnorm in files: .npy and .safetensors.
 *
 * A library of its own, beside lnorm (which knows no files), for POSIX systems; it needs jansson. This file is its
 * manual; docs/files.md says which files are accepted and which are refused. It reads from top to bottom:
 *
 *   1. Reading an array       lnorm_file
 *   2. Writing an array       lnorm_file_writer
 *   3. Models                 lnorm_model: the tensors of a .safetensors file, and the norms among them
 *   4. Layers                 lnorm_layer_save, lnorm_layer_load
 *
 *     lnorm_error error = LNORM_ERROR_INIT;
 *     lnorm_file *x = lnorm_file_open("x.npy", NULL, &error);     or "m.safetensors:encoder.norm.weight", or "-"
 *     if (!x)
 *         return fail(error.message);                             "'x.npy': truncated: ... 8 bytes are missing"
 *     const lnorm_tensor *like = lnorm_file_tensor(x);            element type, shape, strides
 *     ... lnorm_file_read(x, buffer, 0, lnorm_file_count(x), &error) ...
 *     lnorm_file_close(x);
 *
 * Rules that hold for every function, unless it says otherwise:
 *
 * - Errors. Functions that can fail take an lnorm_error, which may be NULL, and return its status, or NULL where they
 *   return a pointer. The message names the file, what was expected and what came; unprintable bytes of names are
 *   escaped.
 *     LNORM_INVALID_ARGUMENT   an argument no call can have, or a file that is not what its format says: malformed,
 *                              truncated, with bytes too many; a name that a model does not hold
 *     LNORM_NOT_AVAILABLE      the system refused to open, read or write: not there, not permitted, disk full, broken
 *                              pipe, a file that shrank; the message ends with the system's reason
 *     LNORM_UNSUPPORTED_DTYPE  elements that are not float64, float32, float16 or bfloat16
 *     LNORM_SHAPE_MISMATCH, LNORM_UNSUPPORTED (more than LNORM_MAX_NDIM axes), LNORM_OUT_OF_MEMORY
 *   errno is of no interest afterwards.
 * - Memory. No file is mapped, none is read whole: headers and what a caller asks for, nothing else.
 * - Threads. Any number of threads may read one lnorm_file or one lnorm_model at the same time. A writer is one
 *   thread's at a time.
 * - Signals. Interrupted calls are resumed. SIGPIPE and SIGXFSZ are left to the program: where it ignores them, writing
 *   to a closed pipe and beyond the limit of file size are errors with a message.
 * - Descriptors are closed on exec.
 */
#ifndef LNORM_FILES_H
#define LNORM_FILES_H

#include "lnorm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------------------------------
 * 1. Reading an array
 * ------------------------------------------------------------------------------------------------------------------ */

/* An array in a file that is open. */
typedef struct lnorm_file lnorm_file;

/* Start from LNORM_FILE_OPTIONS_INIT. */
typedef struct lnorm_file_options {
    size_t size;
    int32_t as_bf16;  /* 1: two raw bytes per element (.npy, descr '|V2') are bfloat16; docs/files.md */
    int32_t reserved; /* 0 */
} lnorm_file_options;
#define LNORM_FILE_OPTIONS_INIT {sizeof(lnorm_file_options), 0, 0}

/* Opens
 *   "x.npy"                      an .npy file; the name does not matter, the content does
 *   "-"                          standard input, .npy, from where it stands to its end
 *   "m.safetensors:a.weight"     one tensor of a .safetensors file. The first ".safetensors:" divides; for other names
 *                                use lnorm_file_open_tensor
 * options may be NULL. Header and size are checked completely. What cannot be read at any place (a pipe) is first
 * copied to a temporary file without a name in the directory TMPDIR (or /tmp), no more of it than its header announces.
 * The caller owns the result and gives it to lnorm_file_close, which accepts NULL. */
LNORM_API lnorm_file *lnorm_file_open(const char *path, const lnorm_file_options *options, lnorm_error *error);
LNORM_API lnorm_file *lnorm_file_open_tensor(const char *path, const char *name, lnorm_error *error);
LNORM_API void lnorm_file_close(lnorm_file *file);

/* Element type, shape and strides in elements, of the array as it lies in the file: strides are row-major, or
 * column-major where the file says fortran_order. data is NULL. Lives as long as the file is open. */
LNORM_API const lnorm_tensor *lnorm_file_tensor(const lnorm_file *file);

/* Number of elements; 1 if they are big-endian in the file (they are converted when read); the path as given, without
 * the tensor's name. */
LNORM_API int64_t lnorm_file_count(const lnorm_file *file);
LNORM_API int lnorm_file_big_endian(const lnorm_file *file);
LNORM_API const char *lnorm_file_path(const lnorm_file *file);

/* Reads the elements [first, first + count), numbered in the order in which the file stores them, into buffer, in this
 * machine's byte order. buffer needs no alignment and may be NULL where count is 0; after an error its content is
 * undefined. A file that has become shorter since it was opened is an error. */
LNORM_API lnorm_status lnorm_file_read(const lnorm_file *file, void *buffer, int64_t first, int64_t count,
                                       lnorm_error *error);

/* ------------------------------------------------------------------------------------------------------------------
 * 2. Writing an array
 * ------------------------------------------------------------------------------------------------------------------ */

/* An .npy file being written: version 1, row-major, little-endian on every machine, byte for byte what numpy.save
 * writes (bfloat16: what it writes for that type of the package ml_dtypes, descr '<V2').
 *
 * What appears under the target's name is the complete array or nothing. The data goes to a temporary file
 * ".lnorm-....tmp" in the target's directory; lnorm_file_commit flushes it to the disk and renames it. A failure, an
 * abort, or the end of the process before that leaves the target as it was (only a process that is killed leaves the
 * temporary file behind).
 *
 * Where the target exists:
 *   - a regular file is replaced and passes on its permission bits (not its owner and not its other hard links). One
 *     that this process may not write is an error, although the directory would permit to replace it.
 *   - a symbolic link stays; the file that it points to, which need not exist, is the target.
 *   - a directory is an error.
 *   - anything else (a device, a named pipe, /dev/stdout) is written to as it is, like "-".
 * A new file gets the permissions that the umask (or the directory's default ACL) leaves of rw-rw-rw-. */
typedef struct lnorm_file_writer lnorm_file_writer;

/* Creates the temporary file and writes the header; for "-", standard output. shape: [ndim], each >= 0.
 * The caller owns the result and ends it by lnorm_file_commit or lnorm_file_abort. */
LNORM_API lnorm_file_writer *lnorm_file_create(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape,
                                               lnorm_error *error);

/* 1 if runs may be written in any order; 0 (standard output, pipes, devices) if each has to begin where the last
 * ended. */
LNORM_API int lnorm_file_writer_seekable(const lnorm_file_writer *writer);

/* The temporary file's path, NULL where there is none. A handler of fatal signals may unlink it. Lives as long as the
 * writer. */
LNORM_API const char *lnorm_file_writer_temporary(const lnorm_file_writer *writer);

/* Writes the elements [first, first + count) from buffer, which is in this machine's byte order.
 * After a write that failed the writer can only be aborted. */
LNORM_API lnorm_status lnorm_file_write(lnorm_file_writer *writer, const void *buffer, int64_t first, int64_t count,
                                        lnorm_error *error);

/* Ends the writer, whatever is returned: all or nothing, see above. Fewer elements written than the array has is
 * LNORM_INVALID_ARGUMENT (they are counted, so write each once). */
LNORM_API lnorm_status lnorm_file_commit(lnorm_file_writer *writer, lnorm_error *error);

/* Ends the writer and removes the temporary file. Accepts NULL. */
LNORM_API void lnorm_file_abort(lnorm_file_writer *writer);

/* ------------------------------------------------------------------------------------------------------------------
 * 3. Models
 * ------------------------------------------------------------------------------------------------------------------ */

/* A .safetensors file that is open, its header read and checked. */
typedef struct lnorm_model lnorm_model;

typedef struct lnorm_model_tensor {
    const char *name;       /* UTF-8, any characters but NUL */
    const char *dtype_name; /* as the file says: "F64", "F32", "F16", "BF16", "I64", "F8_E4M3", ... */
    lnorm_dtype dtype;      /* of the first four; of all others {0, 0, 0}: they can be listed, not read */
    int32_t ndim;
    const int64_t *shape;   /* [ndim] */
    int64_t bytes;
} lnorm_model_tensor;

/* A norm among them. */
typedef struct lnorm_model_norm {
    const char *name;                 /* "encoder.layer.0.output.LayerNorm"; "" where the file is one layer's */
    const lnorm_model_tensor *weight; /* never NULL, 1-dimensional */
    const lnorm_model_tensor *bias;   /* NULL, or of weight's shape */
} lnorm_model_norm;

/* The caller owns the result and gives it to lnorm_model_close, which accepts NULL. */
LNORM_API lnorm_model *lnorm_model_open(const char *path, lnorm_error *error);
LNORM_API void lnorm_model_close(lnorm_model *model);

/* The tensors in the order of their data in the file. index: 0 .. count-1, otherwise NULL. What is returned lives as
 * long as the model. lnorm_model_find gives NULL for a name that the model does not hold. */
LNORM_API int64_t lnorm_model_count(const lnorm_model *model);
LNORM_API const lnorm_model_tensor *lnorm_model_at(const lnorm_model *model, int64_t index);
LNORM_API const lnorm_model_tensor *lnorm_model_find(const lnorm_model *model, const char *name);

/* Opens a tensor of the model for reading. The result does not need the model to stay open. */
LNORM_API lnorm_file *lnorm_model_read(const lnorm_model *model, const lnorm_model_tensor *tensor, lnorm_error *error);

/* The norms, by name and shape: 1-dimensional tensors "X.weight", "X.gamma" or "X.scale" (also with '/'), with the bias
 * that belongs to them ("X.bias", for gamma "X.beta") or without, where the last part of X that is not a number
 * contains "norm" or is "ln", in any case: LayerNorm, layer_norm, input_layernorm, q_norm, norm1, RMSNorm, norms.3,
 * ln_f, ln_1, ln1, attn_ln; and without X where the file holds nothing else. Where there is an X.running_mean, it is a
 * batch norm and not listed. In the order of the weights in the file. It goes by names: what it finds need not be a
 * layer norm. */
LNORM_API int64_t lnorm_model_norms(const lnorm_model *model);
LNORM_API const lnorm_model_norm *lnorm_model_norm_at(const lnorm_model *model, int64_t index);

/* A tensor to save: dense and row-major (strides NULL, or these), on the CPU, of one of the four types. */
typedef struct lnorm_named_tensor {
    const char *name;
    lnorm_tensor tensor;
} lnorm_named_tensor;

/* Writes a .safetensors file of count tensors, by the same rules as lnorm_file_create ("-" is refused). The bytes
 * depend on names, types, shapes and values only, not on the order given: as the format's own library does, tensors are
 * sorted by type (F64, F32, BF16, F16), then name, so that every one is aligned to its element. */
LNORM_API lnorm_status lnorm_model_save(const char *path, const lnorm_named_tensor *tensors, int64_t count,
                                        lnorm_error *error);

/* ------------------------------------------------------------------------------------------------------------------
 * 4. Layers
 * ------------------------------------------------------------------------------------------------------------------ */

/* Saves weight and bias, those that the layer has, as "<prefix>weight" and "<prefix>bias" ("" or NULL: no prefix; a
 * prefix is used as it is: give the dot, "encoder.norm.") in a new .safetensors file, in the layer's element type. */
LNORM_API lnorm_status lnorm_layer_save(const lnorm_layer *layer, const char *path, const char *prefix,
                                        lnorm_error *error);

/* Loads them from a .safetensors file that may hold other tensors too. Another element type is converted to the
 * layer's, rounded once, to nearest even. On an error the layer is as it was. Gradients are left alone.
 * Errors: a key that is missing; a key that is unexpected: one that begins with the prefix, has no further dot, and is
 * neither of the two or is one that the layer lacks; LNORM_SHAPE_MISMATCH: each shape must equal normalized_shape;
 * LNORM_UNSUPPORTED_DTYPE. Not at the same time as another use of the same layer. */
LNORM_API lnorm_status lnorm_layer_load(lnorm_layer *layer, const char *path, const char *prefix, lnorm_error *error);

#ifdef __cplusplus
}
#endif
#endif
