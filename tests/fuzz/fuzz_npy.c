/* clang -fsanitize=fuzzer,address,undefined -D_POSIX_C_SOURCE=200809L -Iinclude files/(all).c tests/fuzz/fuzz_npy.c
 * liblnorm.a -ljansson: whatever the file, it is refused with a message or reads completely. */
#include "fuzz_input.h"
#include "lnorm_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_file_options options = LNORM_FILE_OPTIONS_INIT;
    options.as_bf16 = 1;
    fuzz_write(data, size);
    lnorm_file *file = lnorm_file_open(fuzz_path, &options, &error);
    if (!file != (error.status != LNORM_OK) || !file != !!*error.message)
        abort();
    if (file) {
        const lnorm_tensor *tensor = lnorm_file_tensor(file);
        int64_t count = 1, last = 0;
        for (int32_t i = 0; i < tensor->ndim; i++) {
            count *= tensor->shape[i];
            last += (tensor->shape[i] - 1) * tensor->strides[i];
        }
        void *buffer = malloc(size);
        if (count != lnorm_file_count(file) || (count && last != count - 1) ||
            lnorm_file_read(file, buffer, 0, count, &error))
            abort();
        free(buffer);
        lnorm_file_close(file);
    }
    return 0;
}
