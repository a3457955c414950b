// Every sequence of a few operations, cut at every point between two syncs: the stage opens, and shows what an oracle
// allows.
//
// Between two syncs the disk may keep any of what was written since, so a cut before each sync covers all cuts. What is
// kept is drawn at random. Sequences have up to 3 operations and each cut is made once; PLAYFS_BOUNDED="4 8" means 4
// and 8.
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "support/forgetful_disk.h"
#include "support/workbench.h"

namespace playfs::model_test {
namespace {

using test::Texts;

// At the start `f` is staged and synced, and `g` is published.
//   R  write another file and rename it over f, unsynced       F  fsync f
//   G  rename f over g                                         D  fsync the directory
//   A  append to f      C  write f anew, in place              Z  freeze; settle what is frozen
//   U  unlink f         X  discard everything                  I  take in a base that others published
const std::string kOperations = "RGACUFDZIX";

/// What each path holds, after each operation; nullopt: nothing.
struct Moment {
  std::map<std::string, std::optional<std::string>> paths;
  std::string base;
  std::size_t events = 0;
};

class Trial {
 public:
  explicit Trial(std::string sequence) : sequence_(std::move(sequence)) {}

  /// False if an operation of the sequence makes no sense.
  bool record(std::size_t removals) {
    bases_["r1"] = {{"g", "published"}};
    bench_.open(test::revision_of("r1", bases_["r1"]));
    EXPECT_TRUE(bench_.put("f", "synced"));
    EXPECT_TRUE(bench_.stage->sync(bench_.find("f")));
    bench_.stage.reset();
    disk_.emplace(bench_.options().directory);
    begin_ = disk_->events();
    bench_.housekeeping.removals = removals;
    bench_.housekeeping.log_bytes = 600;
    bench_.open(test::revision_of("r1", bases_["r1"]));
    now_ = {{{"f", "synced"}, {"g", "published"}}, "r1", begin_};
    moments_ = {now_};
    safe_ = {{"f", 0}, {"g", 0}};
    for (std::size_t i = 0; i < sequence_.size(); ++i) {
      text_ = "text " + std::to_string(i);
      if (!apply(sequence_[i])) return false;
      now_.events = disk_->events();
      moments_.push_back(now_);
      note_safe(sequence_[i]);
      history_.push_back({safe_, dirty_});
    }
    bench_.stage.reset();
    disk_->stop();
    return true;
  }

  void cut(std::mt19937_64& random, int times, std::size_t& cuts) {
    for (std::size_t at : disk_->cuts(begin_)) {
      for (int time = 0; time < times; ++time, ++cuts) {
        disk_->lay_out(at, random, bench_.options().directory);
        ++bench_.boot;
        check(at);
        bench_.stage.reset();
        if (testing::Test::HasFailure()) return;
      }
    }
  }

 private:
  using Paths = std::map<std::string, std::size_t>;

  bool has(const std::string& path) { return now_.paths[path].has_value(); }
  bool apply(char operation) {
    switch (operation) {
      case 'R':
        if (!bench_.put("tmp", text_) || !bench_.rename("tmp", "f")) return false;
        if (!has("f")) dirty_.insert("f");  // nothing was replaced
        now_.paths["f"] = text_;
        return true;
      case 'G':
        if (!has("f") || !bench_.rename("f", "g")) return false;
        if (!has("g") && dirty_.contains("f")) dirty_.insert("g");
        now_.paths["g"] = now_.paths["f"];
        now_.paths["f"].reset();
        return true;
      case 'A':
        if (!has("f") || !bench_.write(bench_.find("f"), now_.paths["f"]->size(), text_)) return false;
        now_.paths["f"] = *now_.paths["f"] + text_;
        dirty_.insert("f");
        return true;
      case 'C':
        if (!bench_.put("f", text_)) return false;
        now_.paths["f"] = text_;
        dirty_.insert("f");
        return true;
      case 'U':
        if (!has("f") || !bench_.unlink("f")) return false;
        now_.paths["f"].reset();
        return true;
      case 'F': return has("f") && bench_.stage->sync(bench_.find("f"));
      case 'D': return bench_.stage->sync(bench_.stage->root()).has_value();
      case 'Z': return freeze_or_settle();
      case 'I': return integrate();
      case 'X':
        if (pending_ || !bench_.stage->discard("")) return false;
        read_all();
        return true;
      default: return false;
    }
  }
  bool freeze_or_settle() {
    if (!pending_) {
      auto frozen = bench_.stage->freeze("tx");
      if (!frozen || !*frozen) return false;
      pending_ = bench_.published(**frozen, bases_[now_.base]);
      return true;
    }
    const std::string next = "r" + std::to_string(bases_.size() + 1);
    bases_[next] = *pending_;
    if (!bench_.stage->settle("tx", test::revision_of(next, *pending_))) return false;
    pending_.reset();
    now_.base = next;
    read_all();
    return true;
  }
  bool integrate() {
    const std::string next = "r" + std::to_string(bases_.size() + 1);
    Texts texts = bases_[now_.base];
    texts.insert_or_assign("g", test::Text("theirs " + text_));
    if (pending_ || !bench_.stage->integrate(test::revision_of(next, texts), {}, {})) return false;
    bases_[next] = texts;
    now_.base = next;
    read_all();
    return true;
  }
  void read_all() {
    for (auto& [path, text] : now_.paths) {
      auto read = bench_.read(path);
      text = read ? std::optional(*read) : std::nullopt;
    }
  }
  /// Records what may not revert from now on.
  void note_safe(char operation) {
    for (auto& [path, safe] : safe_) {
      bool all = (operation == 'Z' && pending_) || (operation == 'F' && path == "f");
      if (all) dirty_.erase(path);
      bool names = operation == 'D' || operation == 'Z' || operation == 'I';
      if (all || (names && !dirty_.contains(path))) safe = moments_.size() - 1;
    }
  }

  void check(std::size_t at) {
    // The operations that were surely done, and the one that may have been under way.
    std::size_t done = 0;
    while (done + 1 < moments_.size() && moments_[done + 1].events <= at) ++done;
    const std::size_t last = std::min(done + 1, moments_.size() - 1);
    const Paths safe = done == 0 ? Paths{{"f", 0}, {"g", 0}} : history_[done - 1].first;
    const auto& dirty = last == 0 ? dirty_ : history_[last - 1].second;
    const std::string where = sequence_ + ", after event " + std::to_string(at) + " of " + std::to_string(begin_) +
                              " to " + std::to_string(moments_.back().events);
    auto recorded = stage::Stage::recorded_base(bench_.options().directory);
    ASSERT_TRUE(recorded) << recorded.error().message << ": " << where;
    ASSERT_TRUE(*recorded && bases_.contains((*recorded)->text())) << where;
    bench_.open(test::revision_of((*recorded)->text(), bases_[(*recorded)->text()]));
    if (!bench_.stage) {
      ADD_FAILURE() << where;
      return;
    }
    for (const auto& [path, since] : safe) {
      auto read = bench_.read(path);
      // Bytes that were changed in place and not synced may be anything.
      if (dirty.contains(path) || (done > 0 && history_[done - 1].second.contains(path))) continue;
      bool is_allowed = false;
      std::string allowed;
      for (std::size_t i = since; i <= last; ++i) {
        const auto& text = moments_[i].paths[path];
        is_allowed = is_allowed || (text ? read && *read == *text : !bench_.find(path));
        allowed += text ? " '" + *text + "'" : " nothing";
      }
      EXPECT_TRUE(is_allowed) << path << " is '" << read.value_or("nothing") << "', allowed:" << allowed << "; "
                              << where;
    }
  }

  const std::string sequence_;
  test::Workbench bench_;
  std::optional<test::ForgetfulDisk> disk_;
  std::size_t begin_ = 0;
  std::map<std::string, Texts> bases_;
  std::optional<Texts> pending_;
  std::string text_;
  Moment now_;
  std::vector<Moment> moments_;
  Paths safe_;  ///< since which moment a path may not revert
  std::set<std::string> dirty_;
  std::vector<std::pair<Paths, std::set<std::string>>> history_;  ///< both, after each operation
};

TEST(StageBounded, EverySequenceCutAnywhereIsAllowed) {
  std::size_t depth = 3;
  int times = 1;
  if (const char* text = std::getenv("PLAYFS_BOUNDED")) std::istringstream(text) >> depth >> times;
  std::mt19937_64 random(20261122);
  std::size_t sequences = 0, cuts = 0;
  std::vector<std::string> begun = {""};
  for (std::size_t length = 1; length <= depth; ++length) {
    std::vector<std::string> next;
    for (const auto& before : begun) {
      for (char operation : kOperations) {
        Trial trial(before + operation);
        // The housekeeper runs after each operation, or at the end.
        if (!trial.record(sequences % 2 == 0 ? 1 : 1000)) continue;
        ++sequences;
        next.push_back(before + operation);
        if (length < depth) continue;  // its prefixes are cut within longer sequences
        trial.cut(random, times, cuts);
        if (HasFailure()) return;
      }
    }
    begun = std::move(next);
  }
  std::printf("%zu sequences, %zu cuts\n", sequences, cuts);
  EXPECT_GT(sequences, 1U);
}

}  // namespace
}  // namespace playfs::model_test
