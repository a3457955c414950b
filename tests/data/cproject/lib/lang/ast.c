#include "lang/ast.h"

struct node *ast_new(struct arena *arena, enum node_kind kind, int line) {
  struct node *node = arena_alloc(arena, sizeof *node);
  node->kind = kind;
  node->line = line;
  return node;
}

static const char *op_text(enum token_kind op) {
  switch (op) {
    case T_PLUS: return "+";
    case T_MINUS: return "-";
    case T_STAR: return "*";
    case T_SLASH: return "/";
    case T_PERCENT: return "%";
    case T_CARET: return "^";
    case T_EQ: return "==";
    case T_NE: return "!=";
    case T_LT: return "<";
    case T_LE: return "<=";
    case T_GT: return ">";
    case T_GE: return ">=";
    case T_AND: return "and";
    case T_OR: return "or";
    case T_NOT: return "not";
    default: return "?";
  }
}

static void print_list(struct buf *out, const struct node *node) {
  for (; node; node = node->next) {
    buf_puts(out, " ");
    ast_print(out, node);
  }
}

void ast_print(struct buf *out, const struct node *node) {
  switch (node->kind) {
    case N_NUMBER: buf_printf(out, "%.14g", node->number); return;
    case N_STRING: buf_printf(out, "\"%s\"", node->text); return;
    case N_BOOL: buf_puts(out, node->number != 0 ? "true" : "false"); return;
    case N_NIL: buf_puts(out, "nil"); return;
    case N_NAME: buf_puts(out, node->text); return;
    case N_UNARY: buf_printf(out, "(%s", op_text(node->op)); break;
    case N_BINARY: buf_printf(out, "(%s", op_text(node->op)); break;
    case N_LET: buf_printf(out, "(let %s", node->text); break;
    case N_IF: buf_puts(out, "(if"); break;
    case N_FN: buf_puts(out, "(fn"); break;
    case N_CALL: buf_puts(out, "(call"); break;
    case N_BLOCK: buf_puts(out, "(do"); break;
  }
  if (node->kind == N_FN) print_list(out, node->items);
  const struct node *parts[] = {node->a, node->b, node->c};
  for (int i = 0; i < 3; i++)
    if (parts[i]) {
      buf_puts(out, " ");
      ast_print(out, parts[i]);
    }
  if (node->kind != N_FN) print_list(out, node->items);
  buf_puts(out, ")");
}
