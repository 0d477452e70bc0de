/* Socket addresses as text. */
#ifndef SW_SERVER_ADDRESS_H
#define SW_SERVER_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* "ADDRESS:PORT" with a numeric address, IPv6 in brackets. */
bool sw_address_parse(const char *text, struct sockaddr_storage *out, bool *loopback);
/* That of a socket of ours; its port, or 0. */
unsigned sw_address_of(int fd, struct sockaddr_storage *out, bool *loopback);
/* The address without its port. */
void sw_address_text(const struct sockaddr *a, char *out, size_t room);

#endif
