// Checks all that a service has of one project: every revision, its files, its parents, and head.
//
// Reads the list of revisions once, newest first, back to when the project was created; holds the graph of the
// revisions, and the manifest of one at a time. Blocking; for one thread.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/fsck/content_check.h"
#include "app/fsck/faults.h"
#include "app/fsck/revision_graph.h"
#include "base/cancel.h"
#include "model/records.h"
#include "runtime/client_stack.h"

namespace playfs::app {

class ProjectCheck {
 public:
  struct Options {
    bool uses_cache = true;                                  ///< see ContentCheck
    std::function<void(const ProjectCheck&)> progress = {};  ///< called before each revision; may be empty
  };
  ProjectCheck(runtime::ClientStack& stack, Project project, Options options, const CancelToken& cancel);

  /// Fails if the service cannot be asked; what was found until then stays.
  Status run();

  [[nodiscard]] const Faults& faults() const { return faults_; }
  [[nodiscard]] std::uint64_t revisions() const { return graph_.size(); }
  [[nodiscard]] const ContentCheck& content() const { return content_; }

 private:
  /// Why a revision that is named is not the project's.
  struct Absence {
    Severity severity = Severity::damage;
    std::string kind;   ///< "missing": begins the kind of the finding
    std::string words;  ///< "does not exist": goes on after its id
  };

  Status read_list();
  Status take(const Record& record);
  Status check_files(const Revision& revision);
  Status check_refused(const Revision& revision);
  Status add_continuation(Revision& revision);
  /// Asks for the revisions that are named and were not in the list.
  Status look_for_others();
  Status look_for(const std::vector<RevisionId>& others);
  [[nodiscard]] Result<Absence> absence_of(const Result<Record>& answer) const;
  void check_links();
  /// The command that gives the project a head again: `newest`, or a new revision if `newest` is empty.
  [[nodiscard]] std::string head_repair(const RevisionId& newest) const;
  void check_head();

  runtime::ClientStack& stack_;
  const Project project_;
  const Options options_;
  const CancelToken cancel_;
  Faults faults_;
  ContentCheck content_;
  RevisionGraph graph_;
  std::unordered_map<RevisionId, Absence> absent_;
  std::size_t asked_ = 0;  ///< revisions that the list lacked
};

}  // namespace playfs::app
