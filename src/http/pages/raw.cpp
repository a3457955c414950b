// A file's raw bytes: read once to verify them against the manifest, then again, piece by piece, while they are sent.
// Chunks do not change in between.
#include <memory>
#include <utility>

#include "base/text.h"
#include "http/pages/content.h"
#include "http/pages/place.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

constexpr std::size_t kMostBytes = 16 << 20;
/// The bytes of records read for one file: base64 and JSON take more than the content.
constexpr std::size_t kMostRead = 32 << 20;
constexpr std::size_t kPiece = 64 * 1024;

class FileBody final : public BodySource {
 public:
  FileBody(service::Store& store, const FileEntry& entry, std::uint64_t size)
      : store_(store), pieces_(entry), size_(size) {}

  [[nodiscard]] std::optional<std::uint64_t> size() const override { return size_; }

  Result<std::string> next() override {
    Reader reader(store_, kMostRead);
    std::string piece;
    while (piece.size() < kPiece) {
      PLAYFS_TRY(std::string more, pieces_.next(reader));
      if (more.empty()) break;
      piece += more;
    }
    return piece;
  }

 private:
  service::Store& store_;
  ContentPieces pieces_;
  const std::uint64_t size_;
};

}  // namespace

Result<Answer> raw_file(Visit& visit, const std::string& project, const std::string& revision,
                        const std::string& path) {
  PLAYFS_TRY(Place place, find_place(visit.reader, project, revision));
  PLAYFS_TRY(const FileEntry* entry, find_file(place, path));
  Reader reader(visit.store, kMostRead);
  PLAYFS_TRY(Verdict verdict, examine_content(reader, *entry, kMostBytes));
  // The file's page can explain a mismatch; a download could not.
  if (!verdict.mismatch.empty()) return fail(ErrorCode::refused_input, verdict.mismatch);
  Answer answer;
  answer.response.status = 200;
  auto& headers = answer.response.headers;
  headers.add("Content-Type", verdict.is_text ? "text/plain; charset=utf-8" : "application/octet-stream");
  // Whatever the file contains, a browser must not treat it as a page of this site.
  headers.add("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'");
  if (!verdict.is_text)
    headers.add("Content-Disposition", "attachment; filename*=UTF-8''" + percent_encode(file_name(path)));
  answer.tag = '"' + verdict.hash.hex() + '"';
  answer.source = std::make_unique<FileBody>(visit.store, *entry, verdict.size);
  return answer;
}

}  // namespace playfs::http
