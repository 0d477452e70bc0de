#define _GNU_SOURCE
#include "server/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A sanitizer's run-time maps terabytes and opens files when it reports. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static bool limit(__rlimit_resource_t what, rlim_t most)
{
  struct rlimit r;
  if (getrlimit(what, &r))
    return false;
  most = most < r.rlim_max ? most : r.rlim_max; /* it may be lower already */
  return !setrlimit(what, &(struct rlimit){most, most});
}

bool sw_sandbox_limits(long memory_mb)
{
  bool ok = limit(RLIMIT_CORE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifdef SYS_close_range
  syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
#ifdef SANITIZED
  (void)memory_mb;
#else
  signal(SIGXFSZ, SIG_IGN); /* what is said beyond the megabyte is lost, no more */
  ok = ok && limit(RLIMIT_AS, ((rlim_t)memory_mb + 256) << 20) && limit(RLIMIT_FSIZE, 1 << 20) && limit(RLIMIT_NOFILE, 16);
#endif
  return ok;
}

#if defined(SANITIZED) || !(defined(__x86_64__) || defined(__aarch64__))

bool sw_sandbox_close(void)
{
  return true;
}

#else

#ifdef __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

/* The filter reads the number of each system call: first that it is a number of this architecture, then one line for each that may
 * be made. What is not in the list fails with EPERM and no signal, because libraries look for files and terminals they can do
 * without. A worker reads its standard input, writes to 1 and 2, asks for memory, the time and random numbers, and ends. */
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), ALLOW
/* Only when the lower half of an argument is that number; only when none of those bits is set. */
#define MAY_IF(call, argument, number)                                                                              \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), FIELD(args[argument]),                                     \
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), ALLOW, REFUSE
#define MAY_WITHOUT(call, argument, bits)                                                                           \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 4), FIELD(args[argument]),                                     \
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0), ALLOW, REFUSE

bool sw_sandbox_close(void)
{
  const struct sock_filter rules[] = {
      FIELD(arch),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      FIELD(nr), /* the x32 calls of x86-64, numbers with bit 30, are not in the list either */
      MAY(read), MAY(write), MAY(readv), MAY(writev), MAY(pread64), MAY(lseek), MAY(close), MAY(fcntl), MAY(fstat), MAY(newfstatat),
      MAY(munmap), MAY(mremap), MAY(madvise), MAY(brk), MAY(futex),
      MAY_WITHOUT(mmap, 2, PROT_EXEC), MAY_WITHOUT(mprotect, 2, PROT_EXEC), /* no new code */
      MAY(clock_gettime), MAY(clock_nanosleep), MAY(nanosleep), MAY(gettimeofday), MAY(times), MAY(getrusage), MAY(sysinfo),
      MAY(uname), MAY(getrandom), MAY(getpid), MAY(gettid), MAY(sched_yield), MAY(sched_getaffinity), MAY(rt_sigaction),
      MAY(rt_sigprocmask), MAY(rt_sigreturn), MAY(sigaltstack), MAY(restart_syscall), MAY(set_robust_list),
      MAY_IF(tgkill, 0, (unsigned)getpid()), MAY_IF(prlimit64, 0, 0), /* itself: abort() and getrlimit() */
      MAY(exit), MAY(exit_group), REFUSE,
  };
  struct sock_fprog program = {sizeof rules / sizeof rules[0], (struct sock_filter *)(uintptr_t)rules};
  return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
