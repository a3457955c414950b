#include "vfs/directories/virtual_directory.h"

#include <sys/stat.h>

#include <utility>

#include "model/path.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/control_text.h"
#include "vfs/control/request_file.h"
#include "vfs/control/requests_under_way.h"
#include "vfs/directories/late_node.h"
#include "vfs/ino.h"
#include "vfs/listings.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// Short, because the kernel holds the directory's lock while a name is looked up or the names are listed.
constexpr std::chrono::seconds kLookupPatience{3};
/// A listing has no stand-in, so it fails after this. The first one of a large playground takes seconds.
constexpr std::chrono::seconds kListingPatience{30};
/// How long the list request continues after that, for later callers.
constexpr std::chrono::minutes kListingGoesOn{5};
constexpr const char* kTooLong = "took too long";

}  // namespace

SnapshotFile::SnapshotFile(Mount& mount, NodePtr parent, std::string name, ShownText text, mode_t permissions,
                           WallTime time, const char* fixed)
    : Node(mount, std::move(parent), std::move(name)),
      text_(std::move(text)),
      permissions_(permissions),
      time_(time),
      fixed_(fixed) {}

Error SnapshotFile::refusal() const { return fixed_ ? Error{ErrorCode::not_permitted, fixed_} : Node::refusal(); }

Attempt<AttributesReply> SnapshotFile::attributes(const OperationPtr&) {
  return AttributesReply{mount().attributes(ino(), S_IFREG | permissions_, text_.size(), time_), kEndless};
}

Attempt<std::string> SnapshotFile::read(const OperationPtr& op, std::uint64_t offset, std::size_t size) {
  return text_.read(mount(), op, offset, size);
}

SymlinkNode::SymlinkNode(Mount& mount, NodePtr parent, std::string name, std::string target, WallTime time)
    : Node(mount, std::move(parent), std::move(name)), to_(std::move(target)), time_(time) {}

Attempt<AttributesReply> SymlinkNode::attributes(const OperationPtr&) {
  return AttributesReply{mount().attributes(ino(), S_IFLNK | 0777, to_.size(), time_), kEndless};
}

Attempt<std::string> SymlinkNode::read_link(const OperationPtr&) { return to_; }

WallTime VirtualDirectory::time() const { return mount().started(); }

std::uint64_t VirtualDirectory::ino_of(const std::string& name) const { return ino_below(ino(), name); }

Attempt<AttributesReply> VirtualDirectory::attributes(const OperationPtr&) {
  const mode_t permissions = has_records() && !mount().options().read_only ? 0755 : 0555;
  return AttributesReply{mount().attributes(ino(), S_IFDIR | permissions, 0, time()), kEndless};
}

Error VirtualDirectory::refusal() const {
  if (!has_records()) return Node::refusal();
  return {
      ErrorCode::not_permitted, "records are not created, renamed or removed by name",
      "write JSON with the fields to change to the file itself, as `cp`, `tee` and `>` do; `sed -i` and editors that "
      "replace the file need a copy elsewhere, and `cp` back"};
}

Attempt<LookupResult> VirtualDirectory::lookup(const OperationPtr& op, const std::string& name) {
  if (name.size() > kMaxComponentLength) return fail(ErrorCode::name_too_long, "the name is longer than 255 bytes");
  auto here = child(op, name);
  if (here || !here.error().fetch) return here;
  // If a caller waits for this name through a stand-in, without the directory's lock, this one gets a stand-in at once.
  if (op->noted(kTooLong) || is_awaited(name)) return stand_in(op, name);
  return missing(
      fetch_for_a_while(mount(), op, kLookupPatience, kLookupPatience, kTooLong, std::move(here).error().fetch));
}

Attempt<LookupResult> VirtualDirectory::stand_in(const OperationPtr& op, const std::string& name) {
  const mode_t type = type_of(name);
  auto make = [&] {
    return std::make_shared<LateNode>(mount(), std::static_pointer_cast<VirtualDirectory>(shared_from_this()), name,
                                      type);
  };
  if (!S_ISDIR(type)) return found(op, make(), 0);
  if (NodePtr in_use = directory_in_use(name)) {
    auto shown = found(op, in_use, 0);
    if (shown || !shown.error().fetch) return shown;
  }
  auto late = late_.get<LateNode>(
      name, [&](const LateNode& known) { return is_free(name, known.id()); }, make);
  return found(op, late, 0);
}

NodePtr VirtualDirectory::directory_in_use(const std::string& name) { return children_.living<Node>(name); }

void VirtualDirectory::awaits(const std::string& name, NodeId id, bool is_directory) {
  MutexLock lock(late_mutex_);
  Late& late = late_names_[name];
  late.waiting.insert(id);
  if (!is_directory) return;
  late.directory = id;
  late.is_taken = false;
}

void VirtualDirectory::awaits_no_more(const std::string& name, NodeId id) {
  MutexLock lock(late_mutex_);
  auto found = late_names_.find(name);
  if (found == late_names_.end()) return;
  Late& late = found->second;
  late.waiting.erase(id);
  if (late.directory == id) late.directory.reset();
  if (late.waiting.empty()) late_names_.erase(found);
}

bool VirtualDirectory::is_awaited(const std::string& name) const {
  MutexLock lock(late_mutex_);
  return late_names_.contains(name);
}

bool VirtualDirectory::is_free(const std::string& name, NodeId id) const {
  MutexLock lock(late_mutex_);
  auto found = late_names_.find(name);
  return found != late_names_.end() && found->second.directory == id && !found->second.is_taken;
}

NodeId VirtualDirectory::id_for(const std::string& name) {
  {
    MutexLock lock(late_mutex_);
    auto found = late_names_.find(name);
    if (found != late_names_.end() && found->second.directory && !std::exchange(found->second.is_taken, true))
      return *found->second.directory;
  }
  return Node::id_for(name);
}

void VirtualDirectory::released(const std::string& name, NodeId id) {
  MutexLock lock(late_mutex_);
  auto found = late_names_.find(name);
  if (found != late_names_.end() && found->second.directory == id) found->second.is_taken = false;
}

mode_t VirtualDirectory::type_of(const std::string&) const { return S_IFDIR; }

Attempt<void> VirtualDirectory::list(const OperationPtr& op, std::uint64_t offset, bool, const Emit& emit) {
  if (offset > 0) op->note(kGoesOn);
  const std::string collection = made_of();
  if (!collection.empty()) mount().listings().given(collection, shared_from_this(), made_of_owner());
  auto here = names(op);
  if (!here && here.error().fetch) {
    if (op->noted(kTooLong))
      return fail(ErrorCode::timed_out, "the list has not arrived yet", "try again: it is still being fetched");
    return missing(
        fetch_for_a_while(mount(), op, kListingPatience, kListingGoesOn, kTooLong, std::move(here).error().fetch));
  }
  PLAYFS_ATTEMPT(ListedNames all, std::move(here));
  if (!collection.empty() && !expiry_set_.exchange(true)) {
    std::weak_ptr<Node> weak = weak_from_this();
    mount().later(mount().options().refresh, [this, weak] {
      auto self = weak.lock();
      if (!self) return;
      expiry_set_ = false;
      mount().notifications().node_changed(id(), 0);
    });
  }
  if (!emit_dots(offset, emit)) return {};
  auto next = std::upper_bound(all->begin(), all->end(), offset,
                               [](std::uint64_t after, const ListedName& item) { return after < item.position; });
  for (; next != all->end(); ++next) {
    DirectoryItem item;
    item.name = next->name;
    item.next_offset = next->position;
    item.entry.attributes.ino = ino_of(next->name);
    item.entry.attributes.mode = next->type;
    if (!emit(item, nullptr)) break;
  }
  return {};
}

Attempt<LookupResult> VirtualDirectory::found(const OperationPtr& op, const NodePtr& node, double entry_timeout) {
  PLAYFS_ATTEMPT(AttributesReply reply, node->attributes_at_once(op));
  return LookupResult{node, reply, entry_timeout};
}

double VirtualDirectory::until_told(const std::string& collection, const std::string& id, const std::string& name) {
  return mount().told_names().given(collection, id, shared_from_this(), name,
                                    [&] { return mount().site().is_record_told(collection, id); });
}

Attempt<LookupResult> VirtualDirectory::snapshot(const OperationPtr& op, const std::string& name, ShownText text,
                                                 WallTime time, double entry_timeout, const char* fixed) {
  auto node = children_.get<SnapshotFile>(
      name, [&](const SnapshotFile& file) { return file.shows(text); },
      [&] { return std::make_shared<SnapshotFile>(mount(), shared_from_this(), name, text, 0444, time, fixed); });
  return found(op, node, entry_timeout);
}

Attempt<RecordPartPtr> VirtualDirectory::shown_record(const OperationPtr& op, const std::string& collection,
                                                      const std::string& id) {
  if (mount().site().events_state().is_live) return part_here(mount(), op, collection, id, text_of_record);
  const SteadyTime now = mount().clock().steady();
  if (asked_.is_since(id, now - mount().options().refresh))
    return known_part(mount(), op, collection, id, text_of_record);
  PLAYFS_ATTEMPT(RecordPartPtr part, part_here(mount(), op, collection, id, text_of_record));
  asked_.note(id, now);
  return part;
}

Attempt<LookupResult> VirtualDirectory::record_file(const OperationPtr& op, const std::string& name, ShownRecord record,
                                                    WallTime time) {
  if (auto watched = mount().requests().looked_for_by(op->caller.pid)) return found(op, watched, 0);
  Request request;
  request.is_for_record = true;
  request.run = [&mount = mount(), record, own = std::make_shared<OwnChanges>()](const OperationPtr& running,
                                                                                 std::string text) {
    return change_record(mount, running, record, own, std::move(text));
  };
  auto node = children_.get<RequestFile>(
      name, [](const RequestFile&) { return false; },
      [&] {
        return std::make_shared<RequestFile>(mount(), shared_from_this(), name,
                                             op->id_for_new.value_or(mount().nodes().new_id()), record.text, time,
                                             nullptr, std::move(request));
      });
  // A message has no name, and a thread may have thousands of them.
  if (record.collection != "messages") node->set_reached_by(*op);
  return found(op, node, 0);
}

Attempt<LookupResult> VirtualDirectory::request_file(const OperationPtr& op, const std::string& name,
                                                     ShownText otherwise, Request request) {
  auto text = [&] {
    ShownText last = mount().last_result(path_below(name)).text;
    return last.size() == 0 ? otherwise : last;
  };
  return request_file_showing(op, name, text, std::move(request));
}

Attempt<LookupResult> VirtualDirectory::request_file_showing(const OperationPtr& op, const std::string& name,
                                                             const std::function<ShownText()>& text, Request request) {
  const std::string path = path_below(name);
  RequestsUnderWay& requests = mount().requests();
  if (auto watched = requests.looked_for_by(op->caller.pid)) return found(op, watched, 0);
  RequestTextPtr awaited = requests.awaited(path, op->caller.pid);
  // A later request may have its outcome before that one: a refusal here, or a plan.
  if (awaited && awaited->order() > 0 && mount().last_result(path).order > awaited->order()) awaited = nullptr;
  // Read the text only once nothing is awaited: a request that ends in between has stored its result by then.
  ShownText shown{std::string()};
  if (!awaited) shown = requests.is_written_by(path, op->caller.pid) ? unfinished_document() : text();
  // Each lookup stands for one open file, with a text of its own: see request_file.h.
  auto node = children_.get<RequestFile>(
      name, [](const RequestFile&) { return false; },
      [&] {
        return std::make_shared<RequestFile>(mount(), shared_from_this(), name,
                                             op->id_for_new.value_or(mount().nodes().new_id()), std::move(shown),
                                             mount().started(), std::move(awaited), std::move(request));
      });
  node->set_reached_by(*op);
  return found(op, node, 0);
}

Attempt<LookupResult> VirtualDirectory::symlink(const OperationPtr& op, const std::string& name, std::string target,
                                                WallTime time, double entry_timeout) {
  auto node = children_.get<SymlinkNode>(
      name, [&](const SymlinkNode& link) { return link.to() == target; },
      [&] { return std::make_shared<SymlinkNode>(mount(), shared_from_this(), name, target, time); });
  return found(op, node, entry_timeout);
}

ListedNames VirtualDirectory::fixed_names(std::initializer_list<std::pair<const char*, mode_t>> names) {
  std::vector<ListedName> listed;
  for (const auto& [name, type] : names) listed.push_back({name, type, kFirstPosition + listed.size()});
  return std::make_shared<const std::vector<ListedName>>(std::move(listed));
}

}  // namespace playfs::vfs
