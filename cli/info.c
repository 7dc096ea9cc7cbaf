#include "kernels.h"
#include "report.h"
#include "verb.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_row(const char *label, const char *text) {
    printf("%-15s%s\n", label, text);
}

/* Names of the instruction sets of this build; of those that run here, if `running`. */
static void print_sets(const char *label, int running) {
    const lnorm_kernels *kernels;
    const char *between = "";
    int runs;
    printf("%-15s", label);
    for (int i = 0; (kernels = lnorm_kernels_at(i, &runs)); i++)
        if (runs || !running) {
            printf("%s%s", between, kernels->name);
            between = ", ";
        }
    putchar('\n');
}

/* Cores that this process may use: taskset and cpusets restrict them. */
static long cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
}

/* The first word of a file that describes one cache of the core this thread is on. False: errno says why. */
static int read_cache(int index, const char *name, char word[32]) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", sched_getcpu(), index, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int found = fscanf(file, "%31s", word) == 1;
    fclose(file);
    return found;
}

/* As the kernel has them for one core, data and unified; all of them or none. Not from sysconf: for some processors
 * glibc gives the third level of all of their dies together, of which a core reaches one. */
static void print_caches(void) {
    char type[32], level[32], size[32], row[128] = "";
    for (int i = 0; read_cache(i, "type", type) && read_cache(i, "level", level) && read_cache(i, "size", size); i++) {
        size_t used = strlen(row);
        if (strcmp(type, "Instruction"))
            snprintf(row + used, sizeof row - used, "%sL%s %ld KiB", used ? ", " : "", level, strtol(size, NULL, 10));
    }
    if (*row && errno == ENOENT)
        print_row("caches", row);
}

static int run(const arguments *a) {
    const char *asked = getenv("LNORM_ISA");
    (void)a;
    print_row("version", lnorm_version());
    print_row("arithmetic", "1: the bits are those of docs/arithmetic.md");
    print_sets("compiled", 0);
    print_sets("available", 1);
    printf("%-15s%s%s\n", "chosen", lnorm_isa() ? lnorm_isa() : "none",
           asked && *asked ? ", by LNORM_ISA" : ", the widest that is available");
    printf("%-15s%ld\n", "cores", cores());
    print_caches();
    print_row("licence", "MIT");
    print_row("documentation", "man lnorm; of the library: lnorm.h; docs/ in the source");
    if (!lnorm_isa())
        return report_flush(report_failure("LNORM_ISA: expected an instruction set that is available, got '%s'",
                                           asked));
    return report_flush(DONE);
}

const verb verb_info = {
    INFO,
    "info",
    "[OPTION]...",
    "show version, instruction sets, cores and licence",
    "Instruction sets: those that this program was compiled with, those of them that\n"
    "this machine runs, and the one that is used. All give the same bits.\n"
    "LNORM_ISA=NAME in the environment chooses another; one that is not available is\n"
    "an error, exit status 1.",
    "  lnorm info\n"
    "  LNORM_ISA=sse2 lnorm info",
    0,
    0,
    run};
