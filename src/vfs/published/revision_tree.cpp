#include "vfs/published/revision_tree.h"

#include <sys/stat.h>

#include <algorithm>

#include "model/path.h"
#include "vfs/ino.h"
#include "vfs/mount.h"
#include "vfs/published/history.h"
#include "vfs/published/instructions.h"

namespace playfs::vfs {
namespace {

mode_t mode_of(const FileEntry& entry) {
  switch (entry.mode) {
    case FileMode::regular: return S_IFREG | 0644;
    case FileMode::executable: return S_IFREG | 0755;
    case FileMode::symlink: return S_IFLNK | 0777;
  }
  return S_IFREG | 0644;
}

// git's modes, write bits included: EROFS says that the tree is read-only, and copies made with cp -p stay editable.
constexpr mode_t kDirectoryMode = S_IFDIR | 0755;

mode_t mode_of(const Tree::Child& child) {
  const auto* file = std::get_if<const FileEntry*>(&child);
  return file ? mode_of(**file) : kDirectoryMode;
}

}  // namespace

TreeViewPtr read_only_view(Mount& mount, RevisionTreePtr revision, ProjectId project) {
  return view_with_refusal(mount, std::move(revision), std::move(project),
                           {ErrorCode::read_only, "a published revision never changes", "edit in work/ and commit"});
}

TreeViewPtr view_with_refusal(Mount& mount, RevisionTreePtr revision, ProjectId project, Error refusal) {
  if (!revision) {
    Revision nothing_yet;
    nothing_yet.project = project;
    revision = std::make_shared<const RevisionTree>(std::move(nothing_yet));
  }
  PathSet hidden = hidden_instructions(mount, revision->tree.manifest());
  return std::make_shared<const TreeView>(
      TreeView{std::move(revision), std::move(project), std::move(refusal), std::move(hidden)});
}

namespace {

/// One per line.
std::string parents_text(const Revision& revision) {
  std::string text;
  for (const RevisionId& parent : shown_parents(revision)) text += (text.empty() ? "" : "\n") + parent.text();
  return text;
}

}  // namespace

std::optional<std::string> published_xattr(const RevisionTree& revision, const ProjectId& project,
                                           const FileEntry* entry, const std::string& name) {
  if (name == "project") return project.text();
  if (!revision.revision.id.empty()) {
    if (name == "revision") return revision.revision.id.text();
    if (name == "agent") return shown_text(revision.revision.agent);
    if (name == "message") return shown_text(revision.revision.message);
    if (name == "created_at") return format_iso8601(revision.revision.created_at);
    if (name == "parents") return parents_text(revision.revision);
    if (name == "more_parents")
      return std::to_string(revision.revision.parents.size() - shown_parents(revision.revision).size());
  }
  if (!entry) return std::nullopt;
  if (name == "hash" && !entry->hash_claim.empty()) return entry->hash_claim;
  if (name == "chunks") return std::to_string(entry->chunks.size());
  return std::nullopt;
}

bool stays_inside(const std::string& path, const std::string& target) {
  if (target.empty() || target.front() == '/') return false;
  std::ptrdiff_t depth = std::count(path.begin(), path.end(), '/');
  for (std::size_t begin = 0; begin < target.size();) {
    std::size_t end = std::min(target.find('/', begin), target.size());
    std::string_view part = std::string_view(target).substr(begin, end - begin);
    if (part == "..") {
      if (--depth < 0) return false;
    } else if (!part.empty() && part != ".") {
      // A name on the way may itself be a link to a higher directory, so a later ".." cannot be judged by counting.
      if (target.find("..", end) != std::string::npos) return false;
      ++depth;
    }
    begin = end + 1;
  }
  return true;
}

Status check_link_target(Mount& mount, const std::string& path, const std::string& target) {
  if (target.empty() || target.size() > kMaxPathLength || target.find('\0') != std::string::npos) {
    return fail(ErrorCode::refused_input, "the link's target is empty, too long, or contains a NUL");
  }
  if (mount.options().safe_symlinks && !stays_inside(path, target)) {
    return fail(ErrorCode::permission_denied, "the link leads out of its tree",
                "mount without safe_symlinks to follow it");
  }
  return {};
}

RevisionDirectory::RevisionDirectory(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view)
    : Node(mount, std::move(parent), std::move(name)),
      view_(std::move(view)),
      directory_(view_->revision->tree.root()) {}

RevisionDirectory::RevisionDirectory(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view,
                                     std::string path_in_tree, const Tree::Directory& directory)
    : Node(mount, std::move(parent), std::move(name)),
      view_(std::move(view)),
      path_in_tree_(std::move(path_in_tree)),
      directory_(directory) {}

Attempt<AttributesReply> RevisionDirectory::attributes(const OperationPtr&) {
  return AttributesReply{mount().attributes(ino(), kDirectoryMode, 0, view_->revision->revision.created_at), kEndless};
}

bool RevisionDirectory::is_hidden(const std::string& name, const Tree::Child& child) const {
  if (view_->hidden.empty()) return false;
  const std::string path = path_in_tree_.empty() ? name : path_in_tree_ + '/' + name;
  const auto* below = std::get_if<std::unique_ptr<Tree::Directory>>(&child);
  if (!below) return view_->hidden.contains(path);
  return gives_instructions(path) && is_all_hidden(**below, path, view_->hidden);
}

NodePtr RevisionDirectory::child(const std::string& name, const Tree::Child& child) {
  std::string path = path_in_tree_.empty() ? name : path_in_tree_ + '/' + name;
  auto any = [](const Node&) { return true; };
  return children_.get<Node>(name, any, [&]() -> NodePtr {
    if (const auto* file = std::get_if<const FileEntry*>(&child)) {
      return std::make_shared<RevisionFile>(mount(), shared_from_this(), name, view_, path, **file);
    }
    const auto& directory = std::get<std::unique_ptr<Tree::Directory>>(child);
    return std::make_shared<RevisionDirectory>(mount(), shared_from_this(), name, view_, path, *directory);
  });
}

Attempt<LookupResult> RevisionDirectory::lookup(const OperationPtr& op, const std::string& name) {
  if (name.size() > kMaxComponentLength) return fail(ErrorCode::name_too_long, "the name is longer than 255 bytes");
  auto published = directory_.children.find(name);
  if (published == directory_.children.end() || is_hidden(name, published->second))
    return LookupResult{nullptr, {}, kEndless};
  NodePtr node = child(name, published->second);
  PLAYFS_ATTEMPT_CHECK(node->looked_up(op));
  PLAYFS_ATTEMPT(AttributesReply reply, node->attributes_at_once(op));
  return LookupResult{node, reply, kEndless};
}

Attempt<void> RevisionDirectory::list(const OperationPtr& op, std::uint64_t offset, bool with_entries,
                                      const Emit& emit) {
  if (!emit_dots(offset, emit)) return {};
  std::uint64_t position = 3;
  auto next = directory_.children.begin();
  if (offset >= position) {
    std::uint64_t skipped = std::min<std::uint64_t>(offset - position + 1, directory_.children.size());
    std::advance(next, static_cast<std::ptrdiff_t>(skipped));
    position += skipped;
  }
  for (; next != directory_.children.end(); ++next, ++position) {
    if (is_hidden(next->first, next->second)) continue;
    DirectoryItem item;
    item.name = next->first;
    item.next_offset = position;
    item.entry.attributes.ino = ino_below(ino(), next->first);
    item.entry.attributes.mode = mode_of(next->second);
    NodePtr node;
    if (with_entries) {
      node = child(next->first, next->second);
      if (auto reply = node->attributes_at_once(op)) {
        item.entry = {node->id(), reply->attributes, kEndless, reply->timeout};
      } else {
        node = nullptr;
      }
    }
    if (!emit(item, node)) break;
  }
  return {};
}

Attempt<std::optional<std::string>> RevisionDirectory::xattr(const OperationPtr&, const std::string& name) {
  if (name == "refused") {
    const std::vector<std::string> hidden(view_->hidden.begin(), view_->hidden.end());
    return std::optional(refused_text(view_->revision->tree.manifest(), hidden));
  }
  return published_xattr(*view_->revision, view_->project, nullptr, name);
}

RevisionFile::RevisionFile(Mount& mount, NodePtr parent, std::string name, TreeViewPtr view, std::string path_in_tree,
                           const FileEntry& entry)
    : Node(mount, std::move(parent), std::move(name)),
      view_(std::move(view)),
      path_in_tree_(std::move(path_in_tree)),
      entry_(entry) {}

AttributesReply RevisionFile::with_size(std::uint64_t size) const {
  AttributesReply reply{mount().attributes(ino(), mode_of(entry_), size, view_->revision->revision.created_at),
                        kEndless};
  show_size(reply, size);
  return reply;
}

Attempt<AttributesReply> RevisionFile::attributes(const OperationPtr& op) {
  PLAYFS_ATTEMPT(std::uint64_t size, size_.tell(op, mount(), file()));
  return with_size(size);
}

Attempt<AttributesReply> RevisionFile::attributes_at_once(const OperationPtr&) {
  return with_size(size_.tell_at_once(mount(), file()));
}

Attempt<std::string> RevisionFile::link_target() {
  if (entry_.mode != FileMode::symlink) return fail(ErrorCode::invalid_argument, "not a symbolic link");
  PLAYFS_ATTEMPT(std::string to, size_.read(*this, mount(), file(), 0, kMaxPathLength + 1));
  PLAYFS_ATTEMPT_CHECK(check_link_target(mount(), path_in_tree_, to));
  return to;
}

Attempt<std::string> RevisionFile::read_link(const OperationPtr& op) {
  return mount().late_links().read(op, id(), link_target());
}

Attempt<void> RevisionFile::looked_up(const OperationPtr& op) {
  if (entry_.mode != FileMode::symlink || !mount().late_links().is_awaited(op, id())) return {};
  return mount().late_links().wait(op, id(), link_target());
}

Attempt<std::string> RevisionFile::read(const OperationPtr&, std::uint64_t offset, std::size_t size) {
  return size_.read(*this, mount(), file(), offset, size);
}

Attempt<std::optional<std::string>> RevisionFile::xattr(const OperationPtr&, const std::string& name) {
  return published_xattr(*view_->revision, view_->project, &entry_, name);
}

}  // namespace playfs::vfs
