#include "lnorm-0.1.0.h"

#include "layout.h"

const layout_entry layout_then[] = {LAYOUT};
const int layout_count = (int)(sizeof layout_then / sizeof *layout_then);
