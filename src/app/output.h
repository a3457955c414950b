// How commands speak: data to stdout, words to stderr, or one JSON document with `--json`.
//
// For one thread. Text of strangers goes through `safe` before it reaches a person's terminal; JSON carries it as
// it is, with JSON's own escapes for what a terminal would obey.
#pragma once

#include <string>
#include <string_view>

#include "app/exit_code.h"
#include "app/io.h"
#include "base/result.h"
#include "base/text.h"
#include "model/json.h"

namespace playfs::app {

/// The version of the shape of every JSON document that a command prints.
inline constexpr int kSchemaVersion = 1;

inline std::string safe(std::string_view text) { return escape_for_terminal(text); }
/// Printed JSON, with the same escaped as JSON has it: it says what it said before.
inline std::string safe_json(std::string_view text) { return escape_json_for_terminal(text); }

class Output {
 public:
  Output(Io& io, bool json) : io_(io), json_(json) {}

  [[nodiscard]] bool json() const { return json_; }
  /// Whether words on stdout may be coloured: a terminal, and no NO_COLOR.
  [[nodiscard]] bool colour() const;
  [[nodiscard]] bool is_terminal() const { return io_.out_is_terminal; }
  /// Whether progress may be drawn on stderr.
  [[nodiscard]] bool progress() const { return io_.err_is_terminal && !json_; }

  /// With --json: the document, `schema_version` in front.
  void document(JsonObject fields);
  /// With --json: one line of a stream.
  void stream_item(JsonObject fields);
  /// Without --json: one line on stdout.
  void line(std::string_view text);
  /// Bytes on stdout as they are.
  void bytes(std::string_view data);
  /// One line on stderr that the next one replaces; "" takes it away. REQUIRES: progress().
  void progress_line(std::string_view text);
  /// Words on stderr, one line; also with --json, which leaves stderr to people.
  void note(std::string_view text);

  /// Says what failed, why, whether a retry helps and what to type next: on stderr in words, with --json on stdout.
  ExitCode error(const Error& error);

 private:
  Io& io_;
  bool json_;
};

/// {"code", "message", "hint", "retryable", "retry_after_s"}, the last two words only where there is something to say.
JsonObject error_document(const Error& error);

}  // namespace playfs::app
