/* The system beneath the pool, which the linker puts in the C library's place (--wrap): it counts threads, refuses
 * them, lacks memory, stacks or an affinity. */
#ifndef POOL_SYSTEM_H
#define POOL_SYSTEM_H

#include <stdatomic.h>
#include <stddef.h>

/* Threads that may still be created; how many have been; how many have begun, and not come to their end. */
extern atomic_int may_create, created, alive;

/* A system without memory for attributes, with small stacks, that knows no affinity. */
extern int no_attributes, no_affinity;
extern size_t usual_stack, asked_stack; /* 0: the system's own; not asked for */

#endif
