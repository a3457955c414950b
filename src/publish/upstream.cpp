#include "publish/upstream.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/await.h"
#include "base/parallel.h"
#include "content/names.h"
#include "wire/json.h"

namespace playfs::publish {

namespace {

constexpr int kPageSize = 100;

class BlobBytes final : public ByteSource {
 public:
  explicit BlobBytes(content::Blob blob) : blob_(std::move(blob)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    return blob_.read(offset, size);
  }

 private:
  const content::Blob blob_;
};

Status tell(const ChunkId& id, const Result<Record>& record, const ChunkLookedFor& answered) {
  if (!record && record.error().code != ErrorCode::not_found) return fail(record.error());
  answered(id, record ? &*record : nullptr);
  return {};
}

/// The service must have kept the text unchanged, or the file could not be reassembled.
Status check_kept(const Record& record, const Json& sent) {
  const Json* kept = record.fields.find("content");
  if (kept && sent.object() && *kept != *sent.object()->find("content"))
    return fail(ErrorCode::corrupt, fmt::format("the service stored chunk {} with different content", record.id));
  return {};
}

}  // namespace

Status Upstream::look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered) {
  for (const auto& id : ids) PLAYFS_CHECK(tell(id, get("file_chunks", id.text()), answered));
  return {};
}

Status SiteUpstream::check_wanted() const {
  if (cancel_.cancelled()) return fail(ErrorCode::interrupted, "the wait was cancelled");
  return {};
}

Result<Project> SiteUpstream::project() {
  PLAYFS_TRY(auto head,
             await<content::Head>([&](auto done) { site_.refresh_head(project_, cancel_, std::move(done)); }));
  return std::move(head.project);
}

Result<Look> SiteUpstream::look() {
  // At the same time: head may be the older of the two responses, just as if it had been requested first.
  auto newest = std::make_shared<Answers<wire::RecordPage>>();
  site_.client().list_records("revisions", kPageSize, "", cancel_,
                              [newest](Result<wire::RecordPage> page) { newest->add(0, std::move(page)); });
  auto project = this->project();
  auto page = std::move(newest->take().front().result);
  if (!project) return fail(project.error().while_doing("read project " + project_.text()));
  if (!page) return fail(page.error().while_doing("read the newest revisions"));
  return Look{*std::move(project), *std::move(page)};
}

Result<wire::RecordPage> SiteUpstream::page(const std::string& collection, const std::string& cursor) {
  return await<wire::RecordPage>(
      [&](auto done) { site_.client().list_records(collection, kPageSize, cursor, cancel_, std::move(done)); });
}

Result<Record> SiteUpstream::get(const std::string& collection, const std::string& id) {
  return await<Record>([&](auto done) { site_.client().get_record(collection, id, cancel_, std::move(done)); });
}

Result<std::string> SiteUpstream::holder_of(const std::string& collection, const std::string& name) {
  PLAYFS_TRY(auto list, await<content::ListPtr>([&](auto done) { site_.list(collection, cancel_, std::move(done)); }));
  const content::Listed* holder = content::holder_of(*list, name);
  return holder ? holder->id : std::string();
}

bool SiteUpstream::may_carry(const std::string& collection, const std::string& id, const std::string& name) {
  const content::ListPtr list = site_.try_list(collection);
  return !list || std::none_of(list->begin(), list->end(),
                               [&](const content::Listed& each) { return each.id == id && each.name != name; });
}

Result<RevisionTreePtr> SiteUpstream::revision(const RevisionId& id) {
  auto revision = await<RevisionTreePtr>([&](auto done) { site_.revision(id, cancel_, std::move(done)); });
  if (!revision) return fail(revision.error().while_doing("read revision " + id.text()));
  return revision;
}

Result<Bytes> SiteUpstream::content(const RevisionTreePtr& near, const std::string& path, const FileEntry& entry) {
  // A FileRef's entry has to live as long as its revision. This one may belong to a merge, and a cancelled wait returns
  // before its request ends.
  struct Held {
    RevisionTreePtr near;
    FileEntry entry;
  };
  auto held = std::make_shared<const Held>(Held{near, entry});
  const FileRef file{RevisionTreePtr(held, held->near.get()), path, &held->entry};
  PLAYFS_TRY(auto blob, await<content::Blob>([&](auto done) { site_.blob(file, cancel_, std::move(done)); }));
  const std::uint64_t size = blob.size();
  return Bytes(std::make_shared<BlobBytes>(std::move(blob)), size);
}

Result<Record> SiteUpstream::create(const std::string& collection, const Json& body, const std::string& key) {
  return await<Record>(
      [&](auto done) { site_.client().create_record(collection, body, key, cancel_, std::move(done)); });
}

Status SiteUpstream::move_head(const RevisionId& to) {
  auto patched = await<Record>([&](auto done) {
    site_.client().patch_record_now("projects", project_.text(), JsonObject{{"latest_revision", to.text()}}, cancel_,
                                    std::move(done));
  });
  if (!patched) return fail(patched.error().while_doing("move head to " + to.text()));
  return {};
}

Status SiteUpstream::upload(const std::vector<Upload>& uploads, const Acknowledged& acknowledged) {
  std::vector<const Upload*> missing;
  for (const auto& upload : uploads)
    if (upload.chunk.empty()) missing.push_back(&upload);
  std::vector<Json> bodies(missing.size());  // of those in progress
  auto start = [&](std::size_t index, Callback<Record> done) {
    auto body = wire::parse_json(missing[index]->body);
    if (!body) return done(fail(body.error()));
    bodies[index] = *std::move(body);
    site_.client().create_record("file_chunks", bodies[index], missing[index]->key, cancel_, std::move(done));
  };
  auto take = [&](std::vector<Answers<Record>::Answer> batch) -> Status {
    std::vector<Upload> stored;
    std::optional<Error> failed;
    for (auto& [index, result] : batch) {
      Status kept = result ? check_kept(*result, bodies[index]) : Status(fail(result.error()));
      bodies[index] = Json();
      if (kept) {
        if (result->fields.find("content")) site_.learn("file_chunks", *result);
        const Upload& sent = *missing[index];
        stored.push_back({sent.number, sent.key, {}, sent.text_hash, sent.text_size, ChunkId(result->id), {}});
      } else if (!failed || is_transient(failed->code)) {
        failed = kept.error().while_doing("store a chunk");
      }
    }
    if (!stored.empty()) PLAYFS_CHECK(acknowledged(stored));
    if (failed) return fail(*std::move(failed));
    return {};
  };
  return run_parallel<Record>(missing.size(), parallel_, start, take);
}

Result<std::vector<FileChunk>> SiteUpstream::chunks(const std::vector<ChunkId>& ids) {
  std::vector<FileChunk> chunks(ids.size());
  auto start = [&](std::size_t index, Callback<Record> done) {
    site_.record("file_chunks", ids[index].text(), cancel_, std::move(done));
  };
  auto take = [&](std::vector<Answers<Record>::Answer> batch) -> Status {
    Status all;
    for (auto& [index, result] : batch) {
      auto chunk = result ? wire::decode_chunk(*std::move(result)) : Result<FileChunk>(fail(result.error()));
      if (chunk) chunks[index] = *std::move(chunk);
      else all = fail(std::move(chunk).error());
    }
    return all;
  };
  PLAYFS_CHECK(run_parallel<Record>(ids.size(), parallel_, start, take));
  return chunks;
}

Status SiteUpstream::look_for_chunks(const std::vector<ChunkId>& ids, const ChunkLookedFor& answered) {
  auto start = [&](std::size_t index, Callback<Record> done) {
    site_.client().get_record("file_chunks", ids[index].text(), cancel_, std::move(done));
  };
  auto take = [&](std::vector<Answers<Record>::Answer> batch) -> Status {
    Status all;
    for (auto& [index, result] : batch)
      if (Status told = tell(ids[index], result, answered); !told) all = std::move(told);
    return all;
  };
  return run_parallel<Record>(ids.size(), parallel_, start, take);
}

}  // namespace playfs::publish
