#include "app/output.h"

#include <utility>

#include "base/hints.h"
#include "vfs/control/control_text.h"
#include "wire/json.h"

namespace playfs::app {

bool Output::colour() const { return io_.out_is_terminal && !io_.variable("NO_COLOR"); }

void Output::remove_progress() {
  MutexLock lock(err_);
  if (std::exchange(has_progress_, false)) io_.err << "\r\x1b[K" << std::flush;
}

void Output::document(JsonObject fields) {
  if (!json_) return;
  JsonObject whole{{"schema_version", kSchemaVersion}};
  for (const auto& [name, value] : fields) whole.append(name, value);
  io_.out << wire::to_pretty_text(Json(std::move(whole)));
}

void Output::stream_item(JsonObject fields) {
  if (json_) io_.out << safe_json(wire::to_text(Json(std::move(fields)))) << '\n';
}

void Output::line(std::string_view text) {
  if (json_) return;
  remove_progress();
  io_.out << text << '\n';
}

void Output::bytes(std::string_view data) {
  remove_progress();
  io_.out.write(data.data(), static_cast<std::streamsize>(data.size()));
}

void Output::progress_line(std::string_view text) {
  if (text.empty()) return remove_progress();
  if (!progress()) return;
  // What is longer than the terminal is wide would be on several lines, of which the next call replaces the last.
  if (text.size() >= io_.columns) text = text.substr(0, io_.columns > 0 ? io_.columns - 1 : 0);
  while (!text.empty() && !is_valid_utf8(text)) text.remove_suffix(1);
  MutexLock lock(err_);
  has_progress_ = true;
  io_.err << '\r' << text << "\x1b[K" << std::flush;
}

void Output::note(std::string_view text) {
  remove_progress();  // before what was printed comes out behind it
  io_.out.flush();
  remark(text);
}

void Output::remark(std::string_view text) {
  remove_progress();
  MutexLock lock(err_);
  io_.err << text << '\n';
  io_.err.flush();
}

ExitCode Output::error(const Error& error) {
  if (json_) {
    document(JsonObject{{"error", vfs::error_json(error)}});
  } else {
    note("playfs: " + escape_for_terminal(error.message, true));
    if (error.retry_after)
      note("The service asks you to retry in " + std::to_string(error.retry_after->count()) + " s.");
    else if (traits_of(error.code).later == Later::yes) note("This may be temporary: retry later.");
    note("Try: " + escape_for_terminal(hint_of(error), true));
  }
  return exit_code_for(error.code);
}

}  // namespace playfs::app
