#include "lnorm.h"

#include "layout.h"

const layout_entry layout_now[] = {LAYOUT};
