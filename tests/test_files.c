/* The library lnorm_files: .npy and .safetensors, read and written, well-formed and not, on systems that do not help.
 */
#include "files_scratch.h"

int main(void) {
    open_standard_descriptors();
    return npy_tests() + stream_tests() + writer_tests() + model_tests() + norm_tests() + layer_tests();
}
