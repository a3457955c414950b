#include "content/site.h"

#include "content/blobs.h"
#include "content/chunks.h"
#include "content/heads.h"
#include "content/lists.h"
#include "content/news.h"
#include "content/prefetch.h"
#include "content/records.h"
#include "content/revisions.h"
#include "content/site_context.h"
#include "model/instructions.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

namespace {
/// More are a hostile service's, and nobody wrote them here.
constexpr std::size_t kMostInstructions = 1000;

/// The collection of notes, by content.
std::string instructions_of(const std::string& agent) { return "instructions by " + agent; }
}  // namespace

struct Site::Parts {
  SiteContext context;
  Chunks chunks{context};
  Blobs blobs{context, chunks};
  Turns turns{context.client};
  Revisions revisions{context, blobs, turns};
  Lists lists{context};
  Heads heads{context, revisions, lists};
  Prefetch prefetch{context, blobs};
  Records records{context, turns};
  News news{context, revisions, lists, heads, records};
};

Site::Site(remote::Client& client, cache::ObjectStore& objects, cache::RecordIndex& records, Executor& executor,
           const Clock& clock, EventLog& events, SiteOptions options)
    : parts_(new Parts{SiteContext{client, objects, records, executor, clock, events, options, client.site(),
                                   OutageWatch(client.site(), clock, events)}}) {
  parts_->heads.on_changed([this](const ProjectId&, const RevisionTreePtr&) { parts_->revisions.forget_absent(); });
  parts_->lists.on_changed([this](const std::string& collection, const ListChange&) {
    if (collection == "revisions") parts_->revisions.forget_absent();
  });
}

Site::~Site() {
  // Admits no more callbacks and cancels requests, whose responses find the gate closed. Then waiters are answered.
  parts_->context.gate->close();
  parts_->news.close();
  parts_->turns.close();
  parts_->heads.close();
  parts_->blobs.close();
  parts_->chunks.close();
  parts_->revisions.close();
  parts_->lists.close();
  parts_->records.close();
}

void Site::use_events(Random& random) { parts_->news.use(random); }

void Site::on_record_changed(std::function<void(const std::string&, const std::string&, const std::string&)> changed) {
  parts_->news.on_record_changed(std::move(changed));
}

remote::EventStream::State Site::events_state() const { return parts_->news.state(); }

RevisionTreePtr Site::try_revision(const RevisionId& id) { return parts_->revisions.known(id); }

RevisionAtOnce Site::revision_at_once(const RevisionId& id) { return parts_->revisions.known_at_once(id); }

void Site::revision(const RevisionId& id, CancelToken cancel, Callback<RevisionTreePtr> done, const ProjectId& of) {
  parts_->news.begin();
  parts_->revisions.get(id, of, cancel, std::move(done));
}

bool Site::was_absent(const RevisionId& id) { return parts_->revisions.was_absent(id); }
bool Site::was_absent_lately(const RevisionId& id) { return parts_->revisions.was_absent_lately(id); }

std::optional<Head> Site::try_head(const ProjectId& id) { return parts_->heads.known(id); }

std::optional<SeenHead> Site::newest_seen_head(const ProjectId& id) { return parts_->heads.newest_seen(id); }

bool Site::is_fresh(const Head& head) const { return parts_->heads.is_fresh(head); }

void Site::head(const ProjectId& id, CancelToken cancel, Callback<Head> done) {
  parts_->news.begin();
  parts_->heads.get(id, cancel, std::move(done));
}

void Site::refresh_head(const ProjectId& id, CancelToken cancel, Callback<Head> done) {
  parts_->news.begin();
  parts_->heads.refresh(id, cancel, std::move(done));
}

void Site::follow(const ProjectId& id) {
  parts_->news.begin();
  parts_->heads.follow(id);
}

void Site::on_head_changed(std::function<void(const ProjectId&, const RevisionTreePtr&)> changed) {
  parts_->heads.on_changed(std::move(changed));
}

void Site::on_head_seen(std::function<void(const ProjectId&)> seen) { parts_->heads.on_seen(std::move(seen)); }

void Site::shown_head(const ProjectId& id, CancelToken cancel, Callback<Head> done) {
  parts_->news.begin();
  parts_->heads.show(id, cancel, std::move(done));
}

bool Site::is_current(const ProjectId& id) { return parts_->heads.is_current(id); }
bool Site::is_told(const ProjectId& id) { return parts_->heads.is_told(id); }

Patience& Site::patience() { return parts_->context.patience; }

std::optional<Blob> Site::try_blob(const FileRef& file) { return parts_->blobs.known(file); }

void Site::blob(const FileRef& file, CancelToken cancel, Callback<Blob> done) {
  parts_->blobs.get(file, Urgency::demand, cancel, std::move(done));
}

std::optional<std::uint64_t> Site::size_of(const FileRef& file) { return parts_->blobs.size_of(file); }

std::uint64_t Site::bytes_arrived() const { return parts_->chunks.bytes_arrived(); }

void Site::prefetch(const RevisionTreePtr& revision) { parts_->prefetch.start(revision); }

void Site::list(const std::string& collection, CancelToken cancel, Callback<ListPtr> done) {
  parts_->news.begin();
  parts_->lists.get(collection, cancel, std::move(done));
}

ListPtr Site::try_list(const std::string& collection) { return parts_->lists.known(collection); }

ListPtr Site::try_list_of(const std::string& collection, const std::string& owner) {
  return parts_->lists.of(collection, owner);
}

ListPtr Site::try_list_of_as_read(const std::string& collection, const std::string& owner) {
  return parts_->lists.of_as_read(collection, owner);
}

void Site::update_list(const std::string& collection, CancelToken cancel, Callback<void> done) {
  parts_->news.begin();
  parts_->lists.update(collection, cancel, std::move(done));
}

bool Site::is_list_whole(const std::string& collection) { return parts_->lists.is_whole(collection); }

bool Site::is_list_fresh(const std::string& collection) { return parts_->lists.is_fresh(collection); }

bool Site::is_list_told(const std::string& collection) { return parts_->lists.is_told(collection); }

bool Site::is_list_lacking(const std::string& collection) { return parts_->lists.is_lacking(collection); }

void Site::follow_list(const std::string& collection) {
  parts_->news.begin();
  parts_->lists.follow(collection);
}

void Site::names_were_shown(const std::string& collection) { parts_->lists.names_were_shown(collection); }

void Site::on_list_changed(std::function<void(const std::string&, const ListChange&)> changed) {
  parts_->lists.on_changed(std::move(changed));
}

void Site::record(const std::string& collection, const std::string& id, CancelToken cancel, Callback<Record> done) {
  record_text(collection, id, std::move(cancel), [done = std::move(done)](Result<RecordTextPtr> text) mutable {
    if (!text) return done(fail(std::move(text).error()));
    auto record = SiteContext::read((*text)->json, (*text)->id);
    if (record) done(std::move(*record));
    else done(fail(ErrorCode::protocol, "the record is not readable"));
  });
}

void Site::record_text(const std::string& collection, const std::string& id, CancelToken cancel,
                       Callback<RecordTextPtr> done) {
  parts_->news.begin();
  parts_->records.get(collection, id, cancel, std::move(done));
}

bool Site::is_record_told(const std::string& collection, const std::string& id) {
  return parts_->records.is_told(collection, id);
}

std::optional<Record> Site::try_record(const std::string& collection, const std::string& id) {
  return parts_->records.known(collection, id);
}

PartAtOnce Site::part_of(const RecordText& text, Reduce reduce, Reads reads) {
  return parts_->records.part_of(text, reduce, reads);
}

PartAtOnce Site::known_part(const std::string& collection, const std::string& id, Reduce reduce, Reads reads) {
  return parts_->records.known_part(collection, id, reduce, reads);
}

std::optional<std::string> Site::read_text(const Text& text, std::uint64_t offset, std::size_t size) {
  return parts_->records.read(text, offset, size);
}

RecordText Site::learn(const std::string& collection, const Record& record) {
  // These are immutable: a response with another record's id must not change what is known of that record.
  const bool is_fixed = collection == "revisions" || collection == "file_chunks";
  std::string json;
  if (!is_fixed || !try_record(collection, record.id)) json = parts_->context.store(collection, record);
  else json = wire::to_text(wire::encode_record(record));
  parts_->lists.created(collection, record);
  if (collection == "revisions") parts_->revisions.forget_absent();
  return {collection, record.id, std::move(json)};
}

void Site::relearn(const std::string& collection, const Record& record) {
  parts_->context.store(collection, record);
  parts_->lists.seen(collection, record);
}

void Site::note_instructions(const std::string& agent, const std::vector<ContentHash>& contents) {
  SiteContext& context = parts_->context;
  for (const ContentHash& content : contents) {
    if (context.records.record(context.site, instructions_of(agent), content.hex())) continue;
    context.records.store_record(context.site, instructions_of(agent), content.hex(), {{}, {}, context.clock.wall()});
  }
}

std::set<std::string> Site::own_instructions(const std::string& agent, const Manifest& manifest) {
  SiteContext& context = parts_->context;
  std::set<std::string> own;
  const auto all = instructions_in(manifest);
  if (all.size() > kMostInstructions) return own;
  for (const std::string& path : all) {
    const auto content = instructions_identity(*manifest.file_at(path));
    if (content && context.records.record(context.site, instructions_of(agent), content->hex())) own.insert(path);
  }
  return own;
}

void Site::keep(const std::string& owner, const RevisionId& id) {
  parts_->context.records.pin(owner, parts_->context.site, "revisions", id.text());
}

std::optional<Error> Site::cache_trouble() const {
  auto trouble = parts_->context.objects.trouble();
  return trouble ? trouble : parts_->context.records.trouble();
}

remote::Client& Site::client() { return parts_->context.client; }

EventLog& Site::events() { return parts_->context.events; }

}  // namespace playfs::content
