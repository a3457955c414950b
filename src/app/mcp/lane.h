// What a lane of `playfs mcp` has of its own: a command's context whose output is collected, since stdout is the
// protocol's. For the lane's thread.
#pragma once

#include <sstream>
#include <string>

#include "app/command_context.h"

namespace playfs::app {

class Lane {
 public:
  /// `from`: of the command; its settings and clocks are used, and must outlive this. `agent`: who writes; empty: as
  /// configured.
  Lane(const CommandContext& from, const std::string& agent);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  [[nodiscard]] CommandContext& context() { return context_; }
  /// The working directory, which determines the service.
  void stand_in(const std::string& directory) { io_.directory = directory; }

  /// What was printed since the last call, as data and as notes.
  [[nodiscard]] std::string take_output() { return taken(out_stream_); }
  [[nodiscard]] std::string take_notes() { return taken(notes_); }

 private:
  static std::string taken(std::ostringstream& stream);

  std::istringstream nothing_;
  std::ostringstream out_stream_, notes_;
  runtime::Io io_;
  Output out_;
  CommandContext context_;
};

}  // namespace playfs::app
