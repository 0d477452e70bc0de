/* What a worker may do once its filter is closed, and what not: each call is made for real, in a child that then says how it
 * went. */
#define _GNU_SOURCE
#include "../unit.h"

#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !(defined(__x86_64__) || defined(__aarch64__))
#define HAS_FILTER 0
#elif defined(__has_feature)
#define HAS_FILTER (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define HAS_FILTER 1
#endif

static pid_t parent; /* of the child: what the daemon is to a worker */

/* How a child ends that has a filter and does this; 100 when the filter can't be set. */
static int status_of(int (*what)(void))
{
  fflush(NULL);
  parent = getpid();
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    bool ok = sw_sandbox_limits(100) && sw_sandbox_close();
    _exit(ok ? what() : 100);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

/* The number of the first call that was not refused, from 1 on, or 0. */
#define REFUSED(call) ((errno = 0), n++, (call) == -1 && errno == EPERM ? 0 : n)

static int opens(void)
{
  int n = 0, bad = 0;
  bad = bad ? bad : REFUSED(open("/etc/hostname", O_RDONLY));
  bad = bad ? bad : REFUSED(open("/tmp/stickwright-test", O_WRONLY | O_CREAT, 0600));
  bad = bad ? bad : REFUSED(unlink("/tmp/stickwright-test"));
  bad = bad ? bad : REFUSED(mkdir("/tmp/stickwright-test", 0700));
  bad = bad ? bad : REFUSED(memfd_create("x", 0));
  return bad ? bad : REFUSED(chdir("/"));
}

static int connects(void)
{
  int n = 0, ends[2], bad = REFUSED(socket(AF_INET, SOCK_STREAM, 0));
  bad = bad ? bad : REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
  return bad ? bad : REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static int starts(void)
{
  char *none[] = {NULL};
  int n = 0, bad = REFUSED(execve("/bin/true", none, none));
  bad = bad ? bad : REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  bad = bad ? bad : REFUSED(syscall(SYS_clone3, NULL, 0));
  return bad ? bad : REFUSED(unshare(CLONE_NEWUSER));
}

static int reaches_others(void)
{
  struct rlimit r;
  cpu_set_t all;
  memset(&all, -1, sizeof all);
  int n = 0, bad = REFUSED(kill(parent, 0));
  bad = bad ? bad : REFUSED(syscall(SYS_tkill, parent, 0));
  bad = bad ? bad : REFUSED(syscall(SYS_tgkill, parent, parent, 0));
  bad = bad ? bad : REFUSED(prlimit(parent, RLIMIT_NOFILE, NULL, &r));
  bad = bad ? bad : REFUSED(setpriority(PRIO_PROCESS, (id_t)parent, 19));
  return bad ? bad : REFUSED(sched_setaffinity(parent, sizeof all, &all));
}

static int stays_behind(void)
{
  int n = 0, bad = REFUSED(shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
  bad = bad ? bad : REFUSED(syscall(SYS_add_key, "user", "stickwright-test", "x", 1, -2));
  return bad ? bad : REFUSED(setsid());
}

static int makes_code(void)
{
  int n = 0;
  void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int bad = m == MAP_FAILED ? 50 : REFUSED(mprotect(m, 4096, PROT_READ | PROT_EXEC));
  return bad ? bad : REFUSED((intptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int works(void)
{
  unsigned char random[8];
  struct timespec now;
  struct rlimit r;
  char *p = malloc(64 << 20);
  if (!p || clock_gettime(CLOCK_MONOTONIC, &now) || getentropy(random, sizeof random) || getrlimit(RLIMIT_AS, &r))
    return 1;
  memset(p, 1, 64 << 20);
  p = realloc(p, 80 << 20);
  return p && r.rlim_cur == (rlim_t)356 << 20 && p[(64 << 20) - 1] == 1 && write(STDERR_FILENO, "", 0) == 0 ? 0 : 2;
}

static int aborts(void)
{
  abort();
}

static void what_a_filter_refuses(void **state)
{
  (void)state;
  if (!HAS_FILTER)
    skip();
  assert_int_equal(status_of(opens), 0);
  assert_int_equal(status_of(connects), 0);
  assert_int_equal(status_of(starts), 0);
  assert_int_equal(status_of(reaches_others), 0);
  assert_int_equal(status_of(stays_behind), 0);
  assert_int_equal(status_of(makes_code), 0);
}

static void what_a_worker_needs_it_has(void **state)
{
  (void)state;
  if (!HAS_FILTER)
    skip();
  assert_int_equal(status_of(works), 0);
  int status = status_of(aborts);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_filter_refuses),
      cmocka_unit_test(what_a_worker_needs_it_has),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
