// What ignore rules say of the names in a work tree, remembered from one look at the tree to the next.
//
// A survey goes over the tree under the stage's mutex, where everybody waits for it. So it reads no rule file, compiles
// none, and judges no longer than a moment. What it would have to do that for it notes as a question; questions are
// answered without the mutex, and a survey that had none is complete. Answers belong to what was asked: to the bytes of
// a rule file, and to a path under certain rules. Whatever changes meanwhile is simply another question.
//
// Verdicts are guarded by the mutex of the stage they belong to; questions and answers are plain values.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "stage/ignore.h"
#include "stage/inode.h"

namespace playfs::stage {

using IgnoreRulesPtr = std::shared_ptr<const IgnoreRules>;

/// What speaks of the names in a directory: the rules in it, and those of the directories above.
struct RuleChain {
  std::shared_ptr<const RuleChain> above;
  std::size_t skipped = 0;            ///< of a path, to be relative to the directory
  std::vector<IgnoreRulesPtr> rules;  ///< of the directory, the strongest first

  bool operator==(const RuleChain&) const = default;
};
/// nullptr: only what is built in.
using RuleChainPtr = std::shared_ptr<const RuleChain>;

/// nullopt: the effort did not suffice.
std::optional<bool> is_ignored(const RuleChain* chain, std::string_view path, bool is_directory, Effort& effort);

/// The bytes of a rule file at one time.
struct RuleBytes {
  explicit RuleBytes(const Inode& file);
  [[nodiscard]] bool are_those_of(const Inode& file) const;

  std::optional<FileEntry> published;  ///< where they lie below
  std::uint64_t spool = 0;             ///< number of the spool file, 0 for none
  std::uint64_t generation = 0;
};

struct RuleFile {
  RuleBytes bytes;
  IgnoreRulesPtr rules;             ///< nullptr: not at hand, or `error`
  std::optional<Error> error;       ///< what it ignores is not known
  std::string remark;               ///< to the user
  ContentHash hash;                 ///< of the text that was read
  std::size_t size = 0, count = 0;  ///< in bytes and rules, as far as it was read
};

struct Questions {
  struct File {
    std::string path;
    RuleBytes bytes;
    FileRef lower;
    SpoolFilePtr spool;
    RuleFile before;  ///< other bytes that were there, if any; most often the same text of another revision
  };
  struct Name {
    std::string key;  ///< the path, with a slash after a directory's
    RuleChainPtr chain;
  };
  std::vector<File> files;
  std::vector<Name> names;
  std::size_t known_rules = 0, known_bytes = 0;  ///< in files that need not be asked for

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
  /// Files that could not be read, were not at hand, or may now fit with the others, are asked for again.
  void forget_failures();
  /// What is over `effort` and a little for each name is asked for.
  void begin_survey(Effort effort);
  /// nullptr: it was asked for.
  [[nodiscard]] const RuleFile* rules_in(const std::string& path, const Inode& file);
  /// The same one as long as it says the same.
  [[nodiscard]] RuleChainPtr chain(const std::string& directory, RuleChain chain);
  /// nullopt: it was asked for.
  [[nodiscard]] std::optional<bool> is_ignored(const RuleChainPtr& chain, std::string_view path, bool is_directory);
  /// What has to be answered before a survey is complete. After a complete one what it did not need is forgotten.
  [[nodiscard]] Questions end_survey();
  /// The result is what the user has not been told yet.
  [[nodiscard]] std::vector<Error> learn(Questions questions, Answers answers);

 private:
  /// Bytes and rules of the files that are known.
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
