// The service is rolled back to an older state, for example restored from a backup, and has lost what was published.
// The work tree stays as it is, with the lost content staged, and nothing vanishes from it.
#include <chrono>
#include <deque>
#include <set>
#include <utility>

#include "vfs/mount.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {

namespace {
/// How many records to check to see that head merely moved forward, as it nearly always does.
constexpr std::size_t kMostLooked = 64;
/// How long a tree that helps to repair a head that was set back does not follow it.
constexpr std::chrono::seconds kRepairedWithin{20};
/// How often to check for a base that the service does not show.
constexpr std::chrono::seconds kLookedForEvery{10};
}  // namespace

bool WorkTree::is_known_to_hold(const RevisionTreePtr& head, const RevisionTreePtr& base) const {
  std::deque<RevisionTreePtr> left;
  if (head) left.push_back(head);
  std::set<RevisionId> looked;
  while (!left.empty() && looked.size() < kMostLooked) {
    RevisionTreePtr at = std::move(left.front());
    left.pop_front();
    if (at->revision.id == base->revision.id) return true;
    for (const RevisionId& parent : at->revision.parents) {
      if (parent == base->revision.id) return true;
      if (!looked.insert(parent).second) continue;
      if (auto tree = mount_.site().try_revision(parent)) left.push_back(std::move(tree));
    }
  }
  return false;
}

void WorkTree::look_for_base(const RevisionTreePtr& head) {
  const RevisionId base = base_id();
  {
    MutexLock lock(mutex_);
    const bool is_asked = asking_ && asking_->base == base;
    asking_ = Question{base, head};
    if (is_asked) return;
  }
  // Bypass the cache, which has it in any case.
  mount_.site().client().get_record(
      "revisions", base.text(), mount_.gate()->closing(),
      [weak = weak_from_this(), gate = mount_.gate(), base](const Result<Record>& record) {
        auto ticket = gate->enter();
        auto self = weak.lock();
        if (!ticket || !self) return;
        Status there = record ? Status() : Status(fail(record.error()));
        self->mount_.soon([weak, base, there] {
          auto tree = weak.lock();
          if (!tree) return;
          std::optional<Question> asked;
          {
            MutexLock lock(tree->mutex_);
            if (tree->asking_ && tree->asking_->base == base) asked.swap(tree->asking_);
          }
          if (asked) tree->base_was_asked_for(base, asked->head, there);
        });
      });
}

void WorkTree::follow_still(const RevisionId& base, const RevisionTreePtr& head) {
  auto known = mount_.site().try_head(project_);
  // What is shown while the latest record is on its way may be older than what was published from here.
  if (!known || !known->shows_latest()) return;
  // Nor does the tree follow a lagging read to an older head.
  publish::Publisher* publishing = publisher();
  if (publishing && is_older_than_seen(known->project) && !publishing->check_head(known->project))
    return look_at_head_again_soon();
  if (head && known->shown == head->revision.id && base_id() == base) follow(head, base);
}

void WorkTree::base_was_asked_for(const RevisionId& base, const RevisionTreePtr& head, const Status& there) {
  if (there) {
    // The base exists, so head was set back, most likely by two concurrent publications. Participants repair that, so
    // wait for it here: meanwhile what was published from here would vanish, and writes would go to the old content.
    publish::Publisher* publishing = publisher();
    if (!publishing) return follow_still(base, head);
    publishing->saw(base);
    return mount_.later(kRepairedWithin, [weak = weak_from_this(), base, head] {
      if (auto tree = weak.lock()) tree->follow_still(base, head);
    });
  }
  if (there.error().code == ErrorCode::not_found) {
    if (Status opened = open_publisher(); !opened)
      return mount_.site().events().error("projects/" + project_.text() + "/work", opened.error());
    auto asked = [weak = weak_from_this(), gate = mount_.gate(), base, head](const Result<bool>& lost) {
      auto ticket = gate->enter();
      auto self = weak.lock();
      if (!ticket || !self) return;
      if (lost && !*lost)
        self->mount_.soon([weak, base, head] {
          if (auto tree = weak.lock()) tree->follow_still(base, head);
        });
      if (!lost && is_transient(lost.error().code)) self->look_again_soon();
      // busy: the base may be shown again, or a publication is in progress, which finds out by itself.
      if (!lost && lost.error().code != ErrorCode::busy && lost.error().code != ErrorCode::interrupted)
        self->mount_.site().events().error("projects/" + self->project_.text() + "/work",
                                           lost.error().while_doing("keep the content that the service lost"));
    };
    return publisher()->keep_lost_base(head, mount_.gate()->closing(), std::move(asked));
  }
  // Inconclusive: neither follow head, which may remove files, nor report a loss. If there is a head, the next response
  // that names it checks again (head_seen), provided the tree would follow it.
  if (head && is_transient(there.error().code)) return look_again_soon();
  if (head) return;
  mount_.later(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(mount_.refresh_seconds())),
      [weak = weak_from_this()] {
        if (auto tree = weak.lock()) tree->look_again();
      });
}

void WorkTree::look_again_soon() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(looks_again_, true)) return;
  }
  mount_.later(kLookedForEvery, [weak = weak_from_this()] {
    auto tree = weak.lock();
    if (!tree) return;
    {
      MutexLock lock(tree->mutex_);
      tree->looks_again_ = false;
    }
    tree->look_again();
  });
}

bool WorkTree::is_older_than_seen(const Project& record) const {
  auto seen = mount_.site().newest_seen_head(project_);
  return seen && seen->is_newer_than(record);
}

void WorkTree::look_at_head_again_soon() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(looks_at_head_, true)) return;
  }
  mount_.later(kLookedForEvery, [weak = weak_from_this()] {
    auto tree = weak.lock();
    if (!tree) return;
    {
      MutexLock lock(tree->mutex_);
      tree->looks_at_head_ = false;
    }
    auto looked = [weak, gate = tree->mount_.gate()](const Result<content::Head>& head) {
      auto ticket = gate->enter();
      auto self = weak.lock();
      publish::Publisher* publishing = ticket && self ? self->publisher() : nullptr;
      if (!publishing) return;
      Status newest = head ? publishing->check_head(head->project) : Status(fail(head.error()));
      if (!newest && is_transient(newest.error().code)) return self->look_at_head_again_soon();
      if (newest)
        self->mount_.soon([weak] {
          if (auto still = weak.lock()) still->head_seen();
        });
    };
    tree->mount_.site().refresh_head(tree->project_, tree->mount_.gate()->closing(), std::move(looked));
  });
}

void WorkTree::look_again() {
  auto known = mount_.site().try_head(project_);
  if (!known) return;
  if (known->shown == RevisionId()) head_changed(nullptr);
  else follow_head();
}

Async<void> WorkTree::keep_lost_base(RevisionTreePtr head) {
  PLAYFS_AWAIT(publish::Publisher* const publishing, opened_publisher());
  auto asked = answer<bool>([publishing, head](CancelToken cancel, Callback<bool> done) {
    publishing->keep_lost_base(head, std::move(cancel), std::move(done));
  });
  const auto lost = co_await asked;
  if (!lost && lost.error().code == ErrorCode::busy) look_again_soon();
  if (!lost) co_return fail(lost.error());
  co_return Status();
}

}  // namespace playfs::vfs
