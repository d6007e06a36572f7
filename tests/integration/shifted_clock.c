// For tests, to be preloaded: a machine whose clock is TACTUS_TEST_CLOCK_SHIFT seconds ahead of this
// one's. Instants of the system's clock that a process waits for are shifted back.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

typedef long (*system_call)(long, ...);

static long call(long number, long a, long b, long c, long d, long e, long f) {
  static system_call next;
  if (!next) next = (system_call)dlsym(RTLD_NEXT, "syscall");
  return next(number, a, b, c, d, e, f);
}

static long shift(void) {
  const char* const text = getenv("TACTUS_TEST_CLOCK_SHIFT");
  return text ? atol(text) : 0;
}

// Instants of the monotonic clock are far smaller than a billion seconds.
static const struct timespec* back(const struct timespec* until, struct timespec* to) {
  if (!until || until->tv_sec < 1000000000) return until;
  *to = *until;
  to->tv_sec -= shift();
  return to;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int failed = (int)call(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
  return failed;
}

time_t time(time_t* to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict to, void* restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  to->tv_sec = now.tv_sec;
  to->tv_usec = now.tv_nsec / 1000;
  return 0;
}

int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
  static int (*next)(pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
  if (!next) next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec to;
  return next(condition, mutex, back(until, &to));
}

int sem_timedwait(sem_t* restrict semaphore, const struct timespec* restrict until) {
  static int (*next)(sem_t*, const struct timespec*);
  if (!next) next = dlsym(RTLD_NEXT, "sem_timedwait");
  struct timespec to;
  return next(semaphore, back(until, &to));
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  struct timespec to;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME)) {
    a[3] = (long)back((const struct timespec*)a[3], &to);
  }
  return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
