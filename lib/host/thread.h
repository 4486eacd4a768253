/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of our own in a program that does not know of them. */
#ifndef UR_THREAD_H
#define UR_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread that runs run(arg) with all signals blocked: the application's signals are for the application's threads. name: at most
 * 15 characters; stack: bytes of its stack, or 0 for the usual size. Returns 0 or an errno value, as pthread_create(3) does. */
int ur_thread_start(pthread_t *thread, const char *name, size_t stack, void *(*run)(void *), void *arg);

#endif
