#include "site.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "base/await.h"
#include "base/fd.h"
#include "net/curl_transport.h"
#include "runtime/local_transport.h"
#include "wire/json.h"

namespace playfs::conformance {

namespace {

constexpr const char* kBasePath = "/.site/data";
constexpr const char* kStewardKey = "the steward's key of this test";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

HttpHeaders bearer(const std::string& key) { return {{"Authorization", "Bearer " + key}}; }

[[noreturn]] void give_up(const std::string& why) {
  fprintf(stderr, "conformance: %s\n", why.c_str());
  std::exit(1);
}

template <class T>
T take(Result<T> result) {
  if (!result) give_up(result.error().message);
  return *std::move(result);
}

}  // namespace

const char* const kCollections[8] = {"agents",  "projects", "revisions",   "file_chunks",
                                     "threads", "messages", "domain_mail", "spaces"};

Json field(const Json& object, std::string_view name) {
  if (!object.object()) return {};
  if (const Json* found = object.object()->find(name)) return *found;
  const Json* data = object.object()->find("data");
  const Json* nested = data && data->object() ? data->object()->find(name) : nullptr;
  return nested ? *nested : Json();
}

std::string text_field(const Json& object, std::string_view name) {
  Json value = field(object, name);
  return value.string() ? *value.string() : std::string();
}

Json Response::member(std::string_view name) const {
  const Json* found = body.object() ? body.object()->find(name) : nullptr;
  return found ? *found : Json();
}

Json Response::record() const {
  Json wrapped = member("record");
  return wrapped.object() ? wrapped : body;
}

Site& Site::under_test() {
  static const std::unique_ptr<Site> site = [] {
    std::string url = environment("PLAYFS_CONFORMANCE_URL");
    if (url.empty()) return open_own(environment("PLAYFS_CONFORMANCE_ACCESS"));
    std::unique_ptr<Site> made(new Site());
    made->transport_ = take(net::CurlTransport::create(url, {}));
    if (std::string key = environment("PLAYFS_CONFORMANCE_KEY"); !key.empty()) made->key_ = key;
    return made;
  }();
  return *site;
}

std::unique_ptr<Site> Site::fresh() {
  if (!environment("PLAYFS_CONFORMANCE_URL").empty()) return nullptr;
  return open_own(environment("PLAYFS_CONFORMANCE_ACCESS"));
}

std::unique_ptr<Site> Site::open_own(const std::string& access) {
  std::unique_ptr<Site> site(new Site());
  site->directory_.emplace();
  if (access == "local") site->open_in_process();
  else site->start_server();
  return site;
}

void Site::open_in_process() {
  outbox_ = std::make_unique<service::Outbox>(*directory_ / "outbox");
  service::ServiceOptions options;
  options.limits = service::Limits::of_document();
  options.steward_key = kStewardKey;
  playground_ =
      take(runtime::LocalPlayground::open(directory_->path(), std::move(options), clock_, random_, outbox_.get()));
  transport_ = std::make_unique<runtime::LocalTransport>(playground_->service(), playground_->store().site_id(), pool_);
}

/// A store for a new server.
std::string Site::new_store() const {
  const std::string maker = environment("PLAYFS_CONFORMANCE_NEW_STORE");
  if (maker.empty()) return directory_->path();
  FILE* said = popen(maker.c_str(), "re");
  char line[512] = "";
  const bool is_said = said && fgets(line, sizeof line, said);
  if (!said || pclose(said) != 0 || !is_said) give_up(maker + " made no store");
  std::string store(line);
  store.erase(store.find_last_not_of('\n') + 1);
  return store;
}

/// Learns the server's address from its standard output.
void Site::start_server() {
  const std::string store = new_store(), home = directory_->path();
  std::string program = environment("PLAYFS"), key = *directory_ / "steward-key";
  if (program.empty()) give_up("PLAYFS names no binary to test");
  UniqueFd key_file(open(key.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!key_file || !write_all(key_file.get(), kStewardKey)) give_up("no key file");
  int said[2];
  if (pipe2(said, O_CLOEXEC) != 0) give_up("no pipe");
  UniqueFd reading(said[0]), writing(said[1]);
  server_ = fork();
  if (server_ < 0) give_up("no process");
  if (server_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(writing.get(), STDOUT_FILENO);
    UniqueFd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
    dup2(nothing.get(), STDERR_FILENO);
    setenv("XDG_DATA_HOME", home.c_str(), 1);
    const std::string log = environment("PLAYFS_CONFORMANCE_LOG");
    execl(program.c_str(), program.c_str(), "serve", "--listen", "127.0.0.1:0", "--store", store.c_str(),
          "--steward-key", key.c_str(), log.empty() ? nullptr : "--access-log", log.c_str(), nullptr);
    _exit(127);
  }
  writing = UniqueFd();
  std::string url;
  for (char c = 0; read(reading.get(), &c, 1) == 1 && c != '\n';) url += c;
  if (url.empty()) give_up(program + " serve did not start");
  transport_ = take(net::CurlTransport::create(url, {}));
}

Site::~Site() {
  transport_.reset();
  playground_.reset();
  if (server_ > 0) {
    kill(server_, SIGTERM);
    waitpid(server_, nullptr, 0);
  }
}

Response Site::send_to(const std::string& method, const std::string& target, std::string body, HttpHeaders headers) {
  HttpRequest request{method, target, {}, std::move(body)};
  if (method == "POST" && !headers.get("Origin")) headers.add("Origin", origin());
  if (!request.body.empty() && !headers.get("Content-Type")) headers.add("Content-Type", "application/json");
  for (const auto& [name, value] : headers)
    if (!value.empty()) request.headers.add(name, value);
  auto answered =
      await<HttpResponse>([&](auto done) { transport_->send(std::move(request), {}, {}, std::move(done)); });
  if (!answered) {
    ADD_FAILURE() << method << " " << target << ": " << answered.error().message;
    return {};
  }
  Response response{answered->status, answered->headers, answered->body, {}};
  if (auto json = wire::parse_json(response.text)) response.body = *std::move(json);
  return response;
}

Response Site::send(const std::string& method, const std::string& path, std::string body, HttpHeaders headers) {
  return send_to(method, kBasePath + path, std::move(body), std::move(headers));
}

Response Site::post(const std::string& collection, const Json& fields, HttpHeaders headers) {
  return send("POST", "/" + collection, wire::to_text(fields), std::move(headers));
}

Response Site::patch(const std::string& path, const Json& fields, HttpHeaders headers) {
  return send("PATCH", "/" + path, wire::to_text(fields), std::move(headers));
}

Response Site::account(const std::string& step, const Json& body) {
  return send_to("POST", "/api/auth/agent/" + step, wire::to_text(body), {});
}

Json Site::create(const std::string& collection, const Json& fields, HttpHeaders headers) {
  Response response = post(collection, fields, std::move(headers));
  EXPECT_EQ(response.status, 200) << "POST " << collection << ": " << response.text;
  Json record = response.record();
  EXPECT_FALSE(text_field(record, "id").empty()) << response.text;
  return record;
}

const Json& Site::sample(const std::string& collection) {
  auto found = samples_.find(collection);
  if (found == samples_.end())
    found = samples_.emplace(collection, create(collection, declared_fields(collection))).first;
  return found->second;
}

std::optional<HttpHeaders> Site::owner() {
  if (!key_ && is_own()) {
    std::string email = "owner@example.org";
    account("request-code", JsonObject{{"email", email}});
    key_ =
        text_field(account("verify-code", JsonObject{{"email", email}, {"code", mailed_code(email)}}).body, "apiKey");
  }
  if (!key_) return std::nullopt;
  return bearer(*key_);
}

std::optional<HttpHeaders> Site::steward() const {
  if (!is_own()) return std::nullopt;
  return bearer(kStewardKey);
}

std::string Site::mailed_code(const std::string& email) const {
  // A server of a database has its outbox below XDG_DATA_HOME.
  std::string mails = read_file(*directory_ / "outbox", 1 << 20).value_or("");
  if (mails.empty()) mails = read_file(*directory_ / "playfs/served/outbox", 1 << 20).value_or("");
  auto mail = mails.rfind("To: " + email + "\n");
  if (mail == std::string::npos) return {};
  auto begin = mails.find("code is ", mail) + 8;
  return mails.substr(begin, mails.find('\n', begin) - begin);
}

Json declared_fields(const std::string& collection) {
  if (collection == "agents") return JsonObject{{"handle", "ada"}, {"bio", "counts"}};
  if (collection == "projects") return JsonObject{{"name", "tower"}, {"latest_revision", "r1"}};
  if (collection == "revisions")
    return JsonObject{
        {"project", "p1"},
        {"parents", Json::Array{"r0"}},
        {"agent", "ada"},
        {"message", "begin"},
        {"manifest",
         JsonObject{
             {"files", JsonObject{{"a.txt", JsonObject{{"h", "h1"}, {"s", 5}, {"inline", "hello"}}},
                                  {"b/c.txt", JsonObject{{"h", "h2"}, {"s", 12000}, {"c", Json::Array{"c1"}}}}}}}},
        {"state", JsonObject{{"score", 3}}}};
  if (collection == "file_chunks")
    return JsonObject{{"rev", "r0"}, {"path", "b/c.txt"}, {"seq", 0}, {"hash", "h2"}, {"content", "text"}};
  if (collection == "threads") return JsonObject{{"title", "hello"}, {"agent", "ada"}, {"kind", "intro"}};
  if (collection == "messages")
    return JsonObject{
        {"thread", "t1"},        {"parent", ""}, {"agent", "ada"}, {"body", "hi"}, {"mentions", Json::Array{"bob"}},
        {"links", Json::Array{}}};
  if (collection == "domain_mail")
    return JsonObject{{"agent", "ada"}, {"kind", "idea"}, {"subject", "more"}, {"body", "of it"}};
  return JsonObject{{"name", "garden"}, {"layout", JsonObject{{"x", 1}}}};
}

std::string unique_text() {
  static SystemRandom random;
  return random.uuid();
}

void expect_error(const Response& response, int status, const std::string& code) {
  EXPECT_EQ(response.status, status) << response.text;
  EXPECT_EQ(text_field(response.body, "code"), code) << response.text;
  expect_refusal(response);
}

void expect_refusal(const Response& response) {
  EXPECT_GE(response.status, 400) << response.text;
  EXPECT_LT(response.status, 500) << response.text;
  for (const char* name : {"error", "code", "message"})
    EXPECT_FALSE(text_field(response.body, name).empty()) << name << " in " << response.text;
}

}  // namespace playfs::conformance
