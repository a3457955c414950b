// Creates and changes records for commands, and reports whether a failed request may have arrived. Blocking; for one
// thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "base/result.h"
#include "model/records.h"
#include "runtime/client_stack.h"

namespace playfs::app {

struct Sending {
  std::string collection;
  std::string what;        ///< "post the message", for errors
  std::string look;        ///< the command that shows whether it has arrived after all
  std::string key = {};    ///< the POST's Idempotency-Key; empty: one that is kept until the outcome is known (KeptKey)
  std::string again = {};  ///< what sends it again, for errors; empty: the same command
};

/// Refuses what no service takes as a record, naming the field to change.
Status check_fits(const JsonObject& body, const std::string& what);
/// Creates a record, once even if the reply is lost and the same command is run again. What cannot fit is refused
/// before it is sent.
Result<Record> create_record(runtime::ClientStack& stack, const Sending& sending, const JsonObject& body);
/// Changes the given fields of a record.
Result<Record> change_record(runtime::ClientStack& stack, const Sending& sending, const std::string& id,
                             JsonObject fields);

/// A thread to begin.
struct Beginning {
  JsonObject thread;
  std::optional<JsonObject> message;  ///< its first, without "thread"
  std::string what = "begin the thread";
  std::string again = {};  ///< what to do if only the message fails; empty: post it
  /// Their Idempotency-Keys; empty: kept ones.
  std::function<std::string(const std::string& collection)> key_of = {};
};
struct BegunThread {
  Record thread;
  std::optional<Result<Record>> message;
};
/// Creates a thread and then its first message, which may fail by itself. REQUIRES: check_fits(message), or the thread
/// may stay empty.
Result<BegunThread> begin_thread(const CommandContext& context, runtime::ClientStack& stack, Beginning beginning);

/// What --dry-run shows instead.
ExitCode show_unsent(CommandContext& context, const std::string& collection, JsonObject body);

/// "name=value" words as fields; a value that is JSON is taken as that, else as text. The system's fields are refused.
Result<JsonObject> fields_from(const std::vector<std::string>& words);

}  // namespace playfs::app
