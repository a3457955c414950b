#ifndef QUILL_COMMANDS_H
#define QUILL_COMMANDS_H

/* Each takes what stands behind its name, and returns the exit code. */
int cmd_run(int count, char **words);
int cmd_eval(int count, char **words);
int cmd_ast(int count, char **words);
int cmd_repl(int count, char **words);
int cmd_get(int count, char **words);
int cmd_set(int count, char **words);
int cmd_remove(int count, char **words);

struct value;
struct run;
/* Prints what the run printed, and the value or the error; the exit code. */
int report(struct run *run, struct value value, int show_value);

#endif
