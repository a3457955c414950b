// Finds what clients that follow the documentation of the Data API would misread in a revision. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/fsck/faults.h"
#include "model/records.h"

namespace playfs::app {

/// Forms that many files of a revision share, with one of them.
class Forms {
 public:
  void add(const std::string& path, const FileEntry& entry);
  struct Form {
    Fault fault;
    std::string path;
    std::uint64_t files = 0;
  };
  [[nodiscard]] std::vector<Form> found() const;

 private:
  void add(const std::string& path, Fault fault);
  std::map<std::string, Form> by_message_;
};

/// For a manifest that continues in one of its own files.
Fault continuation_form();
/// How the fields of a revision, apart from its manifest, differ from the documented ones.
std::vector<Fault> record_forms(const Record& record, const Revision& decoded);

}  // namespace playfs::app
