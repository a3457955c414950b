// A sequence of kernel requests, as the input says: any operation on any known node, with names, offsets and bytes of
// the input. Each gets one reply, files return what was written, and forgotten nodes leave nothing behind.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <map>

#include "fuzz.h"
#include "mount.h"

using namespace playfs;
using vfs::Entry;
using vfs::NodeId;

namespace {

constexpr const char* kNames[] = {"a",         "b",        "d",       "e",         "README.md", "link",    "work",
                                  "commit",    "head",     "log",     "run",       "projects",  "status",  ".playfs",
                                  "by-name",   "p",        "..",      ".git",      "post",      "threads", "new",
                                  "revisions", "branches", "records", "x~",        "a b\n",     "",        ".",
                                  "a/b",       "update",   "chunked", ".gitignore"};

class Kernel {
 public:
  Kernel(Input& input, fuzz::Mount& mount) : input_(input), mount_(mount), fs_(mount.fs()) { nodes_.push_back(1); }

  /// The nodes that a visitor of a project starts with.
  void find_work(bool of_project) {
    NodeId at = vfs::kRootNode;
    if (!of_project)
      for (const std::string& name : {std::string("projects"), mount_.project(), std::string("work")})
        at = look_up(at, name).value_or(Entry{}).node;
    FUZZ_CHECK(at != 0);
  }

  void step();
  void forget_all();

 private:
  NodeId node() {
    const std::size_t index = input_.byte();
    return index < 250 ? nodes_[nodes_.size() - 1 - index % nodes_.size()] : index * index * index * 1'000'003;
  }
  std::string name() {
    const std::size_t index = input_.byte();
    if (index < 0xf0) return kNames[index % std::size(kNames)];
    if (index < 0xf8) return mount_.project();
    return std::string(index == 0xff ? std::string_view() : input_.field());
  }
  std::uint64_t offset() {
    const std::size_t small = input_.below(0x10000);
    return small < 0xff00 ? small % 5000 : std::uint64_t{1} << small % 64;
  }
  bool impatient() { return input_.byte() % 16 == 15; }

  template <class T, class Start>
  Result<T> ask(const Start& start) {
    return mount_.ask<T>(start, impatient() ? std::chrono::milliseconds(0) : fuzz::Mount::kLongest);
  }
  void refer(NodeId node) {
    if (node == 0) return;
    if (references_[node]++ == 0) nodes_.push_back(node);
  }
  Result<Entry> take(Result<Entry> entry) {
    if (entry) {
      refer(entry->node);
      FUZZ_CHECK(entry->node == 0 || (entry->attributes.mode & S_IFMT) != 0);
    }
    return entry;
  }
  Result<Entry> look_up(NodeId parent, const std::string& name) {
    return take(
        mount_.ask<Entry>([&](const auto& caller, auto reply) { fs_.lookup(caller, parent, name, std::move(reply)); }));
  }
  void read_or_write(unsigned kind);
  void list();
  void change_names(unsigned kind);
  void command(unsigned kind);
  /// The expected content of a file that was made here. Dropped once anything else may change it.
  std::string* known(NodeId node) {
    auto found = files_.find(node);
    return found == files_.end() || !is_certain_ ? nullptr : &found->second;
  }

  Input& input_;
  fuzz::Mount& mount_;
  vfs::FileSystem& fs_;
  std::vector<NodeId> nodes_;
  std::map<NodeId, std::uint64_t> references_;
  std::map<NodeId, std::string> files_;
  bool is_certain_ = true;  ///< an interrupted operation may continue and change files
};

void Kernel::step() {
  const unsigned kind = input_.byte() % 32;
  if (kind < 4) {
    const NodeId parent = node();
    look_up(parent, name()).value_or(Entry{});
  } else if (kind < 16) {
    read_or_write(kind);
  } else if (kind < 18) {
    list();
  } else if (kind < 26) {
    change_names(kind);
  } else {
    command(kind);
  }
}

void Kernel::read_or_write(unsigned kind) {
  const NodeId id = node();
  std::string* file = known(id);
  if (kind < 7) {
    const std::uint64_t from = offset();
    const std::size_t size = input_.below(0x10000);
    auto bytes =
        ask<std::string>([&](const auto& caller, auto reply) { fs_.read(caller, id, from, size, std::move(reply)); });
    if (!bytes) return;
    FUZZ_CHECK(bytes->size() <= size);
    if (file) FUZZ_CHECK(*bytes == (from < file->size() ? file->substr(from, size) : std::string()));
  } else if (kind < 10) {
    const std::uint64_t at = offset();
    const std::string data(input_.field());
    auto written =
        ask<std::size_t>([&](const auto& caller, auto reply) { fs_.write(caller, id, at, data, std::move(reply)); });
    FUZZ_CHECK(!written || *written <= data.size());
    if (!file) return;
    // An interrupted write may have been done, and larger files are beyond this model.
    if (!written || at + data.size() > 1 << 20) {
      files_.erase(id);
      return;
    }
    if (*written > 0 && file->size() < at + *written) file->resize(at + *written);
    file->replace(std::min<std::size_t>(at, file->size()), *written, data, 0, *written);
  } else if (kind < 12) {
    auto attributes = ask<vfs::AttributesReply>(
        [&](const auto& caller, auto reply) { fs_.get_attributes(caller, id, std::move(reply)); });
    if (attributes && file) FUZZ_CHECK(attributes->attributes.size == file->size());
  } else if (kind < 14) {
    vfs::SetAttributes change;
    const unsigned which = input_.byte();
    if (which & 1) change.size = offset();
    if (which & 2) change.mode = input_.below(0x10000);
    if (which & 4) change.mtime = WallTime{static_cast<std::int64_t>(offset())};
    if (which & 8) change.atime = WallTime{static_cast<std::int64_t>(0 - offset())};
    if (which & 16) change.uid = input_.byte();
    auto attributes = ask<vfs::AttributesReply>(
        [&](const auto& caller, auto reply) { fs_.set_attributes(caller, id, change, std::move(reply)); });
    if (!file) return;
    if (!attributes || change.size.value_or(0) > 1 << 20) files_.erase(id);
    else if (change.size) file->resize(*change.size);
  } else if (kind == 14) {
    static_cast<void>(ask<void>([&](const auto& caller, auto reply) { fs_.sync(caller, id, std::move(reply)); }));
    const std::uint64_t from = offset();
    auto found = ask<std::uint64_t>(
        [&](const auto& caller, auto reply) { fs_.seek(caller, id, from, SEEK_DATA, std::move(reply)); });
    if (file && found) FUZZ_CHECK(*found >= from && *found < file->size());
  } else {
    const int mode = input_.byte();
    // The space is really allocated, mostly in memory.
    const std::uint64_t from = offset(), length = offset() % (1 << 20);
    files_.erase(id);
    static_cast<void>(ask<void>(
        [&](const auto& caller, auto reply) { fs_.allocate(caller, id, mode, from, length, std::move(reply)); }));
  }
}

void Kernel::list() {
  const NodeId id = node();
  const bool with_entries = input_.byte() % 2 != 0;
  std::size_t room = input_.byte() % 20;
  std::uint64_t from = input_.byte();
  // Kept until the operation is over, however late that is.
  auto items = std::make_shared<std::vector<vfs::DirectoryItem>>();
  auto take = [items, room](const vfs::DirectoryItem& item) mutable {
    if (room == 0) return false;
    --room;
    items->push_back(item);
    return true;
  };
  auto listed = mount_.ask<void>(
      [&](const auto& caller, auto reply) { fs_.list(caller, id, from, with_entries, take, std::move(reply)); });
  for (const auto& item : *items) {
    FUZZ_CHECK(!item.name.empty() && item.name.find('/') == std::string::npos);
    FUZZ_CHECK(with_entries || item.entry.node == 0);
    refer(item.entry.node);
  }
  static_cast<void>(listed);
}

void Kernel::change_names(unsigned kind) {
  const NodeId parent = node();
  const std::string first = name();
  if (kind < 21) {
    constexpr mode_t types[] = {S_IFREG, S_IFREG, S_IFREG, S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, 0};
    const mode_t mode = types[input_.byte() % std::size(types)] | 0644;
    auto made = take(ask<Entry>(
        [&](const auto& caller, auto reply) { fs_.make_node(caller, parent, first, mode, 0, std::move(reply)); }));
    if (made && made->node != 0 && S_ISREG(mode) && S_ISREG(made->attributes.mode)) files_[made->node].clear();
  } else if (kind == 21) {
    take(ask<Entry>([&](const auto& caller, auto reply) {
      fs_.make_directory(caller, parent, first, 0755, std::move(reply));
    })).value_or(Entry{});
  } else if (kind == 22) {
    std::string target(input_.field());
    target = target.c_str();  // the kernel terminates it with NUL
    auto made = take(ask<Entry>(
        [&](const auto& caller, auto reply) { fs_.make_symlink(caller, parent, first, target, std::move(reply)); }));
    if (!made || made->node == 0) return;
    auto read = mount_.ask<std::string>(
        [&](const auto& caller, auto reply) { fs_.read_link(caller, made->node, std::move(reply)); });
    FUZZ_CHECK(read && *read == target);
  } else if (kind == 23) {
    const NodeId id = node();
    files_.erase(id);  // two names of one file may be two nodes
    auto made = take(
        ask<Entry>([&](const auto& caller, auto reply) { fs_.link(caller, id, parent, first, std::move(reply)); }));
    if (made) files_.erase(made->node);
  } else if (kind == 24) {
    auto remove = [&](const auto& caller, auto reply) {
      if (first.size() % 2 != 0) fs_.unlink(caller, parent, first, std::move(reply));
      else fs_.remove_directory(caller, parent, first, std::move(reply));
    };
    static_cast<void>(ask<void>(remove));
  } else {
    const NodeId new_parent = node();
    const std::string second = name();
    const unsigned flags = input_.byte() % 8;
    static_cast<void>(ask<void>([&](const auto& caller, auto reply) {
      fs_.rename(caller, parent, first, new_parent, second, flags, std::move(reply));
    }));
  }
}

void Kernel::command(unsigned kind) {
  const NodeId id = node();
  if (kind == 26) {
    vfs::CommitRequest request;
    const unsigned how = input_.byte();
    request.wait = how & 1;
    request.dry_run = how & 2;
    request.resolved = how & 4;
    request.allow_merge = how & 8;
    request.message = input_.field();
    auto result = ask<vfs::CommitResult>(
        [&](const auto& caller, auto reply) { fs_.commit(caller, id, request, std::move(reply)); });
    if (result && result->outcome == vfs::Outcome::published) FUZZ_CHECK(!result->revision.empty());
  } else if (kind == 27) {
    auto status =
        ask<vfs::WorkStatus>([&](const auto& caller, auto reply) { fs_.work_status(caller, id, std::move(reply)); });
    if (status) FUZZ_CHECK(status->project == mount_.project());
  } else if (kind == 28) {
    files_.clear();
    vfs::DiscardRequest request;
    const unsigned how = input_.byte();
    request.dry_run = how & 1;
    if (how & 2) request.paths.push_back(name());
    if (how & 4) request.paths.push_back(name());
    auto discarded = ask<vfs::DiscardResult>(
        [&](const auto& caller, auto reply) { fs_.discard(caller, id, request, std::move(reply)); });
    if (!discarded) is_certain_ = false;
  } else if (kind == 29) {
    files_.clear();
    const RevisionId revision(input_.byte() % 4 == 0 ? mount_.revision() : std::string());
    auto updated = ask<vfs::UpdateResult>(
        [&](const auto& caller, auto reply) { fs_.update(caller, id, revision, std::move(reply)); });
    if (!updated) is_certain_ = false;
  } else if (kind == 30) {
    static_cast<void>(
        ask<vfs::Cancelled>([&](const auto& caller, auto reply) { fs_.cancel(caller, id, std::move(reply)); }));
    const std::string attribute = "user.playfs." + std::string(input_.field());
    static_cast<void>(ask<std::string>(
        [&](const auto& caller, auto reply) { fs_.get_xattr(caller, id, attribute, std::move(reply)); }));
  } else {
    auto referred = references_.find(id);
    if (referred == references_.end() || referred->second == 0) return;
    const std::uint64_t count = 1 + input_.byte() % referred->second;
    fs_.forget(id, count);
    referred->second -= count;
    if (referred->second > 0) return;
    references_.erase(referred);
    files_.erase(id);
    std::erase(nodes_, id);
  }
}

void Kernel::forget_all() {
  for (const auto& referred : references_) {
    const NodeId id = referred.first;
    if (id == vfs::kRootNode) continue;
    fs_.forget(id, referred.second);
    auto gone = mount_.ask<vfs::AttributesReply>(
        [&](const auto& caller, auto reply) { fs_.get_attributes(caller, id, std::move(reply)); });
    FUZZ_CHECK(!gone);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const bool of_project = input.byte() % 2 != 0;
  fuzz::Mount mount(of_project);
  Kernel kernel(input, mount);
  kernel.find_work(of_project);
  for (int steps = 0; steps < 64 && !input.empty(); ++steps) kernel.step();
  kernel.forget_all();
  return 0;
}
