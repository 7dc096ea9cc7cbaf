/* Numbers from one element type to another, in integers: no caller's rounding mode enters. */
#ifndef LNORM_FILES_CONVERT_H
#define LNORM_FILES_CONVERT_H

#include "element.h"

/* count elements, each rounded once, to nearest even; subnormals are kept, overflow gives infinity, NaN stays NaN, all
 * keep their sign. */
void lnorm_files_convert(void *to, const lnorm_files_element *to_element, const void *from,
                         const lnorm_files_element *from_element, int64_t count);

#endif
