#pragma once
#include <libpq-fe.h>
#if defined(__linux__)
#include <sys/eventfd.h>

/* The flags are an anonymous enum that Swift imports awkwardly, so the call is made here. Returns -1 on failure. */
static inline int perennial_eventfd(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
#endif
