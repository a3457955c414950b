#include "mount.h"

#include <unistd.h>

#include "base/fd.h"
#include "model/content_hash.h"
#include "wire/json.h"

namespace playfs::fuzz {

namespace {

Json file(const std::string& text, const char* mode = nullptr) {
  JsonObject entry{{"h", ContentHash::of(text).hex()}, {"s", std::uint64_t{text.size()}}, {"inline", text}};
  if (mode) entry.set("m", mode);
  return entry;
}

service::ServiceOptions service_options() {
  service::ServiceOptions options;
  options.site_hosts = {"play.test"};
  return options;
}

}  // namespace

uid_t Mount::owner() { return ::getuid(); }
gid_t Mount::group() { return ::getgid(); }

std::string Mount::create(const std::string& collection, JsonObject fields) {
  const HttpHeaders headers{{"Host", "play.test"}, {"Origin", "https://play.test"}};
  const HttpResponse response = service_.handle(
      {"POST", "/.site/data/" + collection, headers, wire::to_text(Json(std::move(fields)))}, {"192.0.2.1"});
  auto record = wire::decode_record(wire::parse_json(response.body).value_or(Json()));
  FUZZ_CHECK(response.status == 200 && record);
  return record->id;
}

Mount::Mount(bool of_project, Change change, int hurry)
    : patience_(hurry > 1 ? std::chrono::milliseconds(1000) : kLongest),
      clock_(hurry, {1'790'856'000'000'000'000}),
      service_(store_, accounts_, service_options()),
      executor_(hurry) {
  if (change)
    network_.on_reply([this, change = std::move(change)](const HttpRequest& request, Result<HttpResponse>& response) {
      std::lock_guard lock(changing_);
      if (response) change(request, response);
    });
  const std::string text = "text of a chunk\n";
  const std::string chunk = create("file_chunks", {{"hash", ContentHash::of(text).hex()}, {"content", text}});
  project_ = create("projects", {{"name", "p"}});
  auto publish = [&](Json::Array parents, JsonObject files) {
    return create("revisions", {{"project", project_},
                                {"parents", std::move(parents)},
                                {"agent", "stranger"},
                                {"message", "m"},
                                {"manifest", JsonObject{{"files", std::move(files)}}}});
  };
  const std::string first = publish({}, {{"README.md", file("one\ntwo\n")}});
  const Json chunked = JsonObject{
      {"h", ContentHash::of(text).hex()}, {"s", std::uint64_t{text.size()}}, {"c", Json::Array{Json(chunk)}}};
  revision_ = publish({Json(first)}, {{"README.md", file("one\ntwo\nthree\n")},
                                      {"d/a", file("A")},
                                      {"d/run", file("#!/bin/sh\n", "100755")},
                                      {"d/e/chunked", chunked},
                                      {"link", file("d/a", "120000")}});
  publish({Json(first)}, {{"README.md", file("zero\none\ntwo\n")}});
  create("threads", {{"title", "p"}, {"agent", "stranger"}, {"kind", "help"}});
  service_.handle({"PATCH",
                   "/.site/data/projects/" + project_,
                   {{"Host", "play.test"}},
                   wire::to_text(JsonObject{{"latest_revision", revision_}})},
                  {"192.0.2.1"});

  client_ = std::make_unique<remote::Client>(network_, executor_, clock_, own_random_, remote::ClientOptions{});
  auto objects = cache::ObjectStore::open(directory_ / "objects");
  auto records = cache::RecordIndex::open(directory_.path());
  FUZZ_CHECK(objects && records);
  objects_ = *std::move(objects);
  records_ = *std::move(records);
  events_ = std::make_unique<content::EventLog>(clock_);
  site_ = std::make_unique<content::Site>(*client_, *objects_, *records_, executor_, clock_, *events_,
                                          content::SiteOptions{});
  vfs::FileSystemOptions options;
  options.state_directory = directory_ / "state";
  options.mount_source = "local:test";
  options.agent = "tester";
  options.uid = owner();
  options.gid = group();
  if (of_project) options.project = ProjectId(project_);
  FUZZ_CHECK(make_private_directory(options.state_directory));
  fs_ = std::make_unique<vfs::MountFileSystem>(*site_, clock_, executor_, own_random_, options);
}

Mount::~Mount() {
  fs_.reset();
  site_.reset();
  client_.reset();
  executor_.stop();
  service_thread_.stop();  // a response is changed no more
  for (const auto& asked : asked_) {
    std::lock_guard lock(asked->mutex);
    FUZZ_CHECK(asked->replies == 1);
  }
}

}  // namespace playfs::fuzz
