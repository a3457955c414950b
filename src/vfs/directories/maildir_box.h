// `new/`, `cur/` and `tmp/` of a Maildir, and the letters in them. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "vfs/directories/maildir.h"

namespace playfs::vfs {

/// `place`: Place::hidden is `tmp/`, which is always empty.
class MaildirBox final : public VirtualDirectory {
 public:
  using Place = MaildirMark::Place;
  MaildirBox(Mount& mount, NodePtr parent, std::string name, Place place);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<void> unlink(const OperationPtr& op, const std::string& name) override;
  Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                       const std::string& new_name, unsigned flags) override;
  Attempt<void> sync(const OperationPtr& op) override;

 protected:
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  [[nodiscard]] std::string made_of() const override { return is_tmp() ? "" : folder().collections().front(); }
  [[nodiscard]] WallTime time() const override { return folder().changed(); }
  [[nodiscard]] std::uint64_t ino_of(const std::string& name) const override;
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] Error refusal() const override;

 private:
  [[nodiscard]] bool is_tmp() const { return place_ == Place::hidden; }
  [[nodiscard]] MaildirFolder& folder() const { return static_cast<MaildirFolder&>(*parent()); }

  const Place place_;
  Mutex mutex_;
  FolderLettersPtr listed_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t marks_ PLAYFS_GUARDED_BY(mutex_) = 0;
  ListedNames names_ PLAYFS_GUARDED_BY(mutex_);
};

/// One version of a letter. The kernel keeps its bytes, and asks for them once.
class LetterFile final : public Node {
 public:
  LetterFile(Mount& mount, NodePtr parent, std::string name, MaildirsPtr shared, LetterTexts::Wanted wanted,
             LetterTexts::Told told);

  /// Whether its content is still that of this version of the letter.
  [[nodiscard]] bool shows(const LetterTexts::Wanted& wanted, const LetterTexts::Told& told) const {
    return wanted == wanted_ && told == told_;
  }
  /// Increases with the letter's time, and does not change when the letter is moved.
  [[nodiscard]] std::uint64_t ino() const override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 protected:
  [[nodiscard]] Error refusal() const override;

 private:
  const MaildirsPtr shared_;
  const LetterTexts::Wanted wanted_;
  const LetterTexts::Told told_;
};

}  // namespace playfs::vfs
