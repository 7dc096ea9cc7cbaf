/* As fuzz_npy.c: whatever the file, it is refused with a message, or lists, reads and loads. A first byte with its
 * highest bit set stands for a frame that is right: its other bits give the bytes of data, the rest of the input is the
 * header. */
#include "fuzz_input.h"
#include "lnorm_files.h"

#include <string.h>

static void read_tensor(const lnorm_model *model, const lnorm_model_tensor *tensor, size_t size) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_file *file = lnorm_model_read(model, tensor, &error);
    if (lnorm_model_find(model, tensor->name) != tensor || tensor->bytes < 0 || (size_t)tensor->bytes > size ||
        !file != (error.status != LNORM_OK))
        abort();
    if (file) {
        void *buffer = malloc(size);
        if (lnorm_file_count(file) * tensor->dtype.bits / 8 != tensor->bytes ||
            lnorm_file_read(file, buffer, 0, lnorm_file_count(file), &error))
            abort();
        free(buffer);
        lnorm_file_close(file);
    }
}

static size_t write_framed(const uint8_t *data, size_t size) {
    static uint8_t file[1 << 16];
    const size_t bytes = data[0] & 0x7F, most = sizeof file - 8 - 0x7F, header = size - 1 < most ? size - 1 : most;
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)header >> (8 * i));
    memcpy(file + 8, data + 1, header);
    fuzz_write(file, 8 + header + bytes);
    return 8 + header + bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static lnorm_layer *layer;
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_layer_config config = LNORM_LAYER_CONFIG_INIT;
    config.normalized_size = 2;
    if (!layer)
        layer = lnorm_layer_create(&config, NULL);
    if (size && data[0] & 0x80)
        size = write_framed(data, size);
    else
        fuzz_write(data, size);
    lnorm_model *model = lnorm_model_open(fuzz_path, &error);
    if (!model != (error.status != LNORM_OK) || !model != !!*error.message)
        abort();
    if (model) {
        for (int64_t i = 0; i < lnorm_model_count(model); i++)
            read_tensor(model, lnorm_model_at(model, i), size);
        for (int64_t i = 0; i < lnorm_model_norms(model); i++)
            if (strlen(lnorm_model_norm_at(model, i)->name) > size)
                abort();
        lnorm_model_close(model);
    }
    lnorm_layer_load(layer, fuzz_path, "", &error);
    return 0;
}
