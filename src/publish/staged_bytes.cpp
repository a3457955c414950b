#include "publish/staged_bytes.h"

#include <memory>

namespace playfs::publish {

namespace {

class StagedBytes final : public ByteSource {
 public:
  StagedBytes(stage::Stage& stage, stage::InodePtr inode) : stage_(stage), inode_(std::move(inode)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    PLAYFS_TRY(std::string bytes, stage_.read(inode_, offset, size));
    if (bytes.size() != size) return fail(ErrorCode::busy, "a file was truncated while it was read", "try again");
    return bytes;
  }

 private:
  stage::Stage& stage_;
  const stage::InodePtr inode_;
};

}  // namespace

Result<Bytes> staged_bytes(stage::Stage& stage, const stage::InodePtr& inode) {
  PLAYFS_TRY(auto attributes, stage.attributes(inode));
  if (attributes.kind == stage::Kind::symlink) {
    PLAYFS_TRY(std::string target, stage.symlink_target(inode));
    return Bytes(std::move(target));
  }
  return Bytes(std::make_shared<StagedBytes>(stage, inode), attributes.size);
}

}  // namespace playfs::publish
