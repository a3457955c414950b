#include <stdio.h>
#include <string.h>

#include "commands.h"

static const struct {
  const char *name, *usage;
  int words;
  int (*run)(int, char **);
} commands[] = {
    {"run", "FILE", 1, cmd_run},           {"eval", "EXPRESSION", 1, cmd_eval},       {"ast", "EXPRESSION", 1, cmd_ast},
    {"repl", "", 0, cmd_repl},             {"get", "STORE KEY", 2, cmd_get},
    {"set", "STORE KEY EXPRESSION", 3, cmd_set}, {"remove", "STORE KEY", 2, cmd_remove},
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(argv[1], commands[i].name) && argc == commands[i].words + 2) return commands[i].run(argc - 2, argv + 2);
  fputs("usage:\n", stderr);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    fprintf(stderr, "  quill %s %s\n", commands[i].name, commands[i].usage);
  return 2;
}
