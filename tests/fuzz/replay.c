/* replay INPUT|DIRECTORY...: runs a fuzz target on stored inputs, without libFuzzer: every file given, every file of a
 * directory given; and on `-draws=N` inputs that are drawn here, the same on every machine. For `make check`. */
#include "fuzz_input.h"

#include <dirent.h>
#include <string.h>

enum { LONGEST = 1 << 16, DRAWN = 120 };

static int run_file(const char *path) {
    static uint8_t bytes[LONGEST];
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (!file || ferror(file)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, size);
    return 1;
}

static int run_directory(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    int count = 0;
    if (!directory)
        return run_file(path);
    while ((entry = readdir(directory))) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            count += run_file(inner);
    }
    closedir(directory);
    return count;
}

static int run_drawn(long draws) {
    uint64_t state = 1;
    for (long i = 0; i < draws; i++) {
        uint8_t bytes[DRAWN];
        for (int j = 0; j < DRAWN; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[j] = (uint8_t)(state >> 56);
        }
        LLVMFuzzerTestOneInput(bytes, (size_t)(i % 2 ? DRAWN : 1 + i / 2 % 8)); /* short ones get further */
    }
    return (int)draws;
}

int main(int argc, char **argv) {
    static const char drawn[] = "-draws=";
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += !strncmp(argv[i], drawn, sizeof drawn - 1) ? run_drawn(atol(argv[i] + sizeof drawn - 1))
                                                            : run_directory(argv[i]);
    printf("%d inputs\n", count);
    return count == 0;
}
