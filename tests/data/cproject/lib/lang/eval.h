/* Runs programs. One struct run is one program's world: names defined in one evaluation are there in the next. */
#ifndef QUILL_EVAL_H
#define QUILL_EVAL_H

#include "lang/env.h"

struct run {
  struct arena arena;
  struct env *globals;
  struct buf printed; /* what print() wrote, for the caller to take */
  int depth;
};

void run_start(struct run *run);
void run_end(struct run *run);
/* The value of the last expression, or V_ERROR with a message. The text is copied. */
struct value run_text(struct run *run, const char *text, size_t length);

struct value run_call(struct run *run, struct value function, const struct value *arguments, int count, int line);
/* A V_ERROR; line 0: none is known. */
struct value run_error(struct run *run, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
