// Directories that playfs makes up, and the small files in them.
//
// A control file is a snapshot: a lookup renders its text, and where that differs from the last one the name gets a
// new node. So the size that stat shows is right before the first byte is read, and no page of it ever goes stale;
// whoever has the old one open keeps reading the old text. Such names are asked for again each time (no entry
// timeout); what belongs to the node (size, pages) stays with it.
//
// A request file takes one request a write(2). The answer to the write comes when the request is done, its errno
// tells how it went, and a later open shows the result. What was written stays in the pages of the node, so the node
// is spent: the next lookup gives a new one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/json.h"
#include "vfs/children.h"
#include "vfs/node.h"

namespace playfs::vfs {

/// Text as it was at one moment.
class SnapshotFile : public Node {
 public:
  SnapshotFile(Mount& mount, NodePtr parent, std::string name, std::string text, mode_t permissions, WallTime time);

  [[nodiscard]] virtual bool shows(const std::string& text) const { return text == text_; }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 private:
  const std::string text_;
  const mode_t permissions_;
  const WallTime time_;
};

/// What is done with the text of one write, as an attempt: answers the text to show from then on.
using Request = std::function<Attempt<std::string>(const OperationPtr& op, const std::string& text)>;

class RequestFile final : public SnapshotFile {
 public:
  RequestFile(Mount& mount, NodePtr parent, std::string name, std::string text, WallTime time, Request request);

  [[nodiscard]] bool shows(const std::string& text) const override { return !spent_ && SnapshotFile::shows(text); }
  /// Truncation, as a shell's `>` asks for it, is accepted and means nothing.
  Attempt<AttributesReply> set_attributes(const OperationPtr& op, const SetAttributes& change) override;
  Attempt<std::size_t> write(const OperationPtr& op, std::uint64_t offset, const std::string& data) override;

 private:
  const Request request_;
  std::atomic<bool> spent_ = false;
};

class SymlinkNode final : public Node {
 public:
  SymlinkNode(Mount& mount, NodePtr parent, std::string name, std::string target, WallTime time);
  [[nodiscard]] const std::string& to() const { return to_; }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;

 private:
  const std::string to_;
  const WallTime time_;
};

/// One name of a listing. Positions count from 3 and grow along the listing; an item keeps its position while others
/// come and go.
struct ListedName {
  std::string name;
  mode_t type = 0;
  std::uint64_t position = 0;
};
using ListedNames = std::shared_ptr<const std::vector<ListedName>>;

class VirtualDirectory : public Node {
 public:
  using Node::Node;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) final;
  Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries, const Emit& emit) final;

 protected:
  /// What the name stands for; a Found without a node where it is nothing.
  virtual Attempt<Found> child(const OperationPtr& op, const std::string& name) = 0;
  virtual Attempt<ListedNames> names(const OperationPtr& op) = 0;
  /// Whether others may add names: then the kernel is told to forget a listing when it gets old.
  [[nodiscard]] virtual bool grows() const { return false; }
  [[nodiscard]] virtual WallTime time() const;

  static Found nothing(double timeout = 0) { return {nullptr, {}, timeout}; }
  /// `node` with its attributes; `entry_timeout` in seconds.
  Attempt<Found> found(const OperationPtr& op, const NodePtr& node, double entry_timeout);
  Attempt<Found> snapshot(const OperationPtr& op, const std::string& name, std::string text, WallTime time,
                          double entry_timeout = 0);
  Attempt<Found> snapshot(const OperationPtr& op, const std::string& name, const Json& json, WallTime time,
                          double entry_timeout = 0);
  /// Shows the last result, or `otherwise` where there was no request yet.
  Attempt<Found> request_file(const OperationPtr& op, const std::string& name, std::string otherwise, Request request);
  Attempt<Found> symlink(const OperationPtr& op, const std::string& name, std::string target, WallTime time,
                         double entry_timeout);
  /// A directory of class Kind made of (mount, this, name, arguments…), for good.
  template <class Kind, class... Arguments>
  Attempt<Found> directory(const OperationPtr& op, const std::string& name, const Arguments&... arguments) {
    auto made = [&] { return std::make_shared<Kind>(mount(), shared_from_this(), name, arguments...); };
    return found(op,
                 children_.get<Kind>(
                     name, [](const Kind&) { return true; }, made),
                 kEndless);
  }
  Children& children() { return children_; }
  /// Numbers the positions.
  static ListedNames fixed_names(std::initializer_list<std::pair<const char*, mode_t>> names);

 private:
  Children children_;
  std::atomic<bool> expiry_set_ = false;
};

}  // namespace playfs::vfs
