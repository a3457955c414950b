#include "whole/simulation.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "whole/client.h"
#include "whole/disk.h"
#include "whole/memory_store.h"
#include "whole/replicas.h"
#include "whole/user.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::sim {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kMostEvents = 40'000;
/// Writes for merges and moves of head after the last commit: a bound far above what any run needs.
constexpr std::size_t kMostAfterwards = 60;
/// Rate-limited writes: each of five clients runs into the limit a few times.
constexpr std::size_t kMostRefusals = 100;
/// Records per page if the service has short pages; pages that a scan may read again; pages that a process has not
/// saved when it is killed.
constexpr std::size_t kShortPage = 4, kOverlap = 3, kUnsaved = 8;
/// Readings of one record by one process: the scan's, and one after each burst of the two minutes after it.
constexpr std::size_t kMostReadings = 5;

/// The longest pause of a process between a response and its next request.
constexpr seconds kLongestPause{20};

class Simulation {
 public:
  Simulation(std::uint64_t seed, const Nature& nature)
      : world_(seed * 0x9e3779b97f4a7c15 + 1),
        clock_(world_),
        store_(clock_, world_.random),
        nature_(nature),
        service_(store_, accounts_, options()) {
    world_.is_traced = nature.is_traced;
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  Verdict run() {
    set_up();
    auto all_done = [&] {
      return std::all_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->is_done(); });
    };
    if (!world_.run(all_done, kMostEvents) || !all_done()) wrong("it does not come to an end");
    world_.say("all are done, after ", world_.events(), " events");
    weather_ = {};
    replicas_.catch_up();
    wait_for_what_is_late();
    settle();
    std::size_t before = writes_;
    for (const auto& project : projects_)
      if (verdict_.wrong.empty()) visit(project);
    if (writes_ - before > kMostAfterwards) wrong(fmt::format("{} writes after the last commit", writes_ - before));
    for (const auto& client : clients_) client->close();
    auto all_closed = [&] {
      return std::all_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->is_closed(); });
    };
    if (!world_.run(all_closed, kMostEvents) || !all_closed()) {
      wrong("a process does not end");
      return std::move(verdict_);
    }
    check();
    return std::move(verdict_);
  }

 private:
  service::ServiceOptions options() {
    service::ServiceOptions options;
    options.site_hosts = {"simulated"};
    is_limited_ = world_.random.chance(0.1);
    if (is_limited_)
      options.limits = *service::Limits::parse(R"({"revisions":12,"projects":12,"file_chunks":20,"messages":6})");
    return options;
  }

  /// How much happens in a run. Most faults show in small runs, of which there can be many.
  struct Scope {
    int clients = 2, projects = 1;
    std::uint64_t commits = 1;
    int crashes = 0, edits = 1, edits_before = 1, helpers = 0;
    bool is_crowded = false, has_visitor = true;
  };
  Scope some_scope() {
    auto& random = world_.random;
    auto up_to = [&](std::uint64_t most) { return 1 + static_cast<int>(random.below(most)); };
    if (random.chance(0.98)) {
      const bool is_alone = random.chance(0.8), is_crowded = random.chance(0.07);
      return {.clients = is_alone ? 1 : 1 + up_to(random.chance(0.2) ? 2 : 1),
              .commits = random.chance(0.2) ? 2U : 1U,
              .crashes = is_crowded ? 4 : static_cast<int>(random.below(is_alone ? 3 : 2)),
              .edits = up_to(6),
              .edits_before = up_to(3),
              .helpers = is_alone || random.chance(0.2) ? up_to(4) : 0,
              .is_crowded = is_crowded,
              .has_visitor = random.chance(0.1)};
    }
    return {.clients = 1 + up_to(random.chance(0.2) ? 4 : 2),
            .projects = random.chance(0.2) ? 2 : 1,
            .commits = 3,
            .crashes = 6,
            .edits = 60,
            .edits_before = 5,
            .helpers = 0,
            .is_crowded = random.chance(0.1),
            .has_visitor = true};
  }

  void set_up() {
    auto& random = world_.random;
    scope_ = some_scope();
    const Scope& scope = scope_;
    const int clients = scope.clients, projects = scope.projects;
    ignores_ = random.chance(0.15);
    has_state_ = random.chance(0.1);
    for (int i = 0; i < projects; ++i) begin_project(clients);
    has_short_pages_ = random.chance(scope.is_crowded ? 0.8 : 0.1);
    if (scope.is_crowded) crowd(random.below(3));
    if (random.chance(0.7)) {
      double bad = random.chance(0.3) ? 0.15 : 0.04;
      weather_ = {bad, bad, bad, bad, bad, bad / 2, random.chance(0.3) ? 0.5 : 0};
    }
    goes_back_ = random.chance(0.1);
    lags_ = random.chance(0.1);
    if (lags_) replicas_.lag();
    world_.switching = random.chance(0.2) ? 0 : random.chance(0.5) ? 0.005 : 0.04;
    auto cache = Cache::open(home_ + "/cache");
    bool is_eager = random.chance(0.5);
    for (int i = 0; i < clients; ++i) {
      Plan plan;
      plan.project = ProjectId(projects_[static_cast<std::size_t>(i % projects)]);
      plan.number = i;
      plan.commits = 1 + static_cast<int>(random.below(scope.commits));
      plan.crashes = scope.crashes;
      plan.edits = scope.edits;
      plan.edits_before = scope.edits_before;
      plan.crash = random.chance(scope.is_crowded ? 0.9 : 0.5) ? 0.01 + 0.03 * static_cast<double>(random.below(3)) : 0;
      plan.dies = plan.crash > 0 && random.chance(0.3);
      plan.forgets = plan.crash > 0 && random.chance(0.4);
      if (random.chance(0.1)) {  // chance alone hardly ever cuts the power there
        static const std::array<std::string, 6> kWrites{"frozen", "frozen", "posting", "posted", "settling", "thawing"};
        plan.killed_at = kWrites[random.below(kWrites.size())];
        plan.forgets = plan.forgets || random.chance(0.8);
      }
      if (random.chance(0.08)) {
        plan.sync_errors = 0.1;
        plan.forgets = true;
      }
      plan.keeps_cache = random.chance(0.7) || goes_back_;  // a mount pins the record of its base
      plan.skew = hours(static_cast<int>(random.below(49)) - 24);
      plan.is_eager = is_eager;
      plan.writes_on = random.chance(0.9);
      watchers_.push_back(std::make_unique<Road>(*this, i));
      clients_.push_back(std::make_unique<Client>(world_, service_, weather_, *watchers_.back(), plan,
                                                  fmt::format("{}/{}", home_, i), cache));
      world_.at(milliseconds(random.below(3000)), [client = clients_.back().get()] { client->start(); });
    }
    if (goes_back_) {
      auto from = milliseconds(random.below(15'000)), to = from + milliseconds(random.below(20'000));
      world_.at(from, [this, wait = to - from, late = late_] {
        world_.at(wait, [this, backup = store_.backup(), late]() mutable { go_back(std::move(backup)); });
      });
    }
    for (int i = 0; i < scope.helpers; ++i)
      world_.at(milliseconds(random.below(i == 0 ? 5000 : random.chance(0.3) ? 60'000 : 15'000)), [this] { help(); });
    if (random.chance(0.1)) {
      for (std::uint64_t i = 0; i <= random.below(2); ++i)
        world_.at(milliseconds(random.below(15'000)), [this, late = late_] { meddle(); });
    }
    // A service keeps keys for longer than anything lingers in the network.
    if (random.chance(0.3)) world_.at(minutes(12), [this] { store_.forget_keys(minutes(11)); });
    visitor_cache_ = cache;
  }

  void begin_project(int clients) {
    std::string project = call("POST", "/projects", R"({"name":"p"})").id;
    JsonObject files{{"shared", inline_file(first_lines())}, {"d/x", inline_file("x\n")}};
    files.set(kVictimOfNeighbours, inline_file("to be deleted by a neighbour\n"));
    for (int i = 0; i < clients; ++i)
      files.set(fmt::format("victim-{}", i), inline_file(fmt::format("to be deleted by {}\n", i)));
    if (ignores_) files.set(".gitignore", inline_file(kRules));
    std::string tx = std::string(31, '0') + std::to_string(projects_.size());
    JsonObject first{{"project", project},
                     {"parents", Json::Array{}},
                     {"agent", "stranger"},
                     {"message", "first"},
                     {"manifest", JsonObject{{"files", files}, {"tx", tx}}}};
    if (has_state_) first.set("state", JsonObject{{"all", ""}});
    auto root = call("POST", "/revisions", wire::to_text(first));
    projects_.push_back(project);
    move_head_blindly(project, root.id);
  }

  /// Others publish unrelated records in the same log, more than a page of them.
  void crowd(std::uint64_t times) {
    std::string project = "1m3vrsr4032sqc03crwd";
    for (int i = 0; i < 110; ++i) {
      service::NewRecord record;
      record.collection = "revisions";
      record.contents.fields = wire::to_text(
          JsonObject{{"project", project}, {"parents", Json::Array{}}, {"agent", "crowd"}, {"manifest", JsonObject{}}});
      record.contents.belongs_to = project;
      static_cast<void>(store_.insert(record));
    }
    if (times > 0) world_.at(seconds(world_.random.below(20)), [this, times] { crowd(times - 1); });
  }

  /// Foreign clients post changed versions of what they read, with those of our fields that they do not know, or
  /// without.
  void forget_ours(JsonObject& manifest) {
    if (world_.random.chance(0.4)) return;
    manifest.erase("tx");
    manifest.erase("auto");
  }

  /// A foreign client that knows nothing of the protocol.
  void meddle() {
    auto& random = world_.random;
    const auto& all = store_.all("revisions");
    if (all.empty()) return;
    std::string some = all[random.below(all.size())].id;
    auto record = call("GET", "/revisions/" + some, "");
    std::string project = *record.fields.find("project")->string();
    if (std::find(projects_.begin(), projects_.end(), project) == projects_.end()) return;
    set_back_ = true;
    if (random.chance(0.3)) return move_head_blindly(project, some);
    JsonObject manifest = *record.fields.find("manifest")->object();
    forget_ours(manifest);
    JsonObject files = *manifest.find("files")->object();
    files.set("strange-" + std::to_string(random.below(1'000'000'000)), inline_file("by a stranger\n"));
    manifest.set("files", files);
    auto posted = call("POST", "/revisions",
                       wire::to_text(JsonObject{{"project", project},
                                                {"parents", Json::Array{Json(some)}},
                                                {"agent", "stranger"},
                                                {"message", "blind"},
                                                {"manifest", manifest}}));
    move_head_blindly(project, posted.id);
  }

  /// A foreign client that follows the protocol, in one step.
  void help() {
    auto& random = world_.random;
    const std::string& project = projects_.front();
    std::string head = head_of("/projects/" + project);
    // A late PATCH may have sent it to what the service has lost.
    if (head.empty() || !store_.get("revisions", head)) return;
    const Record before = call("GET", "/revisions/" + head, "");
    JsonObject manifest = *before.fields.find("manifest")->object();
    forget_ours(manifest);
    JsonObject files = *manifest.find("files")->object();
    const bool stays_beside = ignores_ && random.chance(0.5);  // and does not merge with what others do there
    if (stays_beside) files.set("notes", inline_file(std::to_string(random.below(1000)) + " beside head\n"));
    static const std::array<std::string, 5> kPaths{"notes", "d/x", "d/y", "d", "lists/shared"};
    const std::string& path = kPaths[random.below(kPaths.size())];
    const Json* shared = files.find("shared");
    const Json* text = shared ? shared->object()->find("inline") : nullptr;
    if (text && random.chance(0.5)) {
      std::string changed = *text->string();
      if (std::size_t lines = changed.size() / 13; lines > 0)
        changed.replace(13 * random.below(lines), 12, fmt::format("{:.<12}", neighbours_.next(9)));
      auto gone = tokens_in(*text->string());
      std::erase_if(gone, [&](const auto& token) { return changed.find(token) != std::string::npos; });
      neighbours_.give_up(gone);
      files.set("shared", inline_file(changed));
    } else if (ignores_ && (stays_beside || random.chance(0.5))) {
      publish_ignored(files);
    } else if (random.chance(0.2)) {
      files.erase(kVictimOfNeighbours);
    } else if (files.find(path) && random.chance(0.3)) {
      files.erase(path);
    } else {
      for (const auto& other : {"d", "d/x", "d/y"})
        if (path.starts_with("d") && other != path && (other == std::string("d") || path == "d")) files.erase(other);
      files.set(path, inline_file(std::to_string(random.below(1000)) + " by a neighbour\n"));
    }
    manifest.set("files", files);
    JsonObject help{{"project", project},
                    {"parents", Json::Array{Json(head)}},
                    {"agent", "neighbour"},
                    {"message", "help"},
                    {"manifest", manifest}};
    if (const Json* state = before.fields.find("state")) help.set("state", changed_state(*state));
    auto posted = call("POST", "/revisions", wire::to_text(help));
    if (stays_beside) return;
    helped_.insert(posted.id);
    move_head_blindly(project, posted.id);
  }

  Json changed_state(const Json& before) {
    auto& random = world_.random;
    if (!before.object() || random.chance(0.5)) return before;
    JsonObject state = *before.object();
    const std::string key = random.chance(0.5) ? "all" : "of-neighbours";
    if (const Json* value = state.find(key)) {
      auto gone = tokens_in(wire::to_text(*value));
      neighbours_.give_up(gone);
    }
    state.set(key, neighbours_.next(9));
    return state;
  }

  /// Neighbours publish what is ignored here.
  void publish_ignored(JsonObject& files) {
    auto& random = world_.random;
    if (random.chance(0.5)) {
      const std::string name = fmt::format("brought-{}", brought_.size()), content = name + " by a neighbour\n";
      const std::string path = random.chance(0.5) ? "kept/" + name : "lists/" + name + ".log";
      files.set(path, inline_file(content));
      brought_[path] = content;
      return;
    }
    const std::string path = kIgnored[random.below(kIgnored.size())];
    if (files.find(path) && random.chance(0.3)) files.erase(path);
    else files.set(path, inline_file(std::to_string(random.below(1000)) + " by a neighbour\n"));
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
    if (method != "GET") world_.say("stranger ", method, " ", path, " -> ", response.body.substr(0, 100));
    auto record = json ? wire::decode_record(*json) : Result<Record>(fail(json.error()));
    if (!record) wrong("a stranger was answered: " + response.body);
    return record ? *record : Record{};
  }
  void move_head_blindly(const std::string& project, const std::string& to) {
    call("PATCH", "/projects/" + project, wire::to_text(JsonObject{{"latest_revision", to}}));
  }

  /// Of the project that a request is about.
  std::string head_of(const std::string& target) {
    auto id = target.substr(target.rfind('/') + 1);
    auto record = store_.get("projects", id.substr(0, id.find('?')));
    auto json = record ? wire::parse_json(record->fields) : Result<Json>(fail(record.error()));
    const Json* head = json && json->object() ? json->object()->find("latest_revision") : nullptr;
    return head && head->string() ? *head->string() : "";
  }

  /// When head was written.
  std::int64_t head_moved_at(const std::string& target) {
    auto id = target.substr(target.rfind('/') + 1);
    auto record = store_.get("projects", id.substr(0, id.find('?')));
    return record ? record->updated_at.nanoseconds : 0;
  }
  [[nodiscard]] nanoseconds time_of(WallTime time) const {
    return nanoseconds(time.nanoseconds - clock_.wall().nanoseconds) + world_.now();
  }

  /// Watches what goes over the network between one client and the service.
  class Road final : public Watcher {
   public:
    Road(Simulation& owner, int client) : owner_(owner), client_(client) {}
    std::shared_ptr<void> departs(const HttpRequest& request) override {
      return request.method == "GET" ? nullptr : owner_.late_;
    }
    void sends(HttpRequest& request) override {
      auto key = request.headers.get("Idempotency-Key");
      if (request.method == "PATCH" && request.target.find("/projects/") != std::string::npos) {
        auto body = wire::parse_json(request.body);
        if (auto* to = body && body->object() ? body->object()->find("latest_revision") : nullptr)
          moves.push_back({seen_since_look_, RevisionId(*to->string()), owner_.world_.now(), last_seen_at_});
      }
      if (request.method == "GET" && request.target.find("/revisions?") != std::string::npos &&
          request.target.find("cursor") == std::string::npos)
        seen_since_look_ = {last_seen_};
      auto limit = request.target.find("/revisions?limit=");
      if (limit != std::string::npos && owner_.has_short_pages_)
        request.target.replace(request.target.find("limit=100"), 9, fmt::format("limit={}", kShortPage));
      if (!key) return;
      if (planted == Fault::key_after_sending && request.target.ends_with("/revisions"))
        request.headers.set("Idempotency-Key", owner_.world_.random.uuid());
      auto [known, is_new] = owner_.bodies_.try_emplace(std::string(*key), request.body);
      if (!is_new && known->second != request.body) owner_.wrong("a key went with two bodies");
      searches += request.target.ends_with("/revisions");
    }
    void arrives(const HttpRequest& request) override {
      shown_to_ = owner_.replicas_.shown_to(request);
      owner_.store_.show(shown_to_);
    }
    void carried(const HttpRequest& request, HttpResponse& response) override {
      if (is_of_head(request)) {
        response.headers.set(kHead, owner_.head_of(request.target));
        response.headers.set(kMoved, std::to_string(owner_.head_moved_at(request.target)));
        const nanoseconds now = owner_.world_.now();
        response.headers.set(kTime, std::to_string((shown_to_ ? owner_.time_of(*shown_to_) : now).count()));
      }
      owner_.store_.show(std::nullopt);
      if (response.status == 200 && request.target.ends_with("/file_chunks")) {
        auto record = wire::decode_record(*wire::parse_json(response.body));
        owner_.uploaded_[{client_, wire::to_text(*record->fields.find("content"))}].emplace(
            *request.headers.get("Idempotency-Key"));
      }
      if (request.method != "GET")
        owner_.world_.say("client", client_, " ", request.method, " ", request.target, " -> ", response.status, " ",
                          response.body.substr(0, 100));
      if (response.status == 200 && request.method != "GET") ++owner_.writes_;
      owner_.refusals_ += response.status == 429;
    }
    void receives(const HttpRequest& request, HttpResponse& response) override {
      if (planted != Fault::none) spoil(request, response);
      if (response.status == 200 && request.target.find("/revisions?") != std::string::npos)
        count_page(request.target, response.body);
      // Also if the response says that head is unchanged, but not if the response was cut off.
      auto head = response.headers.get(kHead);
      const bool is_whole = response.status == 304 || (response.status == 200 && wire::parse_json(response.body));
      if (head && !head->empty() && is_whole && !is_behind(response)) seen_since_look_.insert(last_seen_ = *head);
      if (auto time = response.headers.get(kTime)) last_seen_at_ = nanoseconds(std::stoll(std::string(*time)));
    }
    std::vector<Move> moves;
    /// Pages of the log that a process read for the first or second time, beyond those that each scan may read again.
    std::size_t pages = 0;
    std::size_t most_readings = 0;  ///< of one record on such pages, by one process
    std::size_t searches = 0;       ///< maximum: what was sent and not answered is searched for from its base on

   private:
    /// 0 for a visitor.
    [[nodiscard]] int crashes_so_far() const {
      const auto number = static_cast<std::size_t>(client_);
      return number < owner_.clients_.size() ? owner_.clients_[number]->crashes : 0;
    }
    /// This process has seen a later head, so a lagging replica says nothing about where head is.
    bool is_behind(const HttpResponse& response) {
      if (const int crashes = crashes_so_far(); std::exchange(crashes_, crashes) != crashes) last_moved_ = 0;
      const std::int64_t moved = std::stoll(std::string(*response.headers.get(kMoved)));
      if (moved < last_moved_ && !owner_.goes_back_) return true;
      last_moved_ = moved;
      return false;
    }
    void count_page(const std::string& target, std::string_view body) {
      if (target == last_page_) return;  // a retry
      in_this_look_ = target.find("cursor=") == std::string::npos ? 0 : in_this_look_ + 1;
      last_page_ = target;
      if (in_this_look_ <= kOverlap) return;
      if (const int crashes = crashes_so_far(); std::exchange(crashes_of_readings_, crashes) != crashes)
        readings_.clear();
      constexpr std::string_view kId = R"({"id":")";
      bool is_first_or_second = false;
      for (auto at = body.find(kId); at != std::string_view::npos; at = body.find(kId, at + 1)) {
        const std::size_t from = at + kId.size();
        const std::size_t reading = ++readings_[std::string(body.substr(from, body.find('"', from) - from))];
        is_first_or_second = is_first_or_second || reading <= 2;
        most_readings = std::max(most_readings, reading);
      }
      pages += is_first_or_second;
    }
    static constexpr const char *kHead = "Simulated-Head", *kMoved = "Simulated-Moved", *kTime = "Simulated-Time";
    static bool is_of_head(const HttpRequest& request) {
      return request.method == "GET" && request.target.find("/projects/") != std::string::npos;
    }
    /// As if a cache were trusted.
    void hide_loss(const HttpRequest& request, HttpResponse& response) {
      constexpr std::string_view kOne = "/revisions/";
      const std::size_t at = request.target.find(kOne);
      if (request.method != "GET" || at == std::string::npos) return;
      const std::string id = request.target.substr(at + kOne.size());
      if (response.status == 200) was_there_[id] = response;
      if (response.status != 404) return;
      if (auto known = was_there_.find(id); known != was_there_.end()) response = known->second;
    }
    void spoil(const HttpRequest& request, HttpResponse& response) {
      if (planted == Fault::loss_not_seen) hide_loss(request, response);
      bool is_head = request.target.find("/projects/") != std::string::npos;
      bool is_log = request.target.find("/revisions?") != std::string::npos;
      if (request.method != "GET" || response.status != 200) return;
      if (planted == Fault::stale_log && (is_head || is_log)) {
        auto [known, is_new] = seen_.try_emplace(request.target, response);
        if (!is_new) response = known->second;
      }
      if (planted == Fault::no_verify && is_head && !moves.empty()) {
        constexpr std::string_view kName = R"("latest_revision":")";
        const std::size_t at = response.body.find(kName), from = at + kName.size();
        if (at != std::string::npos)
          response.body.replace(from, response.body.find('"', from) - from, moves.back().to.text());
      }
      if (planted == Fault::scan_cut_short && is_log) {
        auto json = wire::parse_json(response.body);
        if (!json || !json->object()) return;
        JsonObject object = *json->object();
        auto* records = object.find("records") ? object.find("records")->array() : nullptr;
        if (!records) return;
        Json::Array first(records->begin(), records->begin() + std::min<std::ptrdiff_t>(1, std::ssize(*records)));
        object.set("records", std::move(first));
        object.erase("nextCursor");
        object.erase("next_cursor");
        response.body = wire::to_text(object);
      }
    }

    std::map<std::string, HttpResponse> seen_, was_there_;
    Simulation& owner_;
    const int client_;
    std::string last_seen_, last_page_;
    std::size_t in_this_look_ = 0;
    nanoseconds last_seen_at_{};
    std::int64_t last_moved_ = 0;
    int crashes_ = 0, crashes_of_readings_ = 0;
    std::map<std::string, std::size_t> readings_;  ///< by this process, by record
    std::optional<WallTime> shown_to_;             ///< by the replica that answers now
    std::set<std::string> seen_since_look_;        ///< and the head before that
  };

  /// Waits for events to come and requests under way, while a client is there to react to them.
  void wait_for_what_is_late() {
    auto nothing_is = [&] { return late_.use_count() == 1; };
    if (!world_.run(nothing_is, kMostEvents)) wrong("what is late does not arrive");
    world_.say("nothing is late any more");
  }

  /// Everything that was begun ends once nothing is in its way.
  void settle() {
    const nanoseconds limit = world_.now() + hours(3);
    auto busy = [&]() -> Client* {
      for (const auto& client : clients_) {
        if (!client->process()) continue;
        auto queue = client->process()->publisher().queue();
        if (!queue || !queue->empty()) return client.get();
      }
      return nullptr;
    };
    for (nanoseconds next = world_.now(); busy() && next < limit; next += seconds(1))
      if (!world_.run([&] { return world_.now() >= next; }, kMostEvents)) return wrong("it does not come to rest");
    if (Client* client = busy()) {
      auto progress = client->process()->publisher().progress();
      wrong(fmt::format("{} publishes for ever: {}", client->agent(),
                        progress.last_error ? progress.last_error->message : "no error"));
    }
  }

  void note_left_out(Process& process) {
    for (const RevisionId& id : process.publisher().left_out()) left_out_.insert(id.text());
  }

  /// A participant that joins when all others are done, and polls until nothing changes any more.
  void visit(const std::string& project) {
    Process::Parts parts{.world = world_,
                         .service = service_,
                         .watcher = visitor_road_,
                         .weather = weather_,
                         .address = "10.0.0.100",
                         .directory = home_ + "/visitor-" + project,
                         .project = ProjectId(project),
                         .cache = visitor_cache_,
                         .agent = "visitor",
                         .skew = {},
                         .boot = 0,
                         .probe = {},
                         .housekeeping = {}};
    bool is_done = false;
    auto look = [&](Process& process) {
      std::string head;
      for (int i = 0; i < 40 && final_heads_[project].empty(); ++i) {
        process.publisher().reconcile();
        world_.sleep(is_limited_ ? minutes(20) : minutes(3));
        auto now = call("GET", "/projects/" + project, "");
        std::string latest = wire::decode_project(now)->latest_revision.text();
        if (latest == head) final_heads_[project] = head;
        head = latest;
      }
      note_left_out(process);
      for (const auto& client : clients_)
        if (client->plan().project.text() == project)
          client->look_at_process([&](Process& each) { note_left_out(each); });
    };
    // A remaining client, or a new one that knows nothing yet.
    auto there = std::find_if(clients_.begin(), clients_.end(), [&](const auto& client) {
      return client->process() && client->plan().project.text() == project;
    });
    if (scope_.has_visitor || there == clients_.end()) make_home(parts.directory);
    else looked_[project] = (*there)->plan().number;
    world_.at(nanoseconds(0), [&] {
      if (scope_.has_visitor || there == clients_.end()) {
        Process process(parts);
        if (Status opened = process.open(); opened) look(process);
        else wrong("the visitor cannot look: " + opened.error().message);
      } else {
        look(*(*there)->process());
      }
      is_done = true;
    });
    if (!world_.run([&] { return is_done; }, kMostEvents) || !is_done) wrong("the visitor does not come to an end");
  }

  /// Including what the service has lost.
  Log log_of_all() {
    auto all = [this](const std::string& collection) {
      auto records = lost_[collection];
      const auto& there = store_.all(collection);
      records.insert(records.end(), there.begin(), there.end());
      return records;
    };
    Log log(all("revisions"), all("file_chunks"), all("messages"));
    for (const auto& record : lost_["revisions"]) log.lost.insert(record.id);
    log.lost_heads = lost_heads_;
    return log;
  }

  /// The service is restored from a backup. What is in a work tree then has to be kept.
  void go_back(MemoryStore::Backup backup) {
    const Log log = log_of_all();
    for (const auto& client : clients_)
      client->look_at_process([&](Process& process) { client->ledger.in_tree = tokens_in_tree(process.stage(), log); });
    for (const auto& [collection, records] : store_.backup().records) {
      const auto& kept = backup.records[collection];
      for (const auto& record : records) {
        auto is_it = [&](const auto& each) { return each.id == record.id; };
        if (std::none_of(kept.begin(), kept.end(), is_it)) lost_[collection].push_back(record);
      }
    }
    world_.say("the service goes back: ", lost_["revisions"].size(), " revisions are lost");
    std::set<std::string> heads;
    for (const auto& project : projects_) heads.insert(head_of("/projects/" + project));
    store_.go_back_to(std::move(backup));
    for (const auto& record : lost_["revisions"])
      if (heads.contains(record.id)) lost_heads_.insert(record.id);
    went_back_at_ = world_.now();
    for (const auto& project : projects_) heads_then_.insert(head_of("/projects/" + project));
  }

  void check() {
    Log log = log_of_all();
    for (const auto& [id, revision] : log.revisions) verdict_.merges += revision.manifest.is_automatic;
    verdict_.revisions = log.revisions.size();
    for (const auto& project : projects_)
      if (final_heads_[project].empty()) return wrong("head does not settle");

    // The client that sent head to a lost revision knows what it contained, and where head belongs.
    for (const auto& [project, client] : looked_) {
      const auto& moves = watchers_[static_cast<std::size_t>(client)]->moves;
      auto is_there = [&, head = final_heads_[project]](const Move& move) { return move.to.text() == head; };
      if (log.lost.contains(final_heads_[project]) && std::any_of(moves.begin(), moves.end(), is_there))
        wrong(fmt::format("head stays at {}, which the service has lost", final_heads_[project]));
    }

    // 1. Nothing published is lost.
    std::map<std::string, std::vector<std::string>> of_tx, of_message;
    for (const auto& id : log.order) {
      if (log.lost.contains(id)) continue;
      const Manifest& manifest = log.revisions.at(id).manifest;
      if (manifest.tx.empty()) continue;
      const std::string& head = final_heads_[log.revisions.at(id).project.text()];
      of_tx[manifest.tx].push_back(id);
      if (log.messages[id].starts_with("message of ")) of_message[log.messages[id]].push_back(id);
      if (log.covers(head, id)) continue;
      ++verdict_.branches;
      if (!is_said(log, id)) wrong(fmt::format("revision {} is neither in head nor announced", id));
    }
    // Nor what neighbours published.
    for (const auto& id : helped_) {
      if (set_back_ || goes_back_ || log.covers(final_heads_[projects_.front()], id)) continue;
      auto holds_it = [&](const std::string& left_out) { return log.covers(left_out, id); };
      if (!is_said(log, id) && std::none_of(left_out_.begin(), left_out_.end(), holds_it))
        wrong(fmt::format("revision {} of a neighbour is neither in head nor said to be left out", id));
    }
    // 2. Nothing is stored twice.
    auto is_doubled = [&](const std::vector<std::string>& ids) {
      if (ids.size() > 1 && goes_back_) ++verdict_.waivers["a late request met a service that had forgotten its key"];
      return ids.size() > 1 && !goes_back_;
    };
    for (const auto& [tx, ids] : of_tx)
      if (is_doubled(ids))
        wrong(fmt::format("commit {} became {} revisions: {}", tx, ids.size(), fmt::join(ids, ", ")));
    for (const auto& [message, ids] : of_message)
      if (is_doubled(ids)) wrong(fmt::format("{} became {} revisions: {}", message, ids.size(), fmt::join(ids, ", ")));
    // Twice under one key: the service forgot the key. Also, a commit that was returned to the stage may have sent it
    // before. A chunk that is not shown is uploaded again at once: that costs a write, and waiting could take two
    // minutes.
    for (const auto& [text, keys] : uploaded_) {
      const auto& begun = clients_[static_cast<std::size_t>(text.first)]->begun;
      auto is_missing = [&](const std::string& message) { return !of_message.contains(message); };
      if (!goes_back_ && !lags_ &&
          keys.size() > 1 + static_cast<std::size_t>(std::count_if(begun.begin(), begun.end(), is_missing)))
        wrong("a client stored a chunk twice");
    }
    // 3. Nothing is silently reverted.
    for (const auto& watcher : watchers_) {
      for (const auto& move : watcher->moves) {
        auto is_held = [&](const std::string& head) {
          return log.lost.contains(head) || log.covers(move.to.text(), head);
        };
        if (std::none_of(move.seen.begin(), move.seen.end(), is_held))
          wrong(fmt::format("head was moved to {}, which does not hold where it was seen: {}", move.to.text(),
                            fmt::join(move.seen, ", ")));
      }
    }
    // 4. The service enforces quotas; clients back off when told to, rather than retry.
    if (refusals_ > kMostRefusals) wrong(fmt::format("{} writes were sent past the limits", refusals_));
    // A log is read once, resuming where it stopped, once more when reads have caught up, as all of it is that new
    // here, and once more for requests that may have been posted. What several bursts bring within two minutes, a
    // process may read again after each: at most a quarter of the log in these worlds. A failed disk loses the
    // position.
    const std::size_t all = store_.all("revisions").size() / (has_short_pages_ ? kShortPage : 100) + 1;
    for (std::size_t i = 0; i < clients_.size() && !goes_back_ && !lags_; ++i) {
      const std::size_t pages = watchers_[i]->pages;
      const std::size_t searches = watchers_[i]->searches, readings = watchers_[i]->most_readings;
      const auto crashes = static_cast<std::size_t>(clients_[i]->crashes),
                 failed_disks = static_cast<std::size_t>(clients_[i]->failed_disks);
      if (pages > all * (2 + searches + failed_disks) + all / 4 + kUnsaved * crashes)
        wrong(fmt::format("{} read {} pages of a log of {}", clients_[i]->agent(), pages, all));
      if (readings > kMostReadings + searches)
        wrong(fmt::format("a process of {} read a record {} times", clients_[i]->agent(), readings));
    }
    // 5. What users were told is true.
    for (const auto& client : clients_) {
      verdict_.crashes += static_cast<std::size_t>(client->crashes);
      verdict_.power_cuts += static_cast<std::size_t>(client->power_cuts);
      if (!client->cannot_open.empty()) wrong(client->agent() + " cannot open its work tree: " + client->cannot_open);
      for (const auto& path : client->undecided)
        wrong(fmt::format("{} published {}, which was in conflict, unasked", client->agent(), path));
      for (const auto& told : client->told) check_told(log, told, of_message);
      for (const auto& message : client->unresolved) check_markers(log, message, client->ledger.renamed_at, of_message);
    }
    // 6. What was written is there.
    check_history(clients_, brought_, log, verdict_);
    for (const auto& [project, head] : final_heads_) check_head(log, head);
    for (const auto& client : clients_) check_writes(*client, log, verdict_);
    // What was not on disk at a power cut may be as before, including others' lines.
    bool is_told = !set_back_ && !goes_back_;
    std::set<std::string> removed = neighbours_.removed;
    for (const auto& client : clients_) {
      is_told = is_told && client->power_cuts == 0 && !client->ledger.has_raced;
      removed.insert(client->ledger.removed.begin(), client->ledger.removed.end());
    }
    if (is_told) check_lines(removed, log, verdict_);
  }

  /// Announced itself, or together with a later one that contains it.
  static bool is_said(Log& log, const std::string& revision) {
    return std::any_of(log.order.begin(), log.order.end(), [&](const std::string& other) {
      return log.is_announced(other) && log.covers(other, revision);
    });
  }

  void check_told(Log& log, const Told& told, const std::map<std::string, std::vector<std::string>>& of_message) {
    auto posted = of_message.find(told.message);
    bool is_there = posted != of_message.end();
    if (!told.outcome || *told.outcome == publish::Outcome::cancelled || *told.outcome == publish::Outcome::nothing) {
      if (is_there) wrong(told.message + ": it was said not to be published, and is in the log");
      return;
    }
    auto is_before_it = [&] {
      if (!went_back_at_ || told.at > *went_back_at_ + minutes(1)) return false;
      return std::none_of(heads_then_.begin(), heads_then_.end(),
                          [&](const std::string& head) { return log.covers(head, told.revision.text()); });
    };
    if (!is_there && log.lost.contains(told.revision.text())) {
      ++verdict_.waivers["the service went back to before it"];
      return;
    }
    if (!is_there) return wrong(told.message + ": it was reported and is not in the log");
    bool is_success = *told.outcome == publish::Outcome::published || *told.outcome == publish::Outcome::merged;
    const std::string& id = posted->second.front();
    if (is_success) check_chunks(log, told);
    if (!is_success || log.covers(final_heads_[log.revisions.at(id).project.text()], id)) return;
    // Then it is announced, which is checked for all.
    if (is_before_it()) ++verdict_.waivers["the service went back to before it"];
    else if (set_back_) ++verdict_.waivers["a stranger moved head"];
    else if (was_overtaken(log, posted->second.front(), told.at)) ++verdict_.waivers["it was overtaken by a PATCH"];
    else wrong(told.message + ": it was reported as a success and is not in head");
  }

  /// What a revision reported as published brought can be read. If it carries along content of another whose chunks
  /// were lost before it was posted, the author of the other publishes that again.
  void check_chunks(const Log& log, const Told& told) {
    auto revision = log.revisions.find(told.revision.text());
    if (revision == log.revisions.end() || log.lost.contains(revision->first)) return;
    for (const auto& path : hollow_files(revision->second)) {
      const auto& chunks = revision->second.manifest.files.at(path).chunks;
      const auto& parents = revision->second.parents;
      bool is_carried = std::any_of(parents.begin(), parents.end(), [&](const RevisionId& id) {
        auto parent = log.revisions.find(id.text());
        if (parent == log.revisions.end()) return false;
        auto there = parent->second.manifest.files.find(path);
        return there != parent->second.manifest.files.end() && there->second.chunks == chunks;
      });
      if (!is_carried)
        wrong(fmt::format("{}: {} of {} has a chunk that is not there", told.message, path, told.revision.text()));
    }
  }

  /// So in the end all of head can be read, unless the author never came back.
  void check_head(const Log& log, const std::string& head) {
    auto revision = log.revisions.find(head);
    if (revision == log.revisions.end() || log.lost.contains(head)) return;
    auto hollow = hollow_files(revision->second);
    if (hollow.empty()) return;
    bool is_anybody_dead =
        std::any_of(clients_.begin(), clients_.end(), [](const auto& client) { return client->has_died; });
    // Under way while the service went back: revisions based on what was lost, including merges, or a copy of it.
    std::set<std::string> lost;
    for (const auto& id : log.lost)
      if (auto there = log.revisions.find(id); there != log.revisions.end()) lost.insert(there->second.manifest.tx);
    bool came_late = std::any_of(log.order.begin(), log.order.end(), [&](const std::string& id) {
      const Revision& late = log.revisions.at(id);
      if (log.lost.contains(id)) return false;
      const bool is_copy = !late.manifest.is_automatic && !late.manifest.tx.empty() && lost.contains(late.manifest.tx);
      return is_copy || std::any_of(late.parents.begin(), late.parents.end(),
                                    [&](const RevisionId& parent) { return log.lost.contains(parent.text()); });
    });
    if (is_anybody_dead) ++verdict_.waivers["chunks were lost whose author is dead"];
    else if (came_late) ++verdict_.waivers["chunks were lost right before what names them was stored"];
    else wrong(fmt::format("{} of {}, which is head, has a chunk that is not there", *hollow.begin(), head));
  }

  std::set<std::string> hollow_files(const Revision& revision) {
    std::set<std::string> paths;
    for (const auto& [path, entry] : revision.manifest.files)
      for (const auto& chunk : entry.chunks)
        if (!store_.get("file_chunks", chunk.text())) paths.insert(path);
    return paths;
  }

  /// Conflicts are published only once the user resolves them. Not checked after a rename, which may have moved a file
  /// with markers, or a directory that has one: it was moved then, and is not in conflict.
  void check_markers(const Log& log, const std::string& message, std::optional<nanoseconds> renamed_at,
                     const std::map<std::string, std::vector<std::string>>& of_message) {
    auto posted = of_message.find(message);
    if (posted == of_message.end()) return;
    const Revision& revision = log.revisions.at(posted->second.front());
    const nanoseconds posted_at = time_of(revision.created_at);
    if (renamed_at && *renamed_at <= posted_at) return;
    for (const auto& [path, entry] : revision.manifest.files) {
      auto marked = [&, path = path](const std::string& id) {
        auto bytes = log.revisions.contains(id) ? log.bytes(id, path) : std::nullopt;
        // All three of a set: a marker line that the user has overwritten is no marker.
        auto at = bytes ? bytes->find("<<<<<<< ") : std::string::npos;
        if (at != std::string::npos) at = bytes->find("\n=======\n", at);
        return at != std::string::npos && bytes->find("\n>>>>>>> ", at) != std::string::npos;
      };
      bool is_old = std::any_of(revision.parents.begin(), revision.parents.end(),
                                [&](const RevisionId& parent) { return marked(parent.text()); });
      if (marked(posted->second.front()) && !is_old) wrong(fmt::format("{}: {} has conflict markers", message, path));
    }
  }

  /// Whether, when success was reported, a PATCH to a revision without this one was under way, or its sender had read
  /// head before that, and right before it. Nothing can undo that. If the two do not merge, the other one stays and
  /// this one is announced, which is checked for all.
  bool was_overtaken(Log& log, const std::string& revision, nanoseconds told_at) {
    return std::any_of(watchers_.begin(), watchers_.end(), [&](const auto& watcher) {
      return std::any_of(watcher->moves.begin(), watcher->moves.end(), [&](const Move& move) {
        const nanoseconds pause = lags_ ? kLongestPause + Replicas::kLongestLag : kLongestPause;
        bool was_decided = move.at <= told_at || (move.seen_at <= told_at && move.at - move.seen_at < pause);
        return was_decided && told_at - move.at < minutes(7) && !log.covers(move.to.text(), revision);
      });
    });
  }

  void wrong(std::string what) { verdict_.add(std::move(what)); }

  const std::string home_{Disks::kRoot};
  World world_;
  SimulatedClock clock_;
  MemoryStore store_;
  Replicas replicas_{world_, store_};
  NoAccounts accounts_;
  const Nature nature_;
  bool is_limited_ = false;  ///< in the number of writes; set by options()
  bool has_short_pages_ = false;
  service::Service service_;
  Weather weather_;
  std::vector<std::unique_ptr<Road>> watchers_;
  Road visitor_road_{*this, 99};
  std::shared_ptr<Cache> visitor_cache_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::string> projects_;
  std::map<std::string, std::string> final_heads_;  ///< by project
  std::map<std::string, int> looked_;               ///< by project: the client that looked after it in the end
  Scope scope_;
  bool set_back_ = false;                                 ///< a foreign client moved head
  bool goes_back_ = false;                                ///< whether the service goes back to an older state
  bool ignores_ = false;                                  ///< whether rules ignore some names
  bool has_state_ = false;                                ///< whether the project has state, which all change
  bool lags_ = false;                                     ///< whether lagging replicas answer reads
  std::shared_ptr<void> late_ = std::make_shared<int>();  ///< held by everything that is still to come or to arrive
  std::optional<nanoseconds> went_back_at_;
  std::set<std::string> lost_heads_;
  std::set<std::string> heads_then_;                                ///< right after it went back
  std::map<std::string, std::vector<service::StoredRecord>> lost_;  ///< by collection
  Ledger neighbours_;                                               ///< of foreign clients that follow the protocol
  std::map<std::string, std::string> brought_;                      ///< by them: files that nobody touches
  std::set<std::string> helped_;                                    ///< their revisions
  std::set<std::string> left_out_;                                  ///< of head, as any client names it in the end
  std::size_t writes_ = 0, refusals_ = 0;
  std::map<std::string, std::string> bodies_;
  std::map<std::pair<int, std::string>, std::set<std::string>> uploaded_;  ///< chunks: keys by client and text
  Verdict verdict_;
};

}  // namespace

Verdict simulate(std::uint64_t seed, const Nature& nature) {
  planted = nature.fault;
  Verdict verdict = Simulation(seed, nature).run();
  Disks::all().clear();
  return verdict;
}

}  // namespace playfs::sim
