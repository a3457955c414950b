// The text that a control file shows. Cheap to copy, thread-safe. A long text is an object on disk, read in pieces, so
// many readers of a large record take no memory for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "content/text.h"
#include "vfs/attempt.h"

namespace playfs::vfs {

class Mount;

class ShownText {
 public:
  /// Makes the text again, from the data that is known by then.
  using Again = std::function<Attempt<content::Text>(const OperationPtr&)>;

  ShownText(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor): what most files show
  ShownText(content::Text text, Again again) : text_(std::move(text)), again_(std::move(again)) {}

  [[nodiscard]] std::uint64_t size() const { return text_.size(); }
  /// `stale` if the cache has lost the text, and the record has changed since.
  [[nodiscard]] Attempt<std::string> read(Mount& mount, const OperationPtr& op, std::uint64_t offset,
                                          std::size_t size) const;
  bool operator==(const ShownText& other) const { return text_ == other.text_; }

 private:
  content::Text text_;
  Again again_;
};

}  // namespace playfs::vfs
