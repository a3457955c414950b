#include "lang/lexer.h"

#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

static int is_digit(int c) { return c >= '0' && c <= '9'; }
/* Every character outside ASCII may stand in a name; whether it is valid UTF-8 is checked there. */
static int is_name(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80; }

void lexer_start(struct lexer *lexer, const char *text, size_t length) {
  *lexer = (struct lexer){text, text + length, 1};
}

static void skip_blank(struct lexer *lexer) {
  for (; lexer->at < lexer->end; lexer->at++) {
    if (*lexer->at == '\n') lexer->line++;
    else if (*lexer->at == '#')
      while (lexer->at + 1 < lexer->end && lexer->at[1] != '\n') lexer->at++;
    else if (*lexer->at != ' ' && *lexer->at != '\t' && *lexer->at != '\r') return;
  }
}

static struct token failed(struct lexer *lexer, const char *what) {
  lexer->at = lexer->end;
  return (struct token){.kind = T_ERROR, .text = what, .length = strlen(what), .line = lexer->line};
}

static struct token name(struct lexer *lexer, const char *start) {
  static const struct { const char *word; enum token_kind kind; } words[] = {
      {"let", T_LET}, {"fn", T_FN}, {"if", T_IF}, {"then", T_THEN}, {"else", T_ELSE}, {"true", T_TRUE},
      {"false", T_FALSE}, {"nil", T_NIL}, {"and", T_AND}, {"or", T_OR}, {"not", T_NOT}};
  while (lexer->at < lexer->end && (is_name((unsigned char)*lexer->at) || is_digit((unsigned char)*lexer->at)))
    lexer->at++;
  size_t length = (size_t)(lexer->at - start);
  if (utf8_count(start, length) < 0) return failed(lexer, "a name that is not valid UTF-8");
  struct token token = {.kind = T_NAME, .text = start, .length = length, .line = lexer->line};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i].word) == length && !memcmp(words[i].word, start, length)) token.kind = words[i].kind;
  return token;
}

static struct token number(struct lexer *lexer, const char *start) {
  char copy[64];
  const char *at = start;
  while (at < lexer->end && is_digit((unsigned char)*at)) at++;
  if (at + 1 < lexer->end && *at == '.' && is_digit((unsigned char)at[1]))
    for (at++; at < lexer->end && is_digit((unsigned char)*at);) at++;
  size_t length = (size_t)(at - start);
  if (length >= sizeof copy) return failed(lexer, "a number too long");
  memcpy(copy, start, length);
  copy[length] = '\0';
  lexer->at = at;
  return (struct token){T_NUMBER, start, length, lexer->line, strtod(copy, NULL)};
}

/* The token is what stands between the quotes; the parser resolves escapes. */
static struct token string(struct lexer *lexer, const char *start) {
  int line = lexer->line;
  for (; lexer->at < lexer->end && *lexer->at != '"'; lexer->at++) {
    if (*lexer->at == '\\' && lexer->at + 1 < lexer->end) lexer->at++;
    if (*lexer->at == '\n') lexer->line++;
  }
  if (lexer->at == lexer->end) return failed(lexer, "a string without an end");
  size_t length = (size_t)(lexer->at++ - start);
  if (utf8_count(start, length) < 0) return failed(lexer, "a string that is not valid UTF-8");
  return (struct token){.kind = T_STRING, .text = start, .length = length, .line = line};
}

struct token lexer_next(struct lexer *lexer) {
  static const struct { char text[3]; enum token_kind kind; } marks[] = {
      {"=>", T_ARROW}, {"==", T_EQ}, {"!=", T_NE}, {"<=", T_LE}, {">=", T_GE}, {"=", T_ASSIGN}, {"<", T_LT},
      {">", T_GT}, {"+", T_PLUS}, {"-", T_MINUS}, {"*", T_STAR}, {"/", T_SLASH}, {"%", T_PERCENT}, {"^", T_CARET},
      {"(", T_LPAREN}, {")", T_RPAREN}, {"{", T_LBRACE}, {"}", T_RBRACE}, {",", T_COMMA}, {";", T_SEMICOLON}};
  skip_blank(lexer);
  const char *start = lexer->at;
  if (start == lexer->end) return (struct token){.kind = T_END, .text = start, .line = lexer->line};
  if (is_digit((unsigned char)*start)) return number(lexer, start);
  if (is_name((unsigned char)*start)) return name(lexer, start);
  if (*start == '"') return lexer->at++, string(lexer, start + 1);
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    size_t length = strlen(marks[i].text);
    if ((size_t)(lexer->end - start) >= length && !memcmp(start, marks[i].text, length)) {
      lexer->at += length;
      return (struct token){.kind = marks[i].kind, .text = start, .length = length, .line = lexer->line};
    }
  }
  return failed(lexer, "a character that means nothing here");
}
