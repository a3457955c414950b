// Takes into the stage what was changed in a clone's directory: the same operations that the kernel would send from a
// mount. Blocking; for one thread.
//
// Ignored files are not read. The stage gets their names, as empty files, so that its rules decide about them: a
// published file of such a name is put beside it, and other people's ignore rules publish none of them. An ignored
// directory is a directory with one name.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clone/index.h"
#include "clone/plain_directory.h"
#include "clone/scan.h"
#include "clone/staged.h"
#include "stage/stage.h"

namespace playfs::clone {

class TakeIn {
 public:
  /// Brings the content of a published rule file to where the stage reads it.
  using Fetch = std::function<Status(const FileRef&)>;

  TakeIn(stage::Stage& stage, const PlainDirectory& directory, Index& index, Fetch fetch)
      : stage_(stage), directory_(directory), index_(index), fetch_(std::move(fetch)) {}

  /// If the index is behind, the stage may have content that the directory was never given. It is not replaced: a path
  /// that was changed in both is in conflict. If the index is not behind, such content was left by an interrupted
  /// take-in. Commits the index. `look`: with this index.
  Status run(Look look);
  /// What could not be read: neither taken in nor deleted.
  [[nodiscard]] const std::vector<Unread>& unread() const { return unread_; }

 private:
  /// A file or link as the directory has it.
  struct Content {
    Signature seen;  ///< only the mode is set if the file changed while it was read
    ContentHash hash;
    FileMode mode = FileMode::regular;
    std::string target;  ///< of a link
  };
  /// `staged` of a new row: the stage had nothing there when taking it in began.
  static constexpr const char* kMadeHere = "made here";
  struct Item {
    std::string path;
    bool is_directory = false;
    bool was_local_only = false;
    // Of a directory, once it was listed:
    std::vector<Name> names = {};
    std::string stand_in = {};  ///< the name that stands for its content; "" if it is empty
    std::optional<std::string> why_unread = {};
  };

  [[nodiscard]] static stage::Creation creation_of(bool is_executable);
  Status forget(const std::string& path, const Row& row);
  Status forget_content(const std::string& path, const Row& row);
  Status forget_local_only(const std::string& path, const Row& row);
  /// A directory with something in it stays.
  Status remove_staged_directory(const std::string& path);
  Status commit();
  Status take_names(std::vector<Item> items);
  [[nodiscard]] static bool is_rules_item(const Item& item);
  [[nodiscard]] Status leave_hidden(std::vector<Item>& items);
  Result<bool> is_hidden(const Item& item);
  [[nodiscard]] Result<std::set<std::string>> local_only_names();
  void begin(const std::string& path);
  void begin_directory(const Item& item);
  Status list(Item& item);
  Status begin_names(std::vector<Item>& items);
  Status make_file(const std::string& path);
  Status make_directory(const Item& item);
  Status take_name(const Item& item, bool is_local_only, std::vector<std::string>& files, std::vector<Item>& below);
  Status take_directory(Item item, std::vector<Item>& below);
  Status remove_stand_in(const std::string& path);
  Status note_local_only(const Item& item);
  /// Not in the stage, and without a row: the next command looks again.
  Status leave_unread(const Item& item);
  [[nodiscard]] Result<std::optional<std::string>> why_unread(const std::string& path) const;
  /// Notes a file that cannot be read or is too large to be published, and drops what stood for it.
  [[nodiscard]] Result<bool> is_unread(const std::string& path);
  /// Takes in files. Notes each in the index before the stage's content changes, so that content that a killed command
  /// left half-written is not believed.
  Status take_files(const std::vector<std::string>& paths);
  /// Whether only times or the mode have changed; if so, takes that in.
  [[nodiscard]] Result<bool> is_but_touched(const std::string& path);
  Status take_file(const std::string& path);
  Status take_content(const std::string& path, const Content& content);
  Status note(const std::string& path, Row row, const stage::InodePtr& inode);
  Status set_mode(const stage::InodePtr& inode, FileMode mode);
  /// The content, written to `into` as well if that is given.
  [[nodiscard]] Result<std::optional<Content>> read(const std::string& path, const stage::InodePtr& into = nullptr);
  [[nodiscard]] Result<std::optional<Content>> read_once(const std::string& path, const stage::InodePtr& into);
  [[nodiscard]] Result<ContentHash> read_bytes(int file, const stage::InodePtr& into);
  /// Whether an unfinished take-in put it there.
  [[nodiscard]] static bool is_made_here(const Row& row, const StagedFile& staged);
  /// Whether the stage's content at the path is what the row says, so that it may be replaced.
  [[nodiscard]] bool is_ours(const Row* row, const std::optional<StagedFile>& staged) const;
  /// Gives what others published at the path another name, beside it.
  Status set_aside(const std::string& path);
  void add_conflict(const std::string& path, std::string reason, std::optional<ContentHash> left);
  Status record_conflicts();
  /// Made if it is missing.
  [[nodiscard]] Result<stage::InodePtr> staged_directory(const std::string& path);
  Status remove_staged(const std::string& path, const StagedFile& staged);

  stage::Stage& stage_;
  const PlainDirectory& directory_;
  Index& index_;
  const Fetch fetch_;
  std::vector<stage::Conflicted> conflicts_;
  std::vector<Unread> unread_;
};

}  // namespace playfs::clone
