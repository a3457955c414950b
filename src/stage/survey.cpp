// Scans the tree for publishable differences from its base.
#include <algorithm>

#include "model/chunking.h"
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {

/// Matching steps that a survey may take with the mutex held: a moment. See stage/verdicts.h.
constexpr std::uint64_t kMomentOfJudging = 1'000'000;

}  // namespace

std::optional<ContentHash> hash_of(const FileEntry& entry) {
  if (!entry.inline_text && entry.chunks.empty()) return ContentHash::of("");
  return known_hash(entry);
}

std::optional<ContentHash> hash_of(const Inode& inode) {
  if (inode.kind == Kind::symlink) return ContentHash::of(inode.target);
  if (inode.hashed && inode.hashed->generation == inode.generation) return inode.hashed->hash;
  return std::nullopt;
}

std::string base_content(const FileEntry* entry) {
  if (!entry) return {};
  const auto hash = hash_of(*entry);
  return std::to_string(static_cast<int>(entry->mode)) + ":" + (hash ? hash->hex() : "unknown");
}

bool is_content_of(const ContentHash& hash, const FileEntry& entry) { return hash == hash_of(entry); }

Result<FileDigest> digest(Spool& spool, SpoolFile& file) {
  ContentHasher hasher;
  FileDigest found;
  PLAYFS_TRY(SharedFd fd, spool.descriptor(file, false));
  for (bool more = fd != nullptr; more;) {
    constexpr std::size_t step = 1 << 20;
    PLAYFS_TRY(std::string piece, read_at(fd->get(), found.size, step));
    hasher.update(piece);
    found.size += piece.size();
    more = piece.size() == step;
  }
  found.hash = hasher.finish();
  return found;
}

/// Walks the directories that have rows; everything else is as in the base.
class Surveyor {
 public:
  Surveyor(Stage::State& state, Survey& survey) : state_(state), survey_(survey) {}

  /// REQUIRES: the stage's mutex, which thread-safety analysis cannot match with this object's.
  void run() {
    state_.mutex.assert_held();
    Frame top{nullptr, state_.root.get(), "", state_.base_root(), std::nullopt, std::nullopt, nullptr};
    walk(top);
    add_what_is_missing();
    std::sort(survey_.differences.begin(), survey_.differences.end(),
              [](const Difference& a, const Difference& b) { return a.path < b.path; });
    std::sort(survey_.unpublished.begin(), survey_.unpublished.end());
  }

 private:
  struct Frame {
    Frame* above;
    Inode* directory;
    std::string path;
    const Tree::Directory* lower;   ///< what the base has at this path, even if it does not show through
    std::optional<bool> excluded;   ///< the directory is ignored; what is tracked in it stays tracked
    std::optional<bool> is_learnt;  ///< whether everything that `excluded` and `chain` depend on is known
    RuleChainPtr chain;             ///< unless it is excluded
  };

  void walk(Frame& frame) PLAYFS_REQUIRES(state_.mutex) {
    const Directory& in = *frame.directory->directory;
    for (const auto& [name, child] : in.children) {
      if (child.inode->has_row) visit(frame, name, child.inode);
    }
    if (!frame.lower) return;
    if (in.opaque) {
      for (const auto& [name, child] : frame.lower->children) {
        if (!in.children.contains(name)) deleted(join_path(frame.path, name), child);
      }
    } else {
      for (const auto& name : in.whiteouts) {
        auto child = frame.lower->children.find(name);
        if (child != frame.lower->children.end()) deleted(join_path(frame.path, name), child->second);
      }
    }
  }

  void visit(Frame& frame, const std::string& name, const InodePtr& inode) PLAYFS_REQUIRES(state_.mutex) {
    std::string path = join_path(frame.path, name);
    const FileEntry* tracked = frame.lower ? frame.lower->file(name) : nullptr;
    const Tree::Directory* below = frame.lower ? frame.lower->directory(name) : nullptr;
    bool publishable = path.size() <= kMaxPathLength && !why_not_a_component(name);
    if (inode->is_directory()) {
      if (tracked) survey_.differences.push_back({path, nullptr, tracked, false, false, 0});
      const Directory& in = *inode->directory;
      bool is_empty = in.children.empty() && (in.loaded || !in.lower);
      bool ignored = !below && publishable && !is_empty && is_ignored(frame, path, true);
      if (!below && (!publishable || is_empty || (ignored && !is_tracked_below(path)))) {
        survey_.unpublished.push_back(path + '/');
        return;
      }
      Frame next{&frame, inode.get(), std::move(path), below, std::nullopt, std::nullopt, nullptr};
      if (!below) next.excluded = ignored;
      walk(next);
      return;
    }
    if (below) {
      for (const auto& [child_name, child] : below->children) deleted(join_path(path, child_name), child);
    }
    if (!is_publishable(*inode) ||
        (!tracked && (!publishable || (!is_tracked(path) && is_ignored(frame, path, false))))) {
      if (tracked) survey_.differences.push_back({path, nullptr, tracked, false, false, 0});
      survey_.unpublished.push_back(std::move(path));
      return;
    }
    bool is_doubtful = may_be_frozen(path, *inode);
    Difference difference{std::move(path), inode, tracked, false, is_doubtful, inode->generation};
    if (tracked && !judge(*inode, *tracked, difference.uncertain)) return;
    survey_.differences.push_back(std::move(difference));
  }

  bool is_tracked(const std::string& path) PLAYFS_REQUIRES(state_.mutex) {
    auto at = state_.notes.tracked.find(path);
    return at != state_.notes.tracked.end() && at->second != TrackedAs::discarded;
  }

  bool is_tracked_below(const std::string& path) PLAYFS_REQUIRES(state_.mutex) {
    const std::string within = path + '/';
    for (auto at = state_.notes.tracked.lower_bound(within);
         at != state_.notes.tracked.end() && at->first.starts_with(within); ++at)
      if (at->second != TrackedAs::discarded) return true;
    return false;
  }

  /// Adds tracked paths without a file as deletions. The base has nothing there, so any file would be a difference.
  void add_what_is_missing() PLAYFS_REQUIRES(state_.mutex) {
    if (state_.notes.parents.empty()) return;
    std::set<std::string_view> there;
    for (const auto& difference : survey_.differences) there.insert(difference.path);
    std::vector<Difference> missing;
    for (const auto& [path, as] : state_.notes.tracked) {
      if (as != TrackedAs::staged && !there.contains(path))
        missing.push_back({path, nullptr, nullptr, false, false, 0});
    }
    survey_.differences.insert(survey_.differences.end(), missing.begin(), missing.end());
  }

  void deleted(const std::string& path, const Tree::Child& child) {
    if (const auto* file = std::get_if<const FileEntry*>(&child)) {
      survey_.differences.push_back({path, nullptr, *file, false, false, 0});
      return;
    }
    for (const auto& [name, below] : std::get<std::unique_ptr<Tree::Directory>>(child)->children)
      deleted(join_path(path, name), below);
  }

  /// Whether a file differs from what is tracked, or may differ.
  bool judge(Inode& inode, const FileEntry& tracked, bool& uncertain) PLAYFS_REQUIRES(state_.mutex) {
    if (published_mode(inode) != tracked.mode) return true;
    if (inode.is_below()) return !inode.lower.entry->same_content(tracked);
    auto expected = hash_of(tracked);
    if (!expected) return true;
    if (auto known = hash_of(inode)) return known != expected;
    // Sizes in playfs manifests are bytes. In a manifest that another client edited, equal content may look changed
    // here and is then committed with its true size; a real change is never missed.
    if (!state_.base->tree.manifest().tx.empty() && tracked.size_claim && state_.measure(inode) &&
        inode.size != *tracked.size_claim)
      return true;
    uncertain = !is_beyond_publishing(inode);
    return true;
  }

  /// No revision has a file of that size, and hashing it could take hours.
  bool is_beyond_publishing(Inode& inode) PLAYFS_REQUIRES(state_.mutex) {
    return state_.measure(inode) && inode.size > kMaxFileSize;
  }

  /// Whether it was written since it was frozen, perhaps with the same bytes.
  bool may_be_frozen(const std::string& path, Inode& inode) PLAYFS_REQUIRES(state_.mutex) {
    if (!state_.pending || !inode.spool || hash_of(inode)) return false;
    auto as = state_.pending->files.find(path);
    if (as == state_.pending->files.end()) return false;
    if (as->second.published) return hash_of(*as->second.published) && !is_beyond_publishing(inode);
    return inode.spool->number() != as->second.spool && state_.measure(inode) && inode.size == as->second.size;
  }

  /// What is unknown becomes a question and counts as ignored, in a survey that will not be complete anyway.
  bool is_ignored(Frame& frame, std::string_view path, bool is_directory) PLAYFS_REQUIRES(state_.mutex) {
    if (!learn(frame) || is_excluded(frame)) return true;
    return state_.verdicts.is_ignored(frame.chain, path, is_directory).value_or(true);
  }

  bool is_excluded(Frame& frame) PLAYFS_REQUIRES(state_.mutex) {
    if (!frame.above) return false;
    if (!frame.excluded) frame.excluded = is_ignored(*frame.above, frame.path, true);
    return *frame.excluded;
  }

  /// Finds the rules for what is in a directory; false if they became questions.
  bool learn(Frame& frame) PLAYFS_REQUIRES(state_.mutex) {
    if (frame.is_learnt) return *frame.is_learnt;
    bool above = !frame.above || learn(*frame.above);
    if (above && is_excluded(frame)) return *(frame.is_learnt = true);
    // Asks about all directories on the way at once.
    bool own = learn_own(frame);
    return *(frame.is_learnt = above && own);
  }

  bool learn_own(Frame& frame) PLAYFS_REQUIRES(state_.mutex) {
    RuleChain chain{frame.above ? frame.above->chain : nullptr, frame.path.empty() ? 0 : frame.path.size() + 1, {}};
    bool is_known = true;
    for (std::string_view name : kRuleFiles) {
      InodePtr file = state_.find(*frame.directory, name);
      if (!file || file->kind != Kind::file) continue;
      const RuleFile* known = state_.verdicts.rules_in(join_path(frame.path, name), *file);
      if (!known) is_known = false;
      else if (known->rules) chain.rules.push_back(known->rules);
      else if (known->error) survey_.unread_rules = known->error;
      else survey_.missing_rules.push_back(file->lower);
    }
    if (is_known) frame.chain = state_.verdicts.chain(frame.path, std::move(chain));
    return is_known;
  }

  Stage::State& state_;
  Survey& survey_;
};

Questions Stage::State::look_over(Survey& survey, Effort effort) {
  survey = {};
  survey.base = base;
  verdicts.begin_survey(effort);
  Surveyor(*this, survey).run();
  return verdicts.end_survey();
}

Survey Stage::State::survey() {
  Survey survey;
  for (auto questions = look_over(survey, Effort()); !questions.empty(); questions = look_over(survey, Effort())) {
    auto answers = answer(questions, options, *spool);
    static_cast<void>(verdicts.learn(std::move(questions), std::move(answers)));
  }
  return survey;
}

Survey Stage::State::unhurried_survey() {
  Survey survey;
  verdicts.forget_failures();
  for (;;) {
    auto questions = look_over(survey, Effort(kMomentOfJudging));
    if (questions.empty()) return survey;
    mutex.unlock();
    auto answers = answer(questions, options, *spool);
    mutex.lock();
    auto told = verdicts.learn(std::move(questions), std::move(answers));
    if (!options.tell_of_rules || told.empty()) continue;
    mutex.unlock();
    for (const auto& error : told) options.tell_of_rules(error);
    mutex.lock();
  }
}

}  // namespace playfs::stage
