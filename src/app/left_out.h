// Files that a copy of a tree lacks: told on stderr, listed in the document, and the reason for an exit code.
#pragma once

#include <string>
#include <vector>

#include "app/exit_code.h"
#include "app/output.h"
#include "base/result.h"
#include "model/json.h"
#include "model/manifest.h"

namespace playfs::app {

class LeftOut {
 public:
  void add(std::string path, Error why) { entries_.push_back({std::move(path), std::move(why)}); }
  /// Entries that are not shown anywhere: their path or content would be dangerous, or cannot be read.
  void add(const std::vector<RefusedEntry>& refused);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void tell(Output& out) const;
  [[nodiscard]] Json::Array document() const;
  /// `unreachable` if the service failed for one of them, so that another try may help; otherwise `failed`.
  [[nodiscard]] ExitCode exit_code() const;

 private:
  struct Entry {
    std::string path;
    Error why;
  };
  std::vector<Entry> entries_;
};

}  // namespace playfs::app
