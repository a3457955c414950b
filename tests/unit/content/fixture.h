// A Site over a service that the test controls: it adds records, can hold back responses, and can make the service
// unreachable. Everything runs on the test's thread, step by step, in run().
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/text.h"
#include "content/site.h"
#include "model/chunking.h"
#include "net/transport.h"
#include "remote/client.h"
#include "support/answer.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

using test::Answer;

/// A service of records and the transport to it, for one thread: a request is answered when the test says so, in the
/// order of its choice. Unlike ScriptedTransport, it knows the answers.
class FakeService final : public net::Transport {
 public:
  /// Adds a record, the newest of its collection, or replaces one in place.
  void put(const std::string& collection, const std::string& id, JsonObject fields) {
    auto& records = collections_[collection];
    auto found = std::find_if(records.begin(), records.end(), [&](const Record& record) { return record.id == id; });
    if (found == records.end()) {
      const std::string created = now();
      records.push_back({id, created, created, "active", std::move(fields)});
    } else {
      found->status = "active";
      found->fields = std::move(fields);
    }
  }
  /// Makes its version the newest of all.
  void touch(const std::string& collection, const std::string& id) {
    for (Record& record : collections_[collection])
      if (record.id == id) record.updated_at = now();
  }
  /// As the steward does.
  void hide(const std::string& collection, const std::string& id) {
    for (Record& record : collections_[collection])
      if (record.id == id) record = {id, record.created_at, now(), "hidden", {}};
  }
  void remove(const std::string& collection, const std::string& id) {
    std::erase_if(collections_[collection], [&](const Record& record) { return record.id == id; });
  }

  void hold() { held_ = true; }
  void release() { held_ = false; }
  bool away = false;  ///< no response ever comes
  bool etags = false;
  std::size_t breadth = 64;
  bool offers_events = false;
  /// Responses for a target, instead of its record.
  std::map<std::string, std::string> instead;

  /// Number of requests sent whose target contains `part`.
  [[nodiscard]] std::ptrdiff_t requests(const std::string& part = "") const {
    return std::count_if(targets_.begin(), targets_.end(),
                         [&](const std::string& target) { return target.find(part) != std::string::npos; });
  }
  [[nodiscard]] const std::vector<std::string>& targets() const { return targets_; }
  [[nodiscard]] std::size_t outstanding() const { return waiting_.size(); }
  void forget_requests() { targets_.clear(); }

  void send(HttpRequest request, net::Deadline, CancelToken, Callback<HttpResponse> done) override {
    targets_.push_back(request.target);
    waiting_.push_back({std::move(request), std::move(done)});
  }
  void stream(HttpRequest request, net::StreamLimits, CancelToken, net::StreamReceiver receiver) override {
    stream_targets.push_back(request.target);
    stream_.emplace(std::move(receiver));
    if (!stream_->begun({stream_status, {{"Content-Type", "text/event-stream"}}, ""})) lose_stream();
  }
  int stream_status = 200;
  std::vector<std::string> stream_targets;
  [[nodiscard]] bool has_stream() const { return stream_.has_value(); }
  void push(const std::string& events) {
    if (!stream_->piece(events)) lose_stream();
  }
  void lose_stream() {
    auto receiver = std::exchange(stream_, std::nullopt);
    receiver->ended(fail(ErrorCode::unreachable, "lost"));
  }
  [[nodiscard]] std::size_t width() const override { return breadth; }
  [[nodiscard]] const std::string& origin() const override { return origin_; }

  /// Answers the oldest request, unless responses are held back.
  bool answer_one() { return !held_ && answer_at(0); }
  /// Answers the outstanding request at `index`, held back or not.
  bool answer_at(std::size_t index) {
    if (index >= waiting_.size()) return false;
    auto [request, done] = std::move(waiting_[index]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
    done(away ? Result<HttpResponse>(fail(ErrorCode::unreachable, "nobody answers")) : answer(request));
    return true;
  }

  /// What the service says to it now.
  [[nodiscard]] HttpResponse answer(const HttpRequest& request) const {
    if (auto other = instead.find(request.target); other != instead.end()) return {200, {}, other->second};
    if (offers_events && request.target == "/.site/data") return {200, {}, R"({"events":"/.site/events"})"};
    const std::string base = "/.site/data/";
    std::string rest = request.target.substr(std::min(base.size(), request.target.size()));
    const auto query = rest.find('?');
    const std::string parameters = query == std::string::npos ? "" : rest.substr(query + 1);
    rest.resize(std::min(query, rest.size()));
    const auto slash = rest.find('/');
    auto collection = collections_.find(rest.substr(0, slash));
    if (slash == std::string::npos) return page(collection, parameters);
    const std::string id = percent_decode(rest.substr(slash + 1)).value_or("");
    if (collection != collections_.end())
      for (const Record& record : collection->second)
        if (record.id == id) return one(record, request);
    return {404, {}, R"({"error":"Not found","code":"not_found","message":"No such record"})"};
  }

 private:
  struct Waiting {
    HttpRequest request;
    Callback<HttpResponse> done;
  };

  std::string now() { return format_iso8601({1'700'000'000'000'000'000 + ++time_ * 1'000'000'000}); }

  HttpResponse one(const Record& record, const HttpRequest& request) const {
    HttpResponse response{200, {}, wire::to_text(JsonObject{{"record", wire::encode_record(record)}})};
    if (!etags) return response;
    const std::string tag = "\"" + ContentHash::of(response.body).hex() + "\"";
    response.headers.add("ETag", tag);
    if (request.headers.get("If-None-Match") == tag) return {304, response.headers, ""};
    return response;
  }

  HttpResponse page(std::map<std::string, std::vector<Record>>::const_iterator collection,
                    const std::string& parameters) const {
    static const std::vector<Record> none;
    const auto& records = collection == collections_.end() ? none : collection->second;
    auto number = [&](const std::string& name, std::size_t otherwise) {
      const auto at = parameters.find(name + "=");
      return at == std::string::npos ? otherwise : std::stoul(parameters.substr(at + name.size() + 1));
    };
    // The cursor is the number of records below the page, which stays valid while others are added.
    std::size_t below = number("cursor", records.size());
    Json::Array shown;
    for (std::size_t left = number("limit", 50); left > 0 && below > 0; --left)
      shown.push_back(wire::encode_record(records[--below]));
    JsonObject body{{"records", std::move(shown)}};
    body.append("nextCursor", below > 0 ? Json(std::to_string(below)) : Json());
    return {200, {}, wire::to_text(body)};
  }

  const std::string origin_ = "https://site.example";
  std::map<std::string, std::vector<Record>> collections_;  // oldest first
  std::int64_t time_ = 0;
  bool held_ = false;
  std::vector<std::string> targets_;
  std::deque<Waiting> waiting_;
  std::optional<net::StreamReceiver> stream_;
};

class SiteTest : public testing::Test {
 protected:
  SiteTest() { restart(); }

  /// Simulates a new process over the same cache directory.
  void restart(SiteOptions options = {}) {
    site_.reset();
    client_.reset();
    remote::ClientOptions client_options;
    client_options.retry.attempts = 1;
    client_ = std::make_unique<remote::Client>(service_, executor_, clock_, random_, client_options);
    objects_ = std::move(*cache::ObjectStore::open(directory_ / "objects"));
    records_ = std::move(*cache::RecordIndex::open(directory_.path(), record_options_));
    events_ = std::make_unique<EventLog>(clock_);
    site_ = std::make_unique<Site>(*client_, *objects_, *records_, executor_, clock_, *events_, options);
  }

  /// Runs tasks and answers requests until nothing is left to do now.
  void run() {
    do {
      executor_.run_due();
    } while (service_.answer_one());
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    run();
  }

  /// A file entry as a client would publish it, in chunks whose records it adds.
  JsonObject chunked(const std::string& content, const std::string& hash, const std::vector<std::string>& chunk_ids) {
    Json::Array ids;
    const std::size_t length = (content.size() + chunk_ids.size() - 1) / std::max<std::size_t>(chunk_ids.size(), 1);
    for (std::size_t i = 0; i < chunk_ids.size(); ++i) {
      service_.put("file_chunks", chunk_ids[i],
                   {{"content", content.substr(std::min(content.size(), i * length), length)}, {"hash", "opaque"}});
      ids.emplace_back(chunk_ids[i]);
    }
    return {{"h", hash}, {"s", content.size()}, {"c", std::move(ids)}};
  }
  void put_revision(const std::string& id, JsonObject files, JsonObject manifest_extra = {},
                    const std::string& project = "p") {
    JsonObject manifest{{"files", std::move(files)}};
    for (const auto& [name, value] : manifest_extra) manifest.set(name, value);
    service_.put("revisions", id,
                 {{"project", project},
                  {"parents", Json::Array()},
                  {"agent", "a"},
                  {"message", "m"},
                  {"manifest", std::move(manifest)},
                  {"unknown", 7}});
  }
  void put_project(const std::string& id, const std::string& latest) {
    service_.put("projects", id, {{"name", "name of " + id}, {"latest_revision", latest}});
  }

  RevisionTreePtr revision(const std::string& id) {
    Answer<RevisionTreePtr> answer;
    site_->revision(RevisionId(id), {}, answer.callback());
    run();
    EXPECT_TRUE(answer.ok()) << id;
    return answer.ok() ? *answer : nullptr;
  }
  FileRef file(const std::string& revision_id, const std::string& path) {
    auto tree = revision(revision_id);
    const FileEntry* entry = tree ? tree->tree.file_at(path) : nullptr;
    EXPECT_NE(entry, nullptr) << path;
    return {tree, path, entry};
  }
  Answer<Blob> fetch(const FileRef& of) {
    Answer<Blob> answer;
    site_->blob(of, {}, answer.callback());
    run();
    EXPECT_EQ(answer.calls(), 1);
    return answer;
  }
  /// The content, or the name of the error.
  std::string content(const FileRef& of) {
    auto blob = fetch(of);
    if (!blob.ok()) return "error: " + std::string(name_of(*blob.code()));
    auto bytes = blob->read(0, blob->size());
    return bytes ? *bytes : "error: " + std::string(name_of(bytes.error().code));
  }
  std::string object_file(const std::string& bytes) {
    const std::string hex = ContentHash::of(bytes).hex();
    return directory_ / "objects/" + hex.substr(0, 2) + "/" + hex.substr(2);
  }

  test::TemporaryDirectory directory_;
  cache::RecordIndexOptions record_options_;
  FakeService service_;
  test::ManualClock clock_;
  test::ManualExecutor executor_{clock_};
  SystemRandom random_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<cache::ObjectStore> objects_;
  std::unique_ptr<cache::RecordIndex> records_;
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<Site> site_;
};

inline std::string sha256(const std::string& bytes) { return ContentHash::of(bytes).hex(); }

}  // namespace playfs::content
