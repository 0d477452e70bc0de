#include "server/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sw_address_parse(const char *text, struct sockaddr_storage *out, bool *loopback)
{
  const char *colon = strrchr(text, ':');
  char host[64];
  if (!colon || colon - text >= (long)sizeof host)
    return false;
  snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
  char *end;
  unsigned long port = strtoul(colon + 1, &end, 10);
  if (!colon[1] || *end || port > 65535)
    return false;
  memset(out, 0, sizeof *out);
  size_t n = strlen(host);
  if (host[0] == '[' && n > 2) {
    host[n - 1] = 0;
    struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
    a->sin6_family = AF_INET6;
    a->sin6_port = htons((uint16_t)port);
    *loopback = !strcmp(host + 1, "::1");
    return inet_pton(AF_INET6, host + 1, &a->sin6_addr) == 1;
  }
  struct sockaddr_in *a = (struct sockaddr_in *)out;
  a->sin_family = AF_INET;
  a->sin_port = htons((uint16_t)port);
  *loopback = !strncmp(host, "127.", 4);
  return inet_pton(AF_INET, host, &a->sin_addr) == 1;
}

unsigned sw_address_of(int fd, struct sockaddr_storage *out, bool *loopback)
{
  socklen_t len = sizeof *out;
  memset(out, 0, sizeof *out);
  if (getsockname(fd, (struct sockaddr *)out, &len))
    return 0;
  char host[64];
  sw_address_text((struct sockaddr *)out, host, sizeof host);
  *loopback = !strncmp(host, "127.", 4) || !strcmp(host, "::1");
  return ntohs(out->ss_family == AF_INET6 ? ((struct sockaddr_in6 *)out)->sin6_port : ((struct sockaddr_in *)out)->sin_port);
}

void sw_address_text(const struct sockaddr *a, char *out, size_t room)
{
  const void *bytes = a->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr
                                               : (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr;
  if (!inet_ntop(a->sa_family, bytes, out, (socklen_t)room))
    snprintf(out, room, "?");
}
