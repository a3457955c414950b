#include "remote/client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "model/content_hash.h"
#include "net/origin.h"
#include "remote/call_engine.h"
#include "remote/event_feed.h"
#include "wire/json.h"

namespace playfs::remote {

namespace {

constexpr std::size_t kMaxEtag = 256;

/// Whether the text can be a path segment. Percent-encoding leaves dots as they are, so ".." would climb the tree.
bool is_segment(std::string_view text) { return !text.empty() && text != "." && text != ".."; }

/// "/" and each part as a segment; empty if a part cannot be one.
std::string target_of(std::initializer_list<std::string_view> parts) {
  std::string target;
  for (auto part : parts) {
    if (!is_segment(part)) return {};
    target += '/' + percent_encode(part);
  }
  return target;
}

Result<Json> parse_body(const HttpResponse& response) { return wire::parse_answer(response.body); }

Result<Record> decode_record(const HttpResponse& response) {
  PLAYFS_TRY(Json json, parse_body(response));
  return wire::decode_record(json);
}

Result<Record> decode_record_of(const std::string& id, const HttpResponse& response) {
  PLAYFS_TRY(Record record, decode_record(response));
  if (record.id != id) return fail(ErrorCode::protocol, fmt::format("asked for record {}, got {}", id, record.id));
  return record;
}

/// The ETag, if it can be safely sent back in a header.
std::string etag_of(const HttpResponse& response) {
  std::string_view etag = response.headers.get("ETag").value_or("");
  bool plain = std::all_of(etag.begin(), etag.end(), [](char c) { return c > ' ' && c < 0x7F; });
  return plain && etag.size() <= kMaxEtag ? std::string(etag) : std::string();
}

/// A response callback that passes the result of `decode` to `done`.
template <class T, class Decode>
Callback<HttpResponse> decoded(Callback<T> done, Decode decode) {
  return [done = std::move(done), decode = std::move(decode)](Result<HttpResponse> response) mutable {
    if (response) done(decode(*response));
    else done(fail(std::move(response).error()));
  };
}

struct SendOptions {
  Repeat repeat = Repeat::never;
  bool judged = true;
  bool may_wait = true;
  std::string subject = {};  ///< empty: the request target
  bool is_path = false;      ///< the request target is a path of the host, not below the base path
  std::optional<std::string> as = {};
  Permit permit = {};
};

/// Never sends the key unencrypted.
Credentials usable_credentials(const CallEngine& engine) {
  const bool is_private = engine.origin().starts_with("https:") || net::is_loopback(engine.origin());
  return is_private ? engine.credentials() : Credentials();
}

void add_credentials(const Credentials& credentials, HttpHeaders& headers) {
  if (!credentials.api_key.empty() && !headers.get("Authorization"))
    headers.add("Authorization", "Bearer " + credentials.api_key);
}

constexpr std::size_t kFingerprint = 16;

std::string caller_of(const Credentials& credentials) {
  if (credentials.api_key.empty()) return {};
  if (!credentials.account.empty()) return "account " + credentials.account;
  return "key " + ContentHash::of("caller\n" + credentials.api_key).hex().substr(0, kFingerprint);
}

/// Adds the common headers and starts the request. With an empty target, the record cannot exist.
void send(CallEngine& engine, HttpRequest request, std::string bucket, SendOptions options, CancelToken cancel,
          Callback<HttpResponse> done) {
  auto call = std::make_shared<Call>();
  call->bucket = std::move(bucket);
  call->subject = options.subject.empty() ? request.target : std::move(options.subject);
  call->repeat = options.repeat;
  call->judged = options.judged;
  call->may_wait = options.may_wait;
  call->permit = std::move(options.permit);
  call->cancel = std::move(cancel);
  call->done = std::move(done);
  call->request = std::move(request);
  auto& headers = call->request.headers;
  auto add_missing = [&](const char* name, std::string value) {
    if (!headers.get(name)) headers.add(name, std::move(value));
  };
  if (call->request.target.empty()) {
    Error error{ErrorCode::not_found, "not a valid record id"};
    return engine.reject(call, std::move(error));
  }
  if (!options.is_path) call->request.target.insert(0, engine.options().base_path);
  add_missing("Accept", "application/json");
  if (!is_read(call->request)) {
    add_missing("Origin", engine.origin());
    add_missing("Content-Type", "application/json");
  }
  const Credentials credentials = usable_credentials(engine);
  const bool is_nobody = options.as && options.as->empty();
  if (options.as && !is_nobody && *options.as != caller_of(credentials)) {
    Error error{ErrorCode::unauthorized, "it was written as '" + *options.as + "', who is not signed in here now",
                "playfs login"};
    return engine.reject(call, std::move(error));
  }
  if (!is_nobody) add_credentials(credentials, headers);
  engine.start(std::move(call));
}

constexpr std::string_view kReads;  // the rate-limit bucket of all reads; writes have one per collection

void read(CallEngine& engine, std::string target, HttpHeaders headers, CancelToken cancel, Callback<HttpResponse> done,
          std::string subject = {}) {
  send(engine, {"GET", std::move(target), std::move(headers), {}}, std::string(kReads),
       {.repeat = Repeat::freely, .subject = std::move(subject)}, std::move(cancel), std::move(done));
}

void get_path(CallEngine& engine, std::string path, CancelToken cancel, Callback<HttpResponse> done) {
  send(engine, {"GET", std::move(path), {}, {}}, std::string(kReads), {.repeat = Repeat::freely, .is_path = true},
       std::move(cancel), std::move(done));
}

void patch(CallEngine& engine, std::string collection, std::string id, const Json& body, SendOptions options,
           CancelToken cancel, Callback<Record> done) {
  std::string target = target_of({collection, id});
  HttpHeaders headers{{"Idempotency-Key", engine.new_key()}};
  send(engine, {"PATCH", std::move(target), std::move(headers), wire::to_text(body)}, std::move(collection),
       std::move(options), std::move(cancel),
       decoded(std::move(done),
               [id = std::move(id)](const HttpResponse& response) { return decode_record_of(id, response); }));
}

}  // namespace

Client::Client(net::Transport& transport, Executor& executor, const Clock& clock, Random& random, ClientOptions options)
    : engine_(std::make_shared<CallEngine>(transport, executor, clock, random, std::move(options))) {}

Client::~Client() { engine_->close(); }

void Client::get_record(std::string collection, std::string id, CancelToken cancel, Callback<Record> done,
                        std::string subject) {
  std::string target = target_of({collection, id});
  read(*engine_, std::move(target), {}, std::move(cancel),
       decoded(std::move(done),
               [id = std::move(id)](const HttpResponse& response) { return decode_record_of(id, response); }),
       std::move(subject));
}

void Client::list_records(std::string collection, int limit, std::string cursor, CancelToken cancel,
                          Callback<wire::RecordPage> done) {
  std::string target = target_of({collection});
  if (!target.empty()) {
    target += fmt::format("?limit={}", std::clamp(limit, 1, kMostInPage));
    if (!cursor.empty()) target += "&cursor=" + percent_encode(cursor);
  }
  auto decode = [](const HttpResponse& response) -> Result<wire::RecordPage> {
    PLAYFS_TRY(Json json, parse_body(response));
    PLAYFS_TRY(wire::RecordPage page, wire::decode_page(json));
    // Callers bound the cost of a list in pages of at most this size.
    if (const std::size_t count = page.records.size() + page.unreadable; count > kMostInPage)
      return fail(ErrorCode::protocol, fmt::format("a page has {} records, more than {}", count, kMostInPage));
    return page;
  };
  read(*engine_, std::move(target), {}, std::move(cancel), decoded(std::move(done), decode));
}

void Client::get_project(ProjectId id, std::string etag, CancelToken cancel, Callback<Fetched<Project>> done) {
  HttpHeaders headers;
  if (!etag.empty()) headers.add("If-None-Match", etag);
  auto decode = [id, etag](const HttpResponse& response) -> Result<Fetched<Project>> {
    if (response.status == 304) return Fetched<Project>{std::nullopt, etag};
    PLAYFS_TRY(Record record, decode_record_of(id.text(), response));
    PLAYFS_TRY(Project project, wire::decode_project(std::move(record)));
    return Fetched<Project>{std::move(project), etag_of(response)};
  };
  read(*engine_, target_of({"projects", id.text()}), std::move(headers), std::move(cancel),
       decoded(std::move(done), std::move(decode)));
}

void Client::get_description(CancelToken cancel, Callback<JsonObject> done) {
  auto decode = [](const HttpResponse& response) -> Result<JsonObject> {
    PLAYFS_TRY(Json json, parse_body(response));
    if (JsonObject* fields = json.object()) return std::move(*fields);
    return fail(ErrorCode::protocol, "the site's description is not an object");
  };
  get_path(*engine_, engine_->options().base_path, std::move(cancel), decoded(std::move(done), decode));
}

void Client::get_key_holder(CancelToken cancel, Callback<KeyHolder> done) {
  auto decode = [](const HttpResponse& response) -> Result<KeyHolder> {
    PLAYFS_TRY(Json json, parse_body(response));
    const JsonObject* fields = json.object();
    const Json* email = fields ? fields->find("email") : nullptr;
    if (!fields) return fail(ErrorCode::protocol, "what the site says of the key is not an object");
    return KeyHolder{email && email->string() ? *email->string() : ""};
  };
  auto ask = [engine = engine_, cancel, decode, done = std::move(done)](Result<JsonObject> description) mutable {
    const bool says_nothing = !description && description.error().code == ErrorCode::not_found;
    if (!description && !says_nothing) return done(fail(std::move(description).error()));
    std::string path = says_nothing ? std::string() : path_of("key", *description, engine->origin());
    if (path.empty()) return done(fail(ErrorCode::not_supported, "the service does not tell whether a key is valid"));
    get_path(*engine, std::move(path), cancel, decoded(std::move(done), decode));
  };
  get_description(std::move(cancel), std::move(ask));
}

void Client::stream(std::string target, HttpHeaders headers, net::StreamLimits limits, CancelToken cancel,
                    net::StreamReceiver receiver) {
  add_credentials(usable_credentials(*engine_), headers);
  engine_->stream({"GET", std::move(target), std::move(headers), {}}, limits, std::move(cancel), std::move(receiver));
}

void Client::create_record(std::string collection, Json body, std::string idempotency_key, CancelToken cancel,
                           Callback<Record> done, std::optional<std::string> as, Permit permit) {
  HttpHeaders headers;
  Repeat repeat = idempotency_key.empty() ? Repeat::never : Repeat::freely;
  if (!idempotency_key.empty()) headers.add("Idempotency-Key", std::move(idempotency_key));
  std::string target = target_of({collection});
  send(*engine_, {"POST", std::move(target), std::move(headers), wire::to_text(body)}, std::move(collection),
       {.repeat = repeat, .as = std::move(as), .permit = std::move(permit)}, std::move(cancel),
       decoded(std::move(done), &decode_record));
}

void Client::patch_record(std::string collection, std::string id, Json body, CancelToken cancel, Callback<Record> done,
                          Permit permit) {
  patch(*engine_, std::move(collection), std::move(id), body,
        {.repeat = Repeat::if_not_done, .permit = std::move(permit)}, std::move(cancel), std::move(done));
}

void Client::patch_record_now(std::string collection, std::string id, Json body, CancelToken cancel,
                              Callback<Record> done) {
  patch(*engine_, std::move(collection), std::move(id), body, {.may_wait = false}, std::move(cancel), std::move(done));
}

void Client::raw(HttpRequest request, CancelToken cancel, Callback<HttpResponse> done) {
  std::string bucket(kReads);
  if (!is_read(request)) {
    std::string_view collection = request.target;
    if (collection.starts_with('/')) collection.remove_prefix(1);
    bucket = collection.substr(0, collection.find_first_of("/?"));
  }
  send(*engine_, std::move(request), std::move(bucket), {.judged = false, .may_wait = false}, std::move(cancel),
       std::move(done));
}

void Client::set_api_key(std::string key, std::string account) {
  engine_->set_credentials({std::move(key), std::move(account)});
}

std::string Client::caller() const { return caller_of(usable_credentials(*engine_)); }

void Client::ask_now() { engine_->ask_now(); }

Health Client::health() const { return engine_->health(); }

void Client::set_longest_read(std::chrono::seconds longest) { engine_->set_longest_read(longest); }
std::optional<Unanswered> Client::unanswered() const { return engine_->unanswered(); }

std::map<std::string, ObservedLimit> Client::limits() const { return engine_->limits(); }

std::size_t Client::width() const { return engine_->width(); }

const std::string& Client::origin() const { return engine_->origin(); }

const std::string& Client::site() const { return engine_->site(); }

}  // namespace playfs::remote
