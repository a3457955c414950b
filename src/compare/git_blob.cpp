#include "compare/git_blob.h"

#include <memory>

#include "model/git_library.h"

namespace playfs::compare {

namespace {

constexpr std::string_view kBegin = "GIT binary patch\n";
constexpr std::string_view kNothing = "literal 0\nHcmV?d00001\n\n";

struct Disposed {
  void operator()(git_patch* patch) const { git_patch_free(patch); }
};

struct Buffer {
  git_buf text{};
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { git_buf_dispose(&text); }
};

tl::unexpected<Error> failed(const char* what) {
  const git_error* error = git_error_last();
  return fail(ErrorCode::internal, std::string(what) + ": " + (error ? error->message : "libgit2 failed"));
}

/// `content` as one half of a binary patch: "literal", its size, and base 85. libgit2 writes patches only between
/// contents that differ, so this is taken from the patch that makes it out of nothing.
Result<std::string> literal(std::string_view content) {
  if (content.empty()) return std::string(kNothing);
  git_diff_options options;
  if (git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) != 0) return failed("encode a content");
  options.flags = GIT_DIFF_FORCE_BINARY | GIT_DIFF_SHOW_BINARY;
  git_patch* made = nullptr;
  if (git_patch_from_buffers(&made, "", 0, nullptr, content.data(), content.size(), nullptr, &options) != 0)
    return failed("encode a content");
  const std::unique_ptr<git_patch, Disposed> patch(made);
  Buffer buffer;
  if (git_patch_to_buf(&buffer.text, patch.get()) != 0) return failed("encode a content");
  std::string_view text(buffer.text.ptr, buffer.text.size);
  const auto begin = text.find(kBegin);
  const auto back = text.rfind("literal 0\n");  // no encoded line has a blank
  if (begin == std::string_view::npos || back == std::string_view::npos || back <= begin)
    return fail(ErrorCode::internal, "encode a content: libgit2 wrote an unknown form");
  const auto first = begin + kBegin.size();
  return std::string(text.substr(first, back - first));
}

}  // namespace

Result<std::string> blob_id(std::string_view content) {
  PLAYFS_CHECK(set_up_git_library());
  git_oid id;
  if (git_odb_hash(&id, content.data(), content.size(), GIT_OBJECT_BLOB) != 0) return failed("name a content");
  std::string hex(GIT_OID_HEXSZ, '0');
  git_oid_fmt(hex.data(), &id);
  return hex;
}

Result<std::vector<std::string>> binary_patch(std::string_view before, std::string_view after) {
  PLAYFS_CHECK(set_up_git_library());
  PLAYFS_TRY(std::string forward, literal(after));
  PLAYFS_TRY(std::string back, literal(before));
  const std::string text = std::string(kBegin) + forward + back;
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace playfs::compare
