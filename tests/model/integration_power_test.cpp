// Power cuts while others' revisions are integrated by the real publish/Integration: an update, a merged branch, the
// settling of a commit. Each is there completely or not at all, with everything synced, whoever writes meanwhile.
// Writers act while the merge is computed, on the same thread, since the disk knows only one.
//
// PLAYFS_POWER_CUTS=N cuts N times instead of 1,000; half of the cuts are during an integration.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <random>
#include <set>

#include "publish/conflicts.h"
#include "publish/integration.h"
#include "support/forgetful_disk.h"
#include "work_tree_model.h"

namespace playfs::model_test {
namespace {

constexpr int kSteps = 90;
constexpr int kCutsOfARun = 40;
/// Only ever written by renaming a new, unsynced file over them: one of the two must always exist.
const std::vector<std::string> kReplaced = {"r1", "r2"};

struct Counts {
  int cuts = 0, within = 0;
  int integrations = 0, overtaken = 0, conflicts = 0, refused = 0, replaced = 0;
};

/// What others publish. An integration asks only for the graph of revisions, whose files are inline.
class Revisions final : public publish::Upstream {
 public:
  RevisionTreePtr publish(const Texts& texts, std::vector<RevisionId> parents) {
    const std::string number = std::to_string(all_.size() + 1);
    Revision made;
    made.id = RevisionId("v" + number);
    made.project = ProjectId("project");
    made.created_at = {1'700'000'000'000'000'000 + static_cast<std::int64_t>(all_.size()) * 1'000'000'000};
    made.parents = std::move(parents);
    made.manifest.tx = std::string(32 - number.size(), '0') + number;
    for (const auto& [path, text] : texts) made.manifest.files.emplace(path, test::entry_of(text));
    auto revision = std::make_shared<RevisionTree>(std::move(made));
    all_.emplace(revision->revision.id, std::pair(revision, texts));
    return revision;
  }
  [[nodiscard]] RevisionTreePtr at(const RevisionId& id) const { return all_.at(id).first; }
  [[nodiscard]] const Texts& texts(const RevisionTreePtr& of) const { return all_.at(of->revision.id).second; }

  Result<RevisionTreePtr> revision(const RevisionId& id) override { return at(id); }
  Result<Project> project() override { return none(); }
  Result<publish::Look> look() override { return none(); }
  Result<wire::RecordPage> page(const std::string&, const std::string&) override { return none(); }
  Result<Record> get(const std::string&, const std::string&) override { return none(); }
  Result<std::string> holder_of(const std::string&, const std::string&) override { return none(); }
  bool may_carry(const std::string&, const std::string&, const std::string&) override { return false; }
  Result<Bytes> content(const RevisionTreePtr&, const std::string&, const FileEntry&) override { return none(); }
  Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>&) override { return none(); }
  Result<Record> create(const std::string&, const Json&, const std::string&) override { return none(); }
  Status upload(const std::vector<publish::Upload>&, const publish::Acknowledged&) override { return none(); }
  Status move_head(const RevisionId&) override { return none(); }
  void learn(const std::string&, const Record&) override {}

 private:
  static tl::unexpected<Error> none() { return fail(ErrorCode::internal, "an integration does not ask for this"); }
  std::map<RevisionId, std::pair<RevisionTreePtr, Texts>> all_;
};

/// The tree's state between two operations.
struct Moment {
  std::size_t events = 0;          ///< up to this state
  std::vector<std::string> lines;  ///< sorted
  std::map<std::string, std::string> replaced;
  std::set<std::string> unsaid;  ///< paths that have markers but are not in conflict: the next commit publishes them
  std::string stands;            ///< base, further parents and conflicts: they change with an integration
  bool synced = false;           ///< everything
  bool integrated = false;       ///< by an integration that succeeded, and
  std::vector<std::string> brought;  ///< these are the lines that it made: they are safe with it
};

std::vector<std::string> without(const std::vector<std::string>& lines, const std::vector<std::string>& others) {
  std::vector<std::string> left;
  std::set_difference(lines.begin(), lines.end(), others.begin(), others.end(), std::back_inserter(left));
  return left;
}

std::vector<std::string> common(std::vector<std::string> lines, const std::vector<Moment>& moments, std::size_t first,
                                std::size_t last) {
  for (std::size_t i = first; i <= last; ++i) {
    std::vector<std::string> both;
    const auto& other = moments[i].lines;
    std::set_intersection(lines.begin(), lines.end(), other.begin(), other.end(), std::back_inserter(both));
    lines = std::move(both);
  }
  return lines;
}

class Play {
 public:
  Play(std::uint64_t seed, Counts& counts) : random_(seed), counts_(counts) {}

  void run(int cuts) {
    head_ = revisions_.publish({{"a", text("a")},
                                {"b", {"#!", FileMode::executable}},
                                {"d/a", text("d")},
                                {"d/b", text("e")},
                                {"r1", text("r1")},
                                {"r2", text("r2")}},
                               {});
    bench_.open(head_);
    bench_.stage.reset();
    bench_.housekeeping.removals = std::array{1UL, 3UL, 20UL}[below(3)];
    bench_.housekeeping.log_bytes = std::array{600UL, 4000UL, 20'000UL}[below(3)];
    test::ForgetfulDisk disk(bench_.options().directory);
    disk_ = &disk;
    bench_.open(head_);
    note("begin", true);
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) this->step();
    bench_.stage.reset();
    const std::size_t events = disk.events();
    disk.stop();
    for (int cut = 0; cut < cuts && !testing::Test::HasFailure(); ++cut) {
      std::size_t at = moments_[0].events + below(events - moments_[0].events + 1);
      if (cut % 2 == 0 && !integrations_.empty()) {
        const auto& [begin, end] = integrations_[below(integrations_.size())];
        at = begin + below(end - begin + 1);
        ++counts_.within;
      }
      ++counts_.cuts;
      disk.lay_out(at, random_, bench_.options().directory);
      check(at);
    }
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }
  /// Never the same twice.
  std::string fresh() { return std::to_string(++number_); }
  std::string text(const std::string& of) {
    std::string lines;
    for (int line = 0; line < 9; ++line) lines += of + " line " + std::to_string(line) + '\n';
    return lines;
  }
  /// Changes one line.
  std::string edited(const std::string& text, const std::string& by) {
    std::vector<std::string> lines;
    for (std::string_view rest = text; !rest.empty();) {
      auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    const std::string changed = by + ' ' + fresh() + '\n';
    if (lines.empty()) return changed;
    lines[below(lines.size())] = changed;
    return std::accumulate(lines.begin(), lines.end(), std::string());
  }

  void note(const std::string& what, bool synced = false, bool integrated = false) {
    Moment moment;
    moment.events = disk_->events();
    moment.lines = lines(bench_);
    std::sort(moment.lines.begin(), moment.lines.end());
    for (const auto& path : kReplaced) moment.replaced[path] = bench_.read(path).value_or("nothing");
    moment.unsaid = unsaid();
    moment.stands = stands();
    moment.synced = synced;
    moment.integrated = integrated;
    if (integrated) moment.brought = without(moment.lines, moments_.back().lines);
    history_ += "  " + std::to_string(moments_.size()) + " (" + std::to_string(moment.events) + ") " + what + '\n';
    moments_.push_back(std::move(moment));
  }
  std::string stands() {
    std::string all = bench_.stage->base()->revision.id.text();
    for (const auto& parent : bench_.stage->merge_parents()) all += " + " + parent.text();
    for (const auto& each : bench_.stage->conflicted())
      all += ", " + each.path + ' ' + (each.left ? each.left->hex() : "") + each.beside;
    return all;
  }

  std::set<std::string> unsaid() {
    std::set<std::string> paths;
    for (const auto& path : kReplaced)
      if (has_conflict_markers(bench_.read(path).value_or(""))) paths.insert(path);
    for (const auto& each : bench_.stage->conflicted()) paths.erase(each.path);
    return paths;
  }

  void sync_below(const stage::InodePtr& directory) {
    auto entries = bench_.stage->list(directory, 0, 1000).value();
    for (const auto& entry : entries) {
      ASSERT_TRUE(bench_.stage->sync(entry.inode));
      if (bench_.stage->attributes(entry.inode)->kind == stage::Kind::directory) sync_below(entry.inode);
    }
    ASSERT_TRUE(bench_.stage->sync(directory));
  }

  std::string any_path() {
    static const std::vector<std::string> names = {"a", "b", "c", "d", "d/a", "d/b", "d/c", "e~", "f", "f/a"};
    return names[below(names.size())];
  }

  /// What a user does; it may fail, as for users.
  void edit() {
    const std::string path = any_path(), other = any_path();
    auto inode = bench_.find(path);
    const bool is_file = inode && bench_.stage->attributes(inode)->kind == stage::Kind::file;
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return replace(kReplaced[below(kReplaced.size())]);
      case 3:
      case 4:
        if (is_file) {
          auto before = bench_.read(inode);
          auto written = before ? bench_.put(path, edited(*before, "ours")) : Status();
          return note("edit " + path);
        }
        [[fallthrough]];
      case 5: {
        if (inode || !bench_.parent(path)) return;
        auto written = bench_.put(path, text("new " + fresh()));
        return note("create " + path);
      }
      case 6: {
        auto gone = bench_.parent(path) ? bench_.unlink(path) : Status();
        return note("unlink " + path);
      }
      case 7: {
        auto made = bench_.parent(path) ? bench_.mkdir(path) : Status();
        return note("mkdir " + path);
      }
      case 8: {
        bool can = bench_.parent(path) && bench_.parent(other);
        auto moved = can ? bench_.rename(path, other) : Status();
        return note("rename " + path + " to " + other);
      }
      case 9: {
        auto changed = is_file ? bench_.chmod(path, below(2) == 0 ? 0644 : 0755) : Status();
        return note("chmod " + path);
      }
      case 10: {
        auto made = bench_.parent(path) && !inode ? bench_.symlink("to " + fresh(), path) : Status();
        return note("symlink " + path);
      }
      default:
        if (inode) {
          EXPECT_TRUE(bench_.stage->sync(inode));
        }
        return note("sync " + path);
    }
  }
  void replace(const std::string& path) {
    auto before = bench_.read(path);
    ASSERT_TRUE(before) << path;
    ASSERT_TRUE(bench_.put("tmp~", edited(*before, "ours")));
    note("write tmp~");
    ASSERT_TRUE(bench_.rename("tmp~", path));
    ++counts_.replaced;
    note("rename it over " + path);
  }

  /// Others' changes to a version.
  Texts changed(Texts texts) {
    for (int n = 0; n < 3; ++n) {
      auto found = std::next(texts.begin(), static_cast<std::ptrdiff_t>(below(texts.size())));
      const bool is_replaced = std::count(kReplaced.begin(), kReplaced.end(), found->first) != 0;
      if (found->second.mode != FileMode::symlink && (is_replaced || below(3) != 0)) {
        found->second.content = edited(found->second.content, "theirs");
      } else if (!is_replaced) {
        texts.erase(found);
      }
    }
    const std::string added = any_path();
    bool has_place = std::none_of(texts.begin(), texts.end(), [&](const auto& each) {
      return (each.first + '/').starts_with(added + '/') || (added + '/').starts_with(each.first + '/');
    });
    if (has_place) texts.emplace(added, text("theirs " + fresh()));
    return texts;
  }

  /// By hand, or by declaring everything resolved.
  void resolve() {
    auto left = publish::unresolved(*bench_.stage);
    ASSERT_TRUE(left);
    if (left->empty()) return;
    if (below(2) == 0) {
      // Like publish/StageLayers.
      ASSERT_TRUE(publish::sync_resolved(*bench_.stage, {}));
      ASSERT_TRUE(bench_.stage->record_conflicted({}));
      return note("resolved as it is");
    }
    for (const auto& each : *left) {
      if (std::count(kReplaced.begin(), kReplaced.end(), each.path) != 0) {
        ASSERT_TRUE(bench_.put("tmp~", text("resolved " + fresh())));
        note("write tmp~");
        ASSERT_TRUE(bench_.rename("tmp~", each.path));
      } else if (auto inode = bench_.find(each.beside.empty() ? each.path : each.beside)) {
        if (bench_.stage->attributes(inode)->kind == stage::Kind::file && each.beside.empty()) {
          ASSERT_TRUE(bench_.put(each.path, text("resolved " + fresh())));
        }
      }
      note("resolve " + each.path);
    }
  }

  /// Writers continue during the merge, until it makes them wait.
  Result<Merge> merge_and_write(const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                                const MergeLabels& labels) {
    const bool goes_on = rounds_++ < 2;
    if (goes_on && below(4) == 0) edit();
    auto merged = merge_versions(base, ours, theirs, read, labels);
    if (goes_on && below(2) == 0) edit();
    return merged;
  }

  /// The stage is a new object each time that it is opened.
  publish::Integration integration() { return {revisions_, merging_, **journal_, *bench_.stage, settled_}; }

  template <class Operation>
  void integrate(const std::string& what, const Operation& operation) {
    rounds_ = 0;
    const std::size_t begin = disk_->events();
    auto done = operation();
    integrations_.emplace_back(begin, disk_->events());
    note(what + (done ? "" : ": " + done.error().message), false, done.has_value());
    if (!done) ++counts_.refused;
    if (done) ++counts_.integrations;
    if (done && rounds_ > 1) ++counts_.overtaken;
    if (done && !bench_.stage->conflicted().empty()) ++counts_.conflicts;
  }

  void commit() {
    const std::string tx = "tx" + fresh();
    RevisionTreePtr base = bench_.stage->base();
    std::vector<RevisionId> parents = bench_.stage->merge_parents();
    auto layer = bench_.stage->freeze(tx);
    note("freeze");
    if (!layer || !*layer) return;
    for (std::size_t writes = below(3); writes > 0; --writes) edit();
    parents.insert(parents.begin(), base->revision.id);
    Texts texts = bench_.published(**layer, revisions_.texts(base));
    // The publisher may merge along the way, and bring more than was frozen.
    if (below(2) == 0) texts = changed(std::move(texts));
    auto revision = revisions_.publish(texts, parents);
    if (base == head_) head_ = revision;
    integrate("settle " + revision->revision.id.text(), [&] { return integration().settle(tx, revision); });
    if (bench_.stage->pending().value()) {
      EXPECT_TRUE(bench_.stage->thaw(tx));
    }
    note("committed");
  }

  void step() {
    switch (below(14)) {
      case 0:
      case 1:
        resolve();
        head_ = revisions_.publish(changed(revisions_.texts(head_)), {head_->revision.id});
        return integrate("update to " + head_->revision.id.text(),
                         [&] { return integration().update(head_, id_of(bench_.stage->base())); });
      case 2: {
        resolve();
        if (!bench_.stage->changes()->empty()) return;
        RevisionTreePtr base = bench_.stage->base();
        auto branch = revisions_.publish(changed(revisions_.texts(base)), base->revision.parents);
        return integrate("merge " + branch->revision.id.text(), [&] { return integration().merge(branch); });
      }
      case 3: resolve(); return commit();
      case 4: sync_below(bench_.stage->root()); return note("all synced", true);
      case 5:
        if (below(3) != 0) return;
        {
          auto dropped = bench_.stage->discard("");
          return note("discard");
        }
      case 6: bench_.reopen(); return note("reopen");
      default: return edit();
    }
  }

  void check(std::size_t at) {
    std::size_t last = 0, synced = 0, integrated = 0;
    while (last + 1 < moments_.size() && moments_[last].events <= at) ++last;  // the first that may be incomplete
    for (std::size_t i = 0; i <= last && moments_[i].events <= at; ++i) {
      if (moments_[i].synced) synced = i;
      if (moments_[i].integrated) integrated = i;
    }
    ++bench_.boot;
    auto where = [&] {
      return "\nafter event " + std::to_string(at) + ", moments " + std::to_string(synced) + " to " +
             std::to_string(last) + '\n' + history_;
    };
    auto recorded = stage::Stage::recorded_base(bench_.options().directory);
    ASSERT_TRUE(recorded && *recorded) << where();
    bench_.open(revisions_.at(**recorded));
    ASSERT_FALSE(testing::Test::HasFailure()) << where();
    const std::string now = stands();
    std::size_t first = last + 1, until = 0;
    for (std::size_t i = std::max(synced, integrated); i <= last; ++i) {
      if (moments_[i].stands != now) continue;
      first = std::min(first, i);
      until = i;
    }
    ASSERT_LE(first, last) << "it stands on " << now << where();
    auto found = lines(bench_);
    std::sort(found.begin(), found.end());
    // Files that nobody touched, and those of the present base.
    for (const auto& kept : {common(moments_[synced].lines, moments_, synced, until),
                             common(moments_[first].brought, moments_, first, until)}) {
      auto lost = without(kept, found);
      ASSERT_TRUE(lost.empty()) << "lost: " << testing::PrintToString(lost)
                                << "\nfound: " << testing::PrintToString(found) << "\nstanding on " << now << where();
    }
    for (const auto& path : kReplaced) {
      auto content = bench_.read(path).value_or("nothing");
      bool was_there = std::any_of(moments_.begin() + static_cast<std::ptrdiff_t>(synced),
                                   moments_.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                   [&](const Moment& moment) { return moment.replaced.at(path) == content; });
      ASSERT_TRUE(was_there) << path << " is \"" << content << '"' << where();
    }
    for (const auto& path : unsaid()) {
      bool was_so = std::any_of(moments_.begin() + static_cast<std::ptrdiff_t>(synced),
                                moments_.begin() + static_cast<std::ptrdiff_t>(last) + 1,
                                [&](const Moment& moment) { return moment.unsaid.contains(path); });
      ASSERT_TRUE(was_so) << path << " has conflict markers again, and is not in conflict any more" << where();
    }
    bench_.stage.reset();
  }

  std::mt19937_64 random_;
  Counts& counts_;
  std::size_t number_ = 0;
  int rounds_ = 0;  ///< of the merge under way
  test::Workbench bench_;
  test::ForgetfulDisk* disk_ = nullptr;
  Revisions revisions_;
  RevisionTreePtr head_;
  std::vector<Moment> moments_;
  std::vector<std::pair<std::size_t, std::size_t>> integrations_;  ///< events from begin to end
  std::string history_;
  publish::Merging merging_{
      revisions_, [this](const Version& base, const Version& ours, const Version& theirs, const ReadEntry& read,
                         const MergeLabels& labels) { return merge_and_write(base, ours, theirs, read, labels); }};
  /// Empty: it is only asked whether the service has lost anything.
  const Result<std::unique_ptr<publish::Journal>> journal_ =
      publish::Journal::open(bench_.options().directory + "/../journal");
  const publish::Settled settled_;
};

TEST(StagePower, AnIntegrationIsWholeOrNotAtAll) {
  const char* given = std::getenv("PLAYFS_POWER_CUTS");
  const int cuts = given ? std::atoi(given) : 1000;
  Counts counts;
  for (int done = 0; done < cuts && !HasFailure(); done += kCutsOfARun) {
    SCOPED_TRACE("seed " + std::to_string(20261121 + done));
    Play(20261121 + static_cast<std::uint64_t>(done), counts).run(kCutsOfARun);
  }
  std::printf(
      "%d cuts, %d of them within an integration; %d integrations, %d of them overtaken by writers, %d with "
      "conflicts, %d refused; %d files replaced unsynced\n",
      counts.cuts, counts.within, counts.integrations, counts.overtaken, counts.conflicts, counts.refused,
      counts.replaced);
  EXPECT_TRUE(counts.within > 0 && counts.overtaken > 0 && counts.conflicts > 0 && counts.replaced > 0);
}

}  // namespace
}  // namespace playfs::model_test
