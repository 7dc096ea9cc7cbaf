/* The program's command line, in this process: the input's bytes choose words, or spell them. Whatever they are, the
 * program ends with status 0, 1 or 2 and leaves no temporary file. Its main is lnorm_main here. It works in a directory
 * of its own and gets no word with a '/', so that nothing outside is written. `bench`, which measures for seconds, is
 * left out. */
#include "fuzz_input.h"
#include "lnorm_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>

int lnorm_main(int argc, char **argv);

enum { WORDS = 14, LONGEST = 24 };

/* How a command may begin; the input's first byte chooses. After the last: with any word. */
static const char *const beginnings[][4] = {{"apply", "x.npy", "--output=z.npy"},
                                            {"apply", "-", "--mean=mean.npy"},
                                            {"grad", "x.npy", "y.npy", "--dx=dx.npy"},
                                            {"grad", "x.npy", "x.npy", "--dweight=dw.npy"},
                                            {"verify", "x.npy", "y.npy"},
                                            {"explain", "x.npy"},
                                            {"explain", "6,2,8"},
                                            {"list", "m.safetensors"},
                                            {"info"}};
enum { BEGINNINGS = sizeof beginnings / sizeof *beginnings };

static const char *const vocabulary[] = {
    "apply", "grad", "verify", "explain", "list", "info", "--help", "--version",
#define OPTION(ID, letter, name, value, verbs, help) "--" name,
#include "options.def"
#undef OPTION
    "x.npy", "y.npy", "w.npy", "row.npy", "z.npy", "m.safetensors", "m.safetensors:a.norm.weight", "m.safetensors:",
    "m.safetensors:none", "absent", "", "-", "--", "-o", "-w", "-b", "-e0", "-a0", "-s8", "-g2", "-tbf16", "-qu0",
    "--output=z.npy", "--weight=row.npy", "--bias=row.npy", "--axes=0", "--axes=-1,0", "--op=rms", "--op=group",
    "--op=instance", "--op=batch", "--op=layer", "--groups=2", "--groups=0", "--eps=1", "--eps=nan", "--eps=-1",
    "--dtype=f64", "--dtype=f16", "--mean=mean.npy", "--rstd=-", "--svg=p.svg", "--json", "--all", "--max-ulp=0",
    "--threads=2", "--threads=4096", "--threads=-1", "--name=a.norm", "--model=m.safetensors", "--weight-offset",
    "--normalized-shape=2,8", "--normalized-shape=9", "4,2,3", "1", "0", "-1", "6,2,8", "9223372036854775807", "1e-5",
    "2,8", "layer", "rms", "group", "instance", "batch", "f64", "f32", "f16", "bf16", "a.norm", "--dx=dx.npy",
    "--dweight=dw.npy", "--dbias=-", "--running-mean=c.npy", "--running-var=c.npy", "c.npy"};
enum { VOCABULARY = sizeof vocabulary / sizeof *vocabulary };

static char directory[4096];

static void write_array(const char *path, lnorm_dtype dtype, int32_t ndim, const int64_t *shape) {
    static const float numbers[96] = {1, -2, 3.5f, 4, 0.25f, -6, 7, 8, 9, 1, -1, 12, 3, 4, 15, -16, 2, 8, 1, 0.5f};
    int64_t count = 1;
    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    lnorm_file_writer *writer = lnorm_file_create(path, dtype, ndim, shape, NULL);
    if (!writer || lnorm_file_write(writer, numbers, 0, count, NULL) || lnorm_file_commit(writer, NULL))
        abort();
}

static void write_inputs(void) {
    const int64_t shape[] = {6, 2, 8}, row[] = {8}, channels[] = {2};
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const lnorm_named_tensor tensors[] = {{"a.norm.weight", lnorm_dense(numbers, LNORM_F32, 1, row)},
                                          {"a.norm.bias", lnorm_dense(numbers, LNORM_F32, 1, row)}};
    write_array("x.npy", LNORM_F32, 3, shape);
    write_array("y.npy", LNORM_F16, 3, shape);
    write_array("row.npy", LNORM_F32, 1, row);
    write_array("c.npy", LNORM_F64, 1, channels);
    write_array("w.npy", LNORM_BF16, 1, row);
    if (lnorm_model_save("m.safetensors", tensors, 2, NULL))
        abort();
}

/* Removes every file; a temporary one is a fault. */
static void clear(void) {
    DIR *files = opendir(".");
    struct dirent *entry;
    while (files && (entry = readdir(files))) {
        if (!strncmp(entry->d_name, ".lnorm-", 7))
            abort();
        unlink(entry->d_name);
    }
    if (files)
        closedir(files);
}

static void leave(void) {
    clear();
    if (!chdir("/"))
        rmdir(directory);
}

static void enter(void) {
    if (*directory)
        return;
    snprintf(directory, sizeof directory, "%s/lnorm-fuzz-XXXXXX", fuzz_directory());
    int null = open("/dev/null", O_RDWR);
    if (!mkdtemp(directory) || chdir(directory) || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        abort();
    if (null > 1)
        close(null);
    atexit(leave);
}

/* One word: a byte chooses it from the vocabulary, or says how many bytes spell it. */
static size_t take_word(char *word, size_t room, const uint8_t *data, size_t size) {
    size_t taken = 1, length = 0;
    if (data[0] < 256 - LONGEST) {
        snprintf(word, room, "%s", vocabulary[data[0] % VOCABULARY]);
        return 1;
    }
    for (size_t wanted = 256u - data[0]; taken < size && length < wanted; taken++)
        if (data[taken])
            word[length++] = data[taken] == '/' ? '_' : (char)data[taken];
    word[length] = 0;
    return taken;
}

/* getopt keeps its place in a word; the program, which runs once, need not mind. */
static void forget_options(void) {
    static char name[] = "lnorm";
    char *argv[] = {name, NULL};
    optind = 0;
    getopt(1, argv, "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char words[WORDS][64] = {"lnorm"}, *argv[WORDS + 1] = {words[0]};
    int argc = 1, begin = size ? *data % (BEGINNINGS + 1) : BEGINNINGS;
    for (; begin < BEGINNINGS && argc <= 4 && beginnings[begin][argc - 1]; argc++) {
        snprintf(words[argc], sizeof *words, "%s", beginnings[begin][argc - 1]);
        argv[argc] = words[argc];
    }
    data += size > 0;
    size -= size > 0;
    while (size && argc < WORDS) {
        size_t taken = take_word(words[argc], sizeof *words, data, size);
        data += taken;
        size -= taken;
        argv[argc] = words[argc];
        argc++;
    }
    if (argc > 1 && !strcmp(argv[1], "bench"))
        return 0;
    enter();
    write_inputs();
    forget_options();
    int status = lnorm_main(argc, argv);
    if (status < 0 || status > 2)
        abort();
    clear();
    return 0;
}
