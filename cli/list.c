#include "report.h"
#include "verb.h"

#include "lnorm_files.h"

#include <stdlib.h>
#include <string.h>

/* Columns of text, each as wide as its widest cell. */
enum { COLUMNS = 4 };
typedef struct table {
    int64_t rows;
    int width[COLUMNS];
    char *(*cell)[COLUMNS]; /* [rows] */
} table;

/* A name as it is printed: what would move a terminal's cursor is escaped, and the empty one is visible. */
static char *printable(const char *name) {
    char *text = malloc(4 * strlen(name) + 3);
    size_t used = 0;
    if (!text)
        return NULL;
    strcpy(text, *name ? "" : "''");
    for (const char *at = name; *at; at++)
        used += (size_t)sprintf(text + used, is_control(at, at == name) ? "\\x%02x" : "%c", (unsigned char)*at);
    return text;
}

/* Characters of UTF-8: bytes that do not continue one. */
static int width_of(const char *text) {
    int width = 0;
    for (; *text; text++)
        width += (*text & 0xc0) != 0x80;
    return width;
}

static char *shape_text(const lnorm_model_tensor *tensor) {
    char *text = malloc((size_t)tensor->ndim * 22 + 3);
    if (!text)
        return NULL;
    size_t used = (size_t)sprintf(text, "[");
    for (int32_t i = 0; i < tensor->ndim; i++)
        used += (size_t)sprintf(text + used, "%s%lld", i ? "," : "", (long long)tensor->shape[i]);
    strcpy(text + used, "]");
    return text;
}

static void fill_norm(char *cell[COLUMNS], const lnorm_model *model, int64_t index) {
    const lnorm_model_norm *norm = lnorm_model_norm_at(model, index);
    char size[32];
    snprintf(size, sizeof size, "%lld", (long long)norm->weight->shape[0]);
    cell[0] = printable(norm->name);
    cell[1] = strdup(size);
    cell[2] = strdup(norm->weight->dtype_name);
    cell[3] = strdup(norm->bias ? "weight,bias" : "weight");
}

static void fill_tensor(char *cell[COLUMNS], const lnorm_model *model, int64_t index) {
    const lnorm_model_tensor *tensor = lnorm_model_at(model, index);
    cell[0] = printable(tensor->name);
    cell[1] = shape_text(tensor);
    cell[2] = printable(tensor->dtype_name);
    cell[3] = strdup("");
}

static int table_fill(table *t, const lnorm_model *model, int every) {
    t->cell = calloc((size_t)t->rows, sizeof *t->cell);
    if (!t->cell)
        return 0;
    for (int64_t row = 0; row < t->rows; row++) {
        (every ? fill_tensor : fill_norm)(t->cell[row], model, row);
        for (int column = 0; column < COLUMNS; column++) {
            if (!t->cell[row][column])
                return 0;
            int width = width_of(t->cell[row][column]);
            t->width[column] = width > t->width[column] ? width : t->width[column];
        }
    }
    return 1;
}

static void table_print(const table *t) {
    for (int64_t row = 0; row < t->rows; row++) {
        int blanks = 0;
        for (int column = 0; column < COLUMNS; column++) {
            const char *text = t->cell[row][column];
            if (*text)
                printf("%*s%s", blanks, "", text);
            blanks = t->width[column] - width_of(text) + 2;
        }
        putchar('\n');
    }
}

static void table_free(table *t) {
    for (int64_t row = 0; t->cell && row < t->rows; row++)
        for (int column = 0; column < COLUMNS; column++)
            free(t->cell[row][column]);
    free(t->cell);
}

static int list(const lnorm_model *model, const char *path, int every) {
    table t = {.rows = every ? lnorm_model_count(model) : lnorm_model_norms(model)};
    if (!t.rows)
        return report_failure("'%s': no %s%s", path, every ? "tensors" : "norms among its ",
                              every ? "" : "tensors; --all shows them");
    int status = table_fill(&t, model, every) ? DONE : report_failure("'%s': not enough memory for the list", path);
    if (!status)
        table_print(&t);
    table_free(&t);
    return report_flush(status);
}

static int run(const arguments *a) {
    lnorm_error error = LNORM_ERROR_INIT;
    lnorm_model *model = lnorm_model_open(a->position[0], &error);
    if (!model)
        return report_failure("%s", error.message);
    int status = list(model, a->position[0], a->given[OPTION_EVERY] != NULL);
    lnorm_model_close(model);
    return status;
}

const verb verb_list = {
    LIST,
    "list",
    "MODEL.safetensors [OPTION]...",
    "show the norms that a model holds",
    "One norm a line: its name (for --name), its size, the type of its weight, and\n"
    "what it has: weight, or weight,bias. Norms are found by their names and shapes:\n"
    "1-dimensional tensors X.weight, X.gamma or X.scale where X ends in a word with\n"
    "'norm' or 'ln' in it; batch norms are not listed. Exit status 1 where there is\n"
    "none.\n"
    "\n"
    "With --all every tensor: its name, shape and type. One tensor is read as\n"
    "MODEL.safetensors:NAME, by any verb.",
    "  lnorm list model.safetensors\n"
    "  lnorm list model.safetensors --all | grep embeddings",
    1,
    1,
    run};
