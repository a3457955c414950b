#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "lang/eval.h"

int cmd_repl(int count, char **words) {
  (void)count, (void)words;
  struct run run;
  run_start(&run);
  char line[1024];
  int talk = isatty(0);
  for (;;) {
    if (talk) fputs("> ", stdout), fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) break;
    report(&run, run_text(&run, line, strlen(line)), 1);
  }
  run_end(&run);
  return 0;
}
