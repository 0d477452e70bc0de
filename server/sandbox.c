#define _GNU_SOURCE
#include "server/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
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

/* The filter reads the number of each system call: first that it is a number of this architecture, then one line for
 * each that is refused. EPERM and not a signal, because libraries look for files they can do without. */
#define REFUSE(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef __x86_64__ /* numbers with bit 30 are the x32 calls */
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    REFUSE(SYS_open), REFUSE(SYS_creat), REFUSE(SYS_fork), REFUSE(SYS_vfork), REFUSE(SYS_unlink), REFUSE(SYS_rename),
    REFUSE(SYS_mkdir), REFUSE(SYS_rmdir), REFUSE(SYS_link), REFUSE(SYS_symlink), REFUSE(SYS_mknod), REFUSE(SYS_chmod),
    REFUSE(SYS_chown), REFUSE(SYS_lchown),
#endif
    REFUSE(SYS_openat), REFUSE(SYS_openat2), REFUSE(SYS_open_by_handle_at), REFUSE(SYS_socket), REFUSE(SYS_socketpair),
    REFUSE(SYS_connect), REFUSE(SYS_bind), REFUSE(SYS_execve), REFUSE(SYS_execveat), REFUSE(SYS_clone),
    REFUSE(SYS_clone3), REFUSE(SYS_ptrace), REFUSE(SYS_process_vm_readv), REFUSE(SYS_process_vm_writev),
    REFUSE(SYS_unlinkat), REFUSE(SYS_renameat), REFUSE(SYS_renameat2), REFUSE(SYS_mkdirat), REFUSE(SYS_linkat),
    REFUSE(SYS_symlinkat), REFUSE(SYS_mknodat), REFUSE(SYS_fchmodat), REFUSE(SYS_fchownat), REFUSE(SYS_truncate),
    REFUSE(SYS_utimensat), REFUSE(SYS_mount), REFUSE(SYS_bpf), REFUSE(SYS_io_uring_setup), REFUSE(SYS_kill), REFUSE(SYS_tkill),
    REFUSE(SYS_rt_sigqueueinfo), REFUSE(SYS_rt_tgsigqueueinfo), REFUSE(SYS_pidfd_open), REFUSE(SYS_pidfd_send_signal),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

bool sw_sandbox_close(void)
{
  struct sock_fprog program = {sizeof rules / sizeof rules[0], rules};
  return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#endif
