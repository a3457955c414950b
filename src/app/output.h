// The output of commands: data on stdout and messages on stderr, or one JSON document with `--json`.
//
// For one thread, but for what is said to be for any. Strangers' text goes through `safe` before it reaches a terminal;
// JSON carries it unchanged, with JSON's own escapes for what a terminal would interpret.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "app/exit_code.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/text.h"
#include "model/json.h"
#include "runtime/io.h"

namespace playfs::app {

/// The version of the schema of all JSON documents that commands print.
inline constexpr int kSchemaVersion = 1;

inline std::string safe(std::string_view text) { return escape_for_terminal(text); }
/// The same for printed JSON, with JSON's own escapes, so that its meaning does not change.
inline std::string safe_json(std::string_view text) { return escape_json_for_terminal(text); }

class Output {
 public:
  Output(runtime::Io& io, bool json) : io_(io), json_(json) {}

  [[nodiscard]] bool json() const { return json_; }
  /// Whether stdout may be coloured: a terminal, and no NO_COLOR.
  [[nodiscard]] bool colour() const;
  [[nodiscard]] bool is_terminal() const { return io_.out_is_terminal; }
  /// Whether to draw progress on stderr.
  [[nodiscard]] bool progress() const { return io_.err_is_terminal && !json_ && !paged_; }
  /// Whether a pager has the terminal.
  void set_paged(bool paged) { paged_ = paged; }
  [[nodiscard]] bool is_paged() const { return paged_; }

  /// With --json: the document, preceded by `schema_version`.
  void document(JsonObject fields);
  /// With --json: one line of a stream.
  void stream_item(JsonObject fields);
  /// Without --json: one line on stdout.
  void line(std::string_view text);
  /// Raw bytes on stdout.
  void bytes(std::string_view data);
  /// One line on stderr that the next call replaces; "", and all other output, removes it. Nothing if not progress().
  /// From any thread.
  void progress_line(std::string_view text);
  /// One line on stderr, after what was printed before; also with --json, which leaves stderr to people.
  void note(std::string_view text);
  /// The same from any thread, and in no order with what is printed.
  void remark(std::string_view text);

  /// Reports what failed, why, whether a retry helps and what to type next: on stderr, or with --json on stdout.
  ExitCode error(const Error& error);

 private:
  void remove_progress() PLAYFS_EXCLUDES(err_);

  runtime::Io& io_;
  const bool json_;
  std::atomic<bool> paged_ = false;
  Mutex err_;  ///< io_.err
  bool has_progress_ PLAYFS_GUARDED_BY(err_) = false;
};

}  // namespace playfs::app
