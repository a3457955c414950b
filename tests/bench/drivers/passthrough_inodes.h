// The nodes that the kernel knows of a passthrough: an O_PATH descriptor each, found by device and inode number.
//
// Thread-safe. A Node lives until the kernel has forgotten it; its id is its address, and the root's is FUSE_ROOT_ID.

#pragma once

#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace playfs::bench {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct Node {
  Node(int fd, const struct stat& attributes) : place(fd), key(attributes.st_dev, attributes.st_ino) {}

  std::string proc_path() const { return "/proc/self/fd/" + std::to_string(place.get()); }

  /// For input and output where opens carry no state: opened at the first use, read-write where that is allowed.
  /// -1 with errno.
  int content();

  Descriptor place;
  std::pair<dev_t, ino_t> key;
  std::uint64_t lookups = 0;  // guarded by the table

 private:
  std::mutex mutex_;
  std::unique_ptr<Descriptor> content_;
};

class NodeTable {
 public:
  explicit NodeTable(const char* root);  // ends the program when the root cannot be opened

  Node& get(fuse_ino_t id) { return id == FUSE_ROOT_ID ? *root_ : *reinterpret_cast<Node*>(id); }

  /// Finds `name`, counts a lookup, and fills `entry`'s node and attributes. An errno, or 0.
  int look_up(Node& parent, const char* name, fuse_entry_param& entry);

  void forget(fuse_ino_t id, std::uint64_t count);

 private:
  std::mutex mutex_;
  std::unique_ptr<Node> root_;
  std::map<std::pair<dev_t, ino_t>, std::unique_ptr<Node>> nodes_;
};

}  // namespace playfs::bench
