#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "lang/eval.h"
#include "lang/parser.h"

int report(struct run *run, struct value value, int show_value) {
  if (run->printed.length) fwrite(run->printed.data, 1, run->printed.length, stdout);
  run->printed.length = 0;
  struct buf out = {0};
  value_print(&out, value);
  if (value.kind == V_ERROR) {
    fflush(stdout);
    fprintf(stderr, "quill: %s\n", out.data);
  } else if (show_value && value.kind != V_NIL) {
    puts(out.data);
  }
  buf_free(&out);
  return value.kind == V_ERROR;
}

static int run_and_report(const char *text, size_t length, int show_value) {
  struct run run;
  run_start(&run);
  int code = report(&run, run_text(&run, text, length), show_value);
  run_end(&run);
  return code;
}

int cmd_run(int count, char **words) {
  (void)count;
  struct buf text = {0};
  if (buf_read_file(&text, words[0])) {
    fprintf(stderr, "quill: %s: %s\n", words[0], strerror(errno));
    return 1;
  }
  int code = run_and_report(text.data, text.length, 0);
  buf_free(&text);
  return code;
}

int cmd_eval(int count, char **words) { return (void)count, run_and_report(words[0], strlen(words[0]), 1); }

int cmd_ast(int count, char **words) {
  (void)count;
  struct arena arena = {0};
  struct buf out = {0}, error = {0};
  struct node *program = parse(&arena, words[0], strlen(words[0]), &error);
  if (program) ast_print(&out, program);
  puts(program ? out.data : error.data);
  buf_free(&out);
  buf_free(&error);
  arena_free(&arena);
  return !program;
}
