/* A supervisor's side of the daemon, in the two protocols of systemd, which are small enough to speak without its library:
 *
 *   LISTEN_PID, LISTEN_FDS   sockets that were opened for us begin at descriptor 3 (sd_listen_fds(3))
 *   NOTIFY_SOCKET            a datagram socket that wants lines such as READY=1 (sd_notify(3))
 *   WATCHDOG_USEC            .. and WATCHDOG=1 at least that often
 */
#ifndef SW_SERVER_SYSTEMD_H
#define SW_SERVER_SYSTEMD_H

/* Takes what there is out of the environment, so that workers don't see it. The listening socket that was passed, -1: none,
 * -2: what was passed is not one listening socket (told on standard error). */
int sw_systemd_begin(void);
/* Tells the state, lines such as "READY=1\nSTATUS=...". Nothing happens without a supervisor. */
void sw_systemd_tell(const char *state);
/* Tells that the caller is alive, when that is due; to be called now and then. */
void sw_systemd_alive(double now);
void sw_systemd_end(void);

#endif
