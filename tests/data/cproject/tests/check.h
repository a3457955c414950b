/* The smallest of test frames: CHECK counts, DONE says how it went and is the exit code. */
#ifndef QUILL_CHECK_H
#define QUILL_CHECK_H

#include <stdio.h>
#include <string.h>

static int checks, failures;

#define CHECK(what) (checks++, (what) ? 0 : (failures++, fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what)))
#define CHECK_TEXT(got, wanted)                                                                                  \
  (checks++, !strcmp((got), (wanted)) ? 0                                                                        \
                                      : (failures++, fprintf(stderr, "%s:%d: got \"%s\", wanted \"%s\"\n", __FILE__, \
                                                             __LINE__, (got), (wanted))))
#define DONE() (printf("%-22s %3d checks, %d failed\n", __FILE__, checks, failures), failures != 0)

#endif
