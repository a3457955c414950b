#include "vfs/shown_text.h"

#include "content/site.h"
#include "vfs/mount.h"

namespace playfs::vfs {

Attempt<std::string> ShownText::read(Mount& mount, const OperationPtr& op, std::uint64_t offset,
                                     std::size_t size) const {
  auto bytes = mount.site().read_text(text_, offset, size);
  if (!bytes && again_) {
    PLAYFS_ATTEMPT(const content::Text again, again_(op));
    if (again == text_) bytes = mount.site().read_text(text_, offset, size);
  }
  if (!bytes) return fail(ErrorCode::stale, "the record has changed, or cannot be kept", "open the file again");
  return std::move(*bytes);
}

}  // namespace playfs::vfs
