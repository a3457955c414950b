// Reads records of any collection and prints them, for commands. Blocking, for one thread.
//
// Records are untrusted text: output for people is escaped, JSON carries it unchanged.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_context.h"
#include "base/cancel.h"
#include "base/result.h"
#include "base/shell.h"
#include "model/records.h"
#include "runtime/client_stack.h"

namespace playfs::app {

/// How much of a collection was read.
struct LookedAt {
  std::size_t records = 0;
  std::size_t unreadable = 0;  ///< entries of the list that are no records
  bool everything = false;     ///< its oldest record, too
  std::string since;           ///< when the oldest record read was created; empty if there was none
};

/// The most requests that one list may cost.
inline constexpr std::size_t kMostPages = 20;

/// Reads records newest first, by at most `pages` requests, until `take` returns false.
Result<LookedAt> read_newest(runtime::ClientStack& stack, const std::string& collection, std::size_t pages,
                             const std::function<bool(const Record&)>& take, const CancelToken& cancel = {});

std::string text_of_field(const Record& record, const std::string& name);

struct Listing {
  std::string collection;
  std::string key;                   ///< of the list in the JSON document
  std::vector<std::string> columns;  ///< fields; before them come the record's id and when it was created
  std::string none;                  ///< what to say if there are none,
  ShellCommand next;                 ///< and a command that makes one
  std::size_t limit = 50;
  std::function<bool(const Record&)> wanted = [](const Record&) { return true; };
  std::function<std::string(const Record&, const std::string& column)> cell = text_of_field;
};
/// Prints the newest records: the whole of a command like `playfs mail list`.
Result<ExitCode> print_listing(CommandContext& context, const Listing& listing);

/// Prints all fields of a record as "name: value" lines.
void print_fields(Output& out, const Record& record);
/// A text of several lines, each after `margin` and a bar: no line of it can pass for one of ours.
void print_text(Output& out, std::string_view text, const std::string& margin = {});

/// A field that is a list of texts, or one text.
std::vector<std::string> words_of(const JsonObject& fields, std::string_view name);

}  // namespace playfs::app
