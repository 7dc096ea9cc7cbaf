/* Calls of the C library that fail on purpose, and a count of heap blocks. A shared library that stands before the C
 * library: linked into a test, or in LD_PRELOAD, where two variables of the environment say what fails:
 *
 *     LNORM_FAULT="write:3:5"    the third write, with errno 5; see faults_arm
 *     LNORM_FAULT_FD=9           where one byte is written when it happens */
#ifndef FAULTS_H
#define FAULTS_H

/* call:   "malloc" (and calloc, realloc, posix_memalign), "read", "write" (and their p... forms), "open", "close",
 *         "fsync", "rename", "fchmod", "mkstemp", "fstat", "lseek", "fcntl", "thread" (pthread_create)
 * nth:    1 for the first call from now on; 0: every second one, beginning with the first
 * effect: > 0: the call fails with this errno (close closes all the same); 0: it transfers one byte at most;
 *         < 0: the process gets the signal -effect, then the call is made */
void faults_arm(const char *call, long nth, int effect);

/* Nothing fails any more. Returns how often something did. */
long faults_disarm(void);

/* Heap blocks that there are now. */
long faults_blocks(void);

#endif
