/* Memory of the libraries that cannot say that there is none. */
#ifndef LNORM_CLI_MEMORY_H
#define LNORM_CLI_MEMORY_H

/* From now on GMP (and MPFR) and jansson end the program with a message where there is no memory. Left alone, GMP
 * aborts, and jansson leaves out a number of an array or calls a text malformed. No temporary file is there while one
 * of them is at work: parameters are read before, and reports written after. */
void memory_prepare(void);

#endif
