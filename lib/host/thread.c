/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/thread.h"

#include <signal.h>

int ur_thread_start(pthread_t *thread, const char *name, size_t stack, void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int err;

	pthread_attr_init(&attr);
	if (stack)
		pthread_attr_setstacksize(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* it inherits the mask; set by itself it would come too late */
	err = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(*thread, name);
	return err;
}
