// What `playfs fsck` found. A fault that many revisions share is one finding. Plain; for one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>

#include "app/output.h"
#include "model/ids.h"

namespace playfs::app {

enum class Severity {
  damage,  ///< it cannot be read as it was published
  notice,  ///< it is as published, but not everybody sees it
  branch,  ///< head does not reach it; no fault
};

/// What is wrong with one file, or with one record.
struct Fault {
  Severity severity = Severity::damage;
  std::string kind;  ///< stable, in snake_case
  std::string message;
  std::string hint = {};  ///< what to do; empty: it follows from where the fault is
};

/// A file that no mount shows because of its name.
Fault refused_name(const std::string& why);

class Faults {
 public:
  explicit Faults(RevisionId head) : head_(std::move(head)) {}

  /// Call it for later revisions first. `path`: empty if the fault is the revision's.
  void add(const RevisionId& revision, const std::string& path, const Fault& fault);
  /// A fault that `files` files of the revision have, among them `path`. The same fault in another revision is the same
  /// finding, whichever files have it there.
  void add_group(const RevisionId& revision, const std::string& path, std::uint64_t files, const Fault& fault);

  [[nodiscard]] std::uint64_t count(Severity severity) const;
  /// A line for each, and one that says what to do.
  void print(Output& out) const;
  [[nodiscard]] Json::Array documents() const;

 private:
  struct Finding {
    Fault fault;
    RevisionId revision;  ///< the latest that has it
    std::string path;
    RevisionId first;  ///< the earliest
    std::uint64_t revisions = 1;
    std::uint64_t files = 1;  ///< in the latest
    bool is_in_head = false;
  };
  using Key = std::tuple<std::string, std::string, std::string>;  // kind, path, message

  void add(const Key& key, Finding finding);
  static std::string line(const Finding& finding);
  static std::string hint(const Finding& finding);

  const RevisionId head_;
  std::deque<Finding> findings_;
  std::map<Key, Finding*> by_key_;
  std::map<Severity, std::uint64_t> counts_;
};

}  // namespace playfs::app
