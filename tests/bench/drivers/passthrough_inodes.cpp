#include "passthrough_inodes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace playfs::bench {

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

int Node::content() {
  std::lock_guard lock(mutex_);
  if (!content_) {
    std::string path = proc_path();
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    content_ = std::make_unique<Descriptor>(fd);
  }
  return content_->get();
}

NodeTable::NodeTable(const char* root) {
  int fd = open(root, O_PATH | O_CLOEXEC);
  struct stat attributes {};
  if (fd < 0 || fstat(fd, &attributes) != 0) {
    std::perror(root);
    std::exit(1);
  }
  root_ = std::make_unique<Node>(fd, attributes);
}

int NodeTable::look_up(Node& parent, const char* name, fuse_entry_param& entry) {
  int fd = openat(parent.place.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  if (fstatat(fd, "", &entry.attr, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    int failed = errno;
    close(fd);
    return failed;
  }
  auto found = std::make_unique<Node>(fd, entry.attr);
  std::lock_guard lock(mutex_);
  auto& node = nodes_[found->key];
  if (!node) node = std::move(found);
  ++node->lookups;
  entry.ino = reinterpret_cast<fuse_ino_t>(node.get());
  return 0;
}

void NodeTable::forget(fuse_ino_t id, std::uint64_t count) {
  if (id == FUSE_ROOT_ID) return;
  Node& node = get(id);
  std::lock_guard lock(mutex_);
  node.lookups -= count;
  if (node.lookups == 0) nodes_.erase(node.key);
}

}  // namespace playfs::bench
