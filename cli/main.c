/* lnorm: layer normalisation and its family, on files. */
#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "verb.h"

#include <fcntl.h>
#include <string.h>

static const verb *const verbs[] = {&verb_apply, &verb_grad, &verb_verify, &verb_explain, &verb_list, &verb_info,
                                     &verb_bench};

const verb *verb_at(int index) {
    return index < (int)(sizeof verbs / sizeof *verbs) ? verbs[index] : NULL;
}

static void help(void) {
    puts("Usage: lnorm VERB [ARGUMENT]...\n"
         "Layer normalisation and its family on .npy and .safetensors files: the same bits on\n"
         "every machine, within half a unit in the last place.\n"
         "\nVerbs:");
    for (int i = 0; verb_at(i); i++)
        printf("  %-9s %s\n", verb_at(i)->name, verb_at(i)->summary);
    puts("\nOptions:\n"
         "  --help     this text; 'lnorm VERB --help' for one verb\n"
         "  --version  version and licence\n"
         "\n"
         "Files are .npy (float64, float32, float16, bfloat16; '-' is standard input or output) or one\n"
         "tensor of a .safetensors file, as model.safetensors:encoder.norm.weight.\n"
         "\n"
         "Exit status: 0 done, 1 failed (or verify found more than --max-ulp), 2 wrong usage.\n"
         "\nExamples:\n"
         "  lnorm explain 4,2,3 --normalized-shape 2,3\n"
         "  lnorm apply x.npy -o y.npy --model model.safetensors --name encoder.norm\n"
         "  lnorm verify x.npy y.npy --max-ulp 1");
}

static void version(void) {
    printf("lnorm %s\n"
           "Copyright (c) 2026 The lnorm authors.\n"
           "MIT licence. No warranty.\n",
           lnorm_version());
}

static int unknown(const char *word) {
    if (word[0] == '-')
        return report_usage("%s: no such option; a verb comes first", word);
    return report_usage("%s: no such verb; expected apply, grad, verify, explain, list, info or bench", word);
}

static int run(const verb *v, int argc, char **argv) {
    arguments parsed;
    int status;
    report_verb(v->name);
    if (!arguments_parse(&parsed, v, argc, argv, &status))
        return status;
    return v->run(&parsed);
}

/* Where a standard stream is closed, the next file to be opened would become it, and messages would go into a result.
 * A descriptor that cannot be used takes its place. */
static void occupy_standard_streams(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

int main(int argc, char **argv) {
    occupy_standard_streams();
    if (argc < 2)
        return report_usage("expected a verb");
    interrupt_prepare();
    memory_prepare();
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help();
        return report_flush(DONE);
    }
    if (!strcmp(argv[1], "--version")) {
        version();
        return report_flush(DONE);
    }
    for (int i = 0; verb_at(i); i++)
        if (!strcmp(argv[1], verb_at(i)->name))
            return run(verb_at(i), argc - 1, argv + 1);
    return unknown(argv[1]);
}
