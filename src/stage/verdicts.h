// What ignore rules say about the names in a work tree, cached from one scan of the tree to the next.
//
// A survey scans the tree under the stage's mutex, while everyone else waits. So it reads and compiles no rule file,
// and bounds the matching that it does. What takes more becomes a question; questions are answered without the mutex,
// and a survey without questions is complete. An answer holds for what was asked: the bytes of a rule file, or a path
// under certain rules. If those change meanwhile, that is a new question.
//
// Verdicts are guarded by the mutex of their stage; questions and answers are plain values.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "stage/ignore.h"
#include "stage/inode.h"

namespace playfs::stage {

using IgnoreRulesPtr = std::shared_ptr<const IgnoreRules>;

/// The rules that apply to names in a directory: its own, and those of the directories above.
struct RuleChain {
  std::shared_ptr<const RuleChain> above;
  std::size_t skipped = 0;            ///< bytes of a path to skip, to make it relative to the directory
  std::vector<IgnoreRulesPtr> rules;  ///< of the directory, strongest first

  bool operator==(const RuleChain&) const = default;
};
/// nullptr: only the built-in rules.
using RuleChainPtr = std::shared_ptr<const RuleChain>;

/// nullopt: the effort ran out.
std::optional<bool> is_ignored(const RuleChain* chain, std::string_view path, bool is_directory, Effort& effort);

/// Identifies the bytes of a rule file at one moment.
struct RuleBytes {
  explicit RuleBytes(const Inode& file);
  [[nodiscard]] bool are_those_of(const Inode& file) const;

  std::optional<FileEntry> published;  ///< for lower content
  std::uint64_t spool = 0;             ///< number of the spool file, 0 for none
  std::uint64_t generation = 0;
};

struct RuleFile {
  RuleBytes bytes;
  IgnoreRulesPtr rules;             ///< nullptr: not available, or `error`
  std::optional<Error> error;       ///< why its rules are unknown
  std::string remark;               ///< for the user
  ContentHash hash;                 ///< of the text that was read
  std::size_t size = 0, count = 0;  ///< in bytes and rules, as far as read
};

struct Questions {
  struct File {
    std::string path;
    RuleBytes bytes;
    FileRef lower;
    SpoolFilePtr spool;
    RuleFile before;  ///< earlier content of the path, if any; most often the same text in another revision
  };
  struct Name {
    std::string key;  ///< the path, with a trailing slash for directories
    RuleChainPtr chain;
  };
  std::vector<File> files;
  std::vector<Name> names;
  std::size_t known_rules = 0, known_bytes = 0;  ///< of files that are not asked about

  [[nodiscard]] bool empty() const { return files.empty() && names.empty(); }
};

/// In the order of the questions.
struct Answers {
  std::vector<RuleFile> files;
  std::vector<bool> names;
};

Answers answer(const Questions& questions, const StageOptions& options, Spool& spool);

class Verdicts {
 public:
  /// Asks again about files that could not be read, were not available, or may fit within the bounds now.
  void forget_failures();
  /// Matching beyond `effort`, and a little per name, becomes a question.
  void begin_survey(Effort effort);
  /// nullptr: it became a question.
  [[nodiscard]] const RuleFile* rules_in(const std::string& path, const Inode& file);
  /// Returns the same object as long as its content is the same.
  [[nodiscard]] RuleChainPtr chain(const std::string& directory, RuleChain chain);
  /// nullopt: it became a question.
  [[nodiscard]] std::optional<bool> is_ignored(const RuleChainPtr& chain, std::string_view path, bool is_directory);
  /// What must be answered before the survey is complete. A complete survey forgets what it did not need.
  [[nodiscard]] Questions end_survey();
  /// Returns what the user has not been told yet.
  [[nodiscard]] std::vector<Error> learn(Questions questions, Answers answers);

 private:
  /// Bytes and rules of the known files.
  [[nodiscard]] std::pair<std::size_t, std::size_t> known() const;

  template <class Value>
  struct Needed {
    Value value;
    std::uint64_t survey = 0;  ///< the last one that needed it
  };
  struct Judged {
    RuleChainPtr chain;
    bool is_ignored = false;
  };

  Questions questions_;
  Effort effort_;
  std::uint64_t survey_ = 0;
  std::map<std::string, Needed<RuleFile>> files_;             // by path
  std::map<std::string, Needed<RuleChainPtr>> chains_;        // by the path of the directory
  std::unordered_map<std::string, Needed<Judged>> verdicts_;  // by Questions::Name::key
  std::set<std::string> told_;
};

}  // namespace playfs::stage
