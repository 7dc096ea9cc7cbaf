/* Reads tests/data/minilm_layer_norms.bin (format: tests/data/README.md), on machines of either byte order. */
#ifndef LNORM_EXAMPLES_RECORDING_H
#define LNORM_EXAMPLES_RECORDING_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct recording {
    FILE *file;
    double eps;
    uint32_t norms; /* layer norms in the file */
} recording;

/* One layer norm; weight, bias and x lie in one allocation that begins at weight. */
typedef struct recorded_norm {
    char name[65];
    int64_t rows, cols;
    float *weight, *bias, *x;
} recorded_norm;

static inline int recording_u32(FILE *file, uint32_t *value) {
    unsigned char bytes[4];
    if (fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
        return 0;
    *value = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return 1;
}

static inline int recording_floats(FILE *file, float *value, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        if (!recording_u32(file, &bits))
            return 0;
        memcpy(&value[i], &bits, sizeof bits);
    }
    return 1;
}

/* NULL, or what is wrong with the file. */
static inline const char *recording_open(recording *recording, const char *path) {
    char magic[8];
    uint32_t version, low, high;
    recording->file = fopen(path, "rb");
    if (!recording->file)
        return "cannot be opened";
    if (fread(magic, 1, sizeof magic, recording->file) != sizeof magic || memcmp(magic, "LNORMREC", sizeof magic) != 0)
        return "is not a recording of layer norms";
    if (!recording_u32(recording->file, &version) || version != 1)
        return "has an unknown version";
    if (!recording_u32(recording->file, &recording->norms) || !recording_u32(recording->file, &low) ||
        !recording_u32(recording->file, &high))
        return "ends early";
    uint64_t bits = (uint64_t)high << 32 | low;
    memcpy(&recording->eps, &bits, sizeof bits);
    return NULL;
}

/* NULL, or what is wrong with the file; where NULL, the caller frees norm->weight. */
static inline const char *recording_next(recording *recording, recorded_norm *norm) {
    uint32_t rows, cols;
    memset(norm, 0, sizeof *norm);
    if (fread(norm->name, 1, 64, recording->file) != 64 || !recording_u32(recording->file, &rows) ||
        !recording_u32(recording->file, &cols))
        return "ends early";
    if (rows < 1 || rows > 4096 || cols < 1 || cols > 65536)
        return "has a layer norm of unlikely size";
    norm->rows = rows;
    norm->cols = cols;
    int64_t count = (norm->rows + 2) * norm->cols;
    norm->weight = malloc((size_t)count * sizeof(float));
    if (!norm->weight)
        return "does not fit into memory";
    norm->bias = norm->weight + norm->cols;
    norm->x = norm->bias + norm->cols;
    if (!recording_floats(recording->file, norm->weight, count)) {
        free(norm->weight);
        return "ends early";
    }
    return NULL;
}

static inline void recording_close(recording *recording) {
    if (recording->file)
        fclose(recording->file);
}

#endif
