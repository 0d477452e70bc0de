/* Without libFuzzer: runs the target on every file named on the command line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) {
      perror(argv[i]);
      return 1;
    }
    size_t cap = 1 << 16, n = 0, got;
    uint8_t *bytes = malloc(cap);
    while (bytes && (got = fread(bytes + n, 1, cap - n, f)) > 0) {
      n += got;
      if (n == cap)
        bytes = realloc(bytes, cap *= 2);
    }
    fclose(f);
    if (!bytes)
      return 1;
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
  }
  printf("%d files\n", argc - 1);
  return 0;
}
