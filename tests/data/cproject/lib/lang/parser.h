#ifndef QUILL_PARSER_H
#define QUILL_PARSER_H

#include "lang/ast.h"

/* A whole program as a block, in the arena; NULL with a message in *error where it is not one. */
struct node *parse(struct arena *arena, const char *text, size_t length, struct buf *error);

#endif
