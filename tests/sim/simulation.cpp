#include "sim/simulation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "sim/memory_store.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::sim {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kMostEvents = 15'000;
/// Writes for the merges and moves of head that come after the last commit: far above what any run needs, and a bound.
constexpr std::size_t kMostAfterwards = 60;
/// Writes that are refused for being too many: five clients find out, a few times each.
constexpr std::size_t kMostRefusals = 60;

std::string text_of_chunk(const std::string& fields) {
  return *wire::parse_json(fields)->object()->find("content")->string();
}

/// The log as the service has it: what a revision holds is worked out here without any of playfs's code for that.
class Log {
 public:
  explicit Log(MemoryStore& store) {
    for (const auto& stored : store.all("revisions")) {
      auto json = wire::parse_json(R"({"id":")" + stored.id + R"(","data":)" + stored.fields + "}");
      auto record = wire::decode_record(*json);
      auto revision = record ? wire::decode_revision(*record) : fail(record.error());
      if (!revision) continue;
      order.push_back(stored.id);
      revisions.emplace(stored.id, *std::move(revision));
    }
    for (const auto& message : store.all("messages")) messages += message.fields + "\n";
    for (const auto& chunk : store.all("file_chunks")) chunks[chunk.id] = text_of_chunk(chunk.fields);
  }

  /// A file's bytes, put together by nobody else's code; empty where there is no such file.
  std::optional<std::string> bytes(const std::string& revision, const std::string& path) {
    const auto& files = revisions.at(revision).manifest.files;
    auto entry = files.find(path);
    if (entry == files.end()) return std::nullopt;
    if (entry->second.inline_text) return entry->second.inline_text;
    std::string text;
    for (const auto& id : entry->second.chunks) text += chunks[id.text()];
    return text;
  }

  const std::set<std::string>& content(const std::string& id) {
    auto [known, is_new] = contents_.try_emplace(id);
    if (!is_new) return known->second;
    auto revision = revisions.find(id);
    if (revision == revisions.end()) return known->second;
    std::set<std::string> held;
    const Manifest& manifest = revision->second.manifest;
    if (!manifest.is_automatic) held.insert(manifest.tx.empty() ? id : manifest.tx);
    for (const auto& parent : revision->second.parents) held.merge(std::set<std::string>(content(parent.text())));
    return contents_[id] = std::move(held);
  }
  bool covers(const std::string& a, const std::string& b) {
    const auto &more = content(a), &less = content(b);
    return std::includes(more.begin(), more.end(), less.begin(), less.end());
  }
  [[nodiscard]] bool is_announced(const std::string& id) const { return messages.find(id) != std::string::npos; }

  std::vector<std::string> order;
  std::map<std::string, Revision> revisions;
  std::string messages;
  std::map<std::string, std::string> chunks;  ///< texts by id

 private:
  std::map<std::string, std::set<std::string>> contents_;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Fault fault)
      : world_(seed * 0x9e3779b97f4a7c15 + 1),
        clock_(world_),
        store_(clock_, world_.random),
        fault_(fault),
        service_(store_, accounts_, options()) {}

  ~Simulation() { world_.end(); }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Verdict run() {
    set_up();
    bool ended = world_.run(kMostEvents);
    if (!ended) wrong("it does not come to an end");
    std::size_t before = writes_;
    visit();
    if (writes_ - before > kMostAfterwards) wrong(fmt::format("{} writes after the last commit", writes_ - before));
    check();
    return std::move(verdict_);
  }

 private:
  service::ServiceOptions options() {
    service::ServiceOptions options;
    options.site_hosts = {"simulated"};
    if (world_.random.chance(0.1))
      options.limits = *service::Limits::parse(R"({"revisions":12,"projects":12,"file_chunks":20,"messages":6})");
    return options;
  }

  void set_up() {
    auto& random = world_.random;
    int clients = 2 + static_cast<int>(random.below(random.chance(0.2) ? 4 : 2));
    project_ = call("POST", "/projects", R"({"name":"p"})").id;
    JsonObject files{{"shared", inline_file("first\n")}};
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += fmt::format("line {}\n", i);
    files.set("shared", inline_file(lines));
    for (int i = 0; i < clients; ++i)
      files.set(fmt::format("victim-{}", i), inline_file(fmt::format("to be deleted by {}\n", i)));
    root_ = call("POST", "/revisions",
                 wire::to_text(JsonObject{{"project", project_},
                                          {"parents", Json::Array{}},
                                          {"agent", "stranger"},
                                          {"message", "first"},
                                          {"manifest", JsonObject{{"files", files}, {"tx", std::string(32, '0')}}}}))
                .id;
    move_head_blindly(root_);
    Weather weather;
    if (random.chance(0.7)) {
      double bad = random.chance(0.3) ? 0.15 : 0.04;
      weather = {bad, bad, bad, bad, bad, bad / 2};
    }
    for (int i = 0; i < clients; ++i) {
      Plan plan;
      plan.project = ProjectId(project_);
      plan.commits = 1 + static_cast<int>(random.below(3));
      plan.crash = random.chance(0.5) ? 0.01 + 0.03 * static_cast<double>(random.below(3)) : 0;
      plan.dies = plan.crash > 0 && random.chance(0.3);
      plan.keeps_cache = random.chance(0.7);
      plan.decoded = decoded_;
      plan.chunk_text = [this](const ChunkId& id) {
        return text_of_chunk(store_.get("file_chunks", id.text())->fields);
      };
      plan.skew = hours(static_cast<int>(random.below(49)) - 24);
      plan.weather = weather;
      plan.fault = fault_;
      clients_.push_back(std::make_unique<Client>(world_, service_, i, plan, carried(i)));
      world_.at(milliseconds(random.below(3000)), [client = clients_.back().get()] { client->start(); });
    }
    if (random.chance(0.3)) {
      for (std::uint64_t i = 0; i <= random.below(2); ++i)
        world_.at(milliseconds(random.below(15'000)), [this] { meddle(); });
    }
    if (random.chance(0.3)) forget_later();
  }

  /// A service keeps keys for longer than anything lingers on the way to it.
  void forget_later() {
    world_.at(minutes(12), [this] { store_.forget_keys(minutes(11)); });
  }

  /// Somebody who knows nothing of all this.
  void meddle() {
    auto& random = world_.random;
    const auto& all = store_.all("revisions");
    if (all.empty()) return;
    std::string some = all[random.below(all.size())].id;
    if (random.chance(0.3)) {
      set_back_ = true;
      return move_head_blindly(some);
    }
    auto record = call("GET", "/revisions/" + some, "");
    JsonObject manifest = *record.fields.find("manifest")->object();
    manifest.erase("tx");
    manifest.erase("auto");
    JsonObject files = *manifest.find("files")->object();
    files.set("strange-" + std::to_string(random.below(1000)), inline_file("by a stranger\n"));
    manifest.set("files", files);
    auto posted = call("POST", "/revisions",
                       wire::to_text(JsonObject{{"project", project_},
                                                {"parents", Json::Array{Json(some)}},
                                                {"agent", "stranger"},
                                                {"message", "blind"},
                                                {"manifest", manifest}}));
    set_back_ = true;
    move_head_blindly(posted.id);
  }

  static Json inline_file(const std::string& content) {
    return JsonObject{{"h", ContentHash::of(content).hex()}, {"s", std::uint64_t{content.size()}}, {"inline", content}};
  }

  HttpRequest request(const std::string& method, const std::string& path, const std::string& body) {
    HttpRequest request{method, "/.site/data" + path, {}, body};
    request.headers.add("Host", "simulated");
    request.headers.add("Origin", "local://simulated");
    if (!body.empty()) request.headers.add("Content-Type", "application/json");
    return request;
  }
  Record call(const std::string& method, const std::string& path, const std::string& body) {
    auto response = service_.handle(request(method, path, body), {"10.9.9.9"});
    auto json = wire::parse_json(response.body);
    auto record = json ? wire::decode_record(*json) : Result<Record>(fail(json.error()));
    if (!record) wrong("a stranger was answered: " + response.body);
    return record ? *record : Record{};
  }
  void move_head_blindly(const std::string& to) {
    call("PATCH", "/projects/" + project_, wire::to_text(JsonObject{{"latest_revision", to}}));
  }

  // What goes over the network.
  SimulatedTransport::Carried carried(int client) {
    return [this, client](const HttpRequest& request, const HttpResponse* response) {
      if (response && response->status == 200 && request.target.ends_with("/file_chunks")) {
        auto record = wire::decode_record(*wire::parse_json(response->body));
        uploaded_[{client, wire::to_text(*record->fields.find("content"))}].emplace(
            *request.headers.get("Idempotency-Key"));
      }
      if (response) {
        if (response->status == 200 && request.method != "GET") ++writes_;
        refusals_ += response->status == 429;
        return;
      }
      auto key = request.headers.get("Idempotency-Key");
      if (!key) return;
      auto [known, is_new] = bodies_.try_emplace(std::string(*key), request.body);
      if (!is_new && known->second != request.body) wrong("a key went with two bodies");
    };
  }

  void visit() {
    Plan plan;
    plan.project = ProjectId(project_);
    plan.decoded = decoded_;
    visitor_ = std::make_unique<Client>(world_, service_, 99, plan, carried(99));
    world_.start([this] {
      std::string head;
      for (int i = 0; i < 40; ++i) {
        auto standing = visitor_->visit();
        if (standing && standing->head.text() == head) {
          final_head_ = head;
          given_up_ = standing->given_up;
          return;
        }
        head = standing ? standing->head.text() : "";
        world_.sleep(minutes(20));
      }
    });
    world_.run(kMostEvents);
  }

  void check() {
    Log log(store_);
    for (const auto& [id, revision] : log.revisions) verdict_.merges += revision.manifest.is_automatic;
    verdict_.revisions = log.revisions.size();
    if (final_head_.empty()) return wrong("head does not settle");
    std::string head = wire::decode_project(call("GET", "/projects/" + project_, ""))->latest_revision.text();
    if (head != final_head_) return wrong("head is not where the last visitor saw it");

    // 1. Nothing is lost.
    std::map<std::string, std::vector<std::string>> of_tx;
    for (const auto& id : log.order) {
      const Manifest& manifest = log.revisions.at(id).manifest;
      if (manifest.tx.empty()) continue;
      of_tx[manifest.tx].push_back(id);
      if (log.covers(head, id)) continue;
      ++verdict_.branches;
      // Announced itself, or with a later one that holds it.
      bool is_said = std::any_of(log.order.begin(), log.order.end(), [&](const std::string& other) {
        return log.is_announced(other) && log.covers(other, id);
      });
      if (!is_said) wrong(fmt::format("revision {} is neither in head nor announced", id));
    }
    // 2. Nothing doubles.
    for (const auto& [tx, ids] : of_tx)
      if (ids.size() > 1) wrong(fmt::format("commit {} became {} revisions: {}", tx, ids.size(), fmt::join(ids, ", ")));
    // Twice under one key is a service that forgot the key.
    for (const auto& [text, keys] : uploaded_)
      if (keys.size() > 1) wrong("a client stored a chunk twice");
    // 3. Nothing reverts silently.
    for (const auto& client : clients_)
      for (const auto& move : client->moves)
        if (!move.from.empty() && !log.covers(move.to.text(), move.from.text()))
          wrong(fmt::format("head was moved from {} to {}, which does not hold it", move.from.text(), move.to.text()));
    // 4. It settles: besides head there are only branches that were announced, and strangers'.
    // Quotas are the service's to keep; clients rest when they are told to, rather than try on.
    if (refusals_ > kMostRefusals) wrong(fmt::format("{} writes were sent past the limits", refusals_));
    // 5. What was frozen is what is published.
    for (const auto& client : clients_) {
      verdict_.crashes += client->has_died;
      for (const auto& [tx, file] : client->brought) {
        auto posted = of_tx.find(tx);
        if (posted == of_tx.end()) continue;
        auto bytes = log.bytes(posted->second.front(), file.first);
        if (!bytes) wrong(fmt::format("{} is not in its own revision", file.first));
        else if (*bytes != file.second) wrong(fmt::format("{} has other bytes in its own revision", file.first));
        // Nobody else touches it.
        if (log.content(head).contains(tx) && log.bytes(head, file.first) != file.second)
          wrong(fmt::format("{} is in head's ancestry and not, as it was, in its files", file.first));
      }
      for (const auto& [tx, path] : client->deleted) {
        if (!log.content(head).contains(tx)) continue;
        if (log.revisions.at(head).manifest.files.contains(path))
          wrong(fmt::format("{} was deleted by {} and is in head", path, tx));
      }
      for (const auto& told : client->told) {
        if (told.outcome == publish::Outcome::nothing) continue;
        auto posted = of_tx.find(told.tx);
        if (posted == of_tx.end()) {
          wrong(fmt::format("commit {} was reported and is not in the log", told.tx));
          continue;
        }
        bool is_success = told.outcome == publish::Outcome::published || told.outcome == publish::Outcome::merged;
        if (is_success && !set_back_ && !log.covers(head, posted->second.front()) &&
            !was_overtaken(log, posted->second.front(), told.at))
          wrong(fmt::format("commit {} was reported as a success and is not in head", told.tx));
      }
    }
  }

  /// Whether a PATCH was under way when a success was reported, to a revision without it. Nothing can call that back;
  /// where the two do not merge, the other stands from then on and this one is announced, which is checked as for all.
  bool was_overtaken(Log& log, const std::string& revision, nanoseconds told_at) {
    return std::any_of(clients_.begin(), clients_.end(), [&](const auto& client) {
      return std::any_of(client->moves.begin(), client->moves.end(), [&](const Move& move) {
        return move.at <= told_at && told_at - move.at < minutes(7) && !log.covers(move.to.text(), revision);
      });
    });
  }

  void wrong(std::string what) {
    if (verdict_.wrong.size() < 5) verdict_.wrong.push_back(std::move(what));
  }

  World world_;
  SimulatedClock clock_;
  MemoryStore store_;
  NoAccounts accounts_;
  const Fault fault_;
  service::Service service_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::unique_ptr<Client> visitor_;
  const std::shared_ptr<std::map<RevisionId, RevisionTreePtr>> decoded_ =
      std::make_shared<std::map<RevisionId, RevisionTreePtr>>();
  std::string project_, root_, final_head_;
  bool given_up_ = false;
  bool set_back_ = false;  ///< a stranger moved head
  std::size_t writes_ = 0, refusals_ = 0;
  std::map<std::string, std::string> bodies_;
  std::map<std::pair<int, std::string>, std::set<std::string>> uploaded_;  ///< chunks: keys by client and text
  Verdict verdict_;
};

}  // namespace

Verdict simulate(std::uint64_t seed, Fault fault) { return Simulation(seed, fault).run(); }

}  // namespace playfs::sim
