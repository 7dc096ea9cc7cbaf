#include "wrap.h"

#include <string.h>

/* The bytes of the first line of text. */
static size_t line_length(const char *text, size_t width) {
    size_t length = strlen(text);
    if (length <= width)
        return length;
    for (length = width; length && text[length] != ' '; length--)
        ;
    return length ? length : strcspn(text, " ");
}

void wrap(const char *label, const char *text, int width,
          void (*put)(void *context, const char *label, const char *line), void *context) {
    char line[WRAP_ROOM];
    while (*text) {
        size_t length = line_length(text, (size_t)width), kept = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        put(context, label, line);
        label = "";
        text += length;
        text += strspn(text, " ");
    }
}
