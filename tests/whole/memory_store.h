// The service's store in memory, with what a checker needs: everything in order of occurrence.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "service/accounts.h"
#include "service/store.h"

namespace playfs::sim {

/// For one thread.
class MemoryStore final : public service::Store {
 public:
  MemoryStore(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  Result<service::StoredRecord> insert(const service::NewRecord& record) override;
  Result<std::optional<service::StoredRecord>> created_by(std::string_view request_key) override;
  Result<service::StoredRecord> get(std::string_view collection, std::string_view id) override;
  Result<service::Page> list(std::string_view collection, std::size_t limit, service::Position before) override;
  Result<service::Page> list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                   service::Position before) override;
  Result<std::optional<service::StoredRecord>> replace(std::string_view collection, const service::StoredRecord& read,
                                                       service::Contents contents,
                                                       const std::optional<service::Charge>& charge) override;
  Result<service::StoredRecord> set_status(std::string_view collection, std::string_view id,
                                           std::string_view status) override;
  Status try_to_write() override { return {}; }
  Result<std::vector<service::Change>> changes(service::Position after, std::size_t limit) override;
  Result<std::optional<service::Change>> last_change(service::Position most) override {
    auto after = changes_.upper_bound(most);
    return after == changes_.begin() ? std::nullopt : std::optional(std::prev(after)->second);
  }
  Result<service::Position> newest_change() override { return changes_.empty() ? 0 : changes_.rbegin()->first; }
  [[nodiscard]] const std::string& site_id() const override { return site_id_; }

  /// Of one collection, oldest first.
  [[nodiscard]] const std::vector<service::StoredRecord>& all(const std::string& collection) {
    return records_[collection];
  }
  /// Forgets the idempotency keys of requests older than this.
  void forget_keys(std::chrono::nanoseconds older);
  /// A copy of all that is stored. Restoring it forgets all later records and all keys.
  struct Backup {
    std::map<std::string, std::vector<service::StoredRecord>, std::less<>> records;
    std::map<std::string, std::vector<std::string>, std::less<>> wholes;
    std::map<std::pair<std::string, std::string>, std::size_t, std::less<>> places;
    std::map<service::Position, service::Change> changes;
  };
  [[nodiscard]] Backup backup() const { return {records_, wholes_, places_, changes_}; }
  void go_back_to(Backup backup);
  [[nodiscard]] WallTime last_written() const { return last_; }
  /// Makes reads return the state at that time, like a lagging replica, until called with nullopt.
  void show(std::optional<WallTime> up_to) { shown_ = up_to; }

 private:
  WallTime next_time();
  /// Gives a change that was just made the next number.
  void number_change(std::string_view collection, const service::StoredRecord& record, const std::string& whole);
  Result<service::Page> page(std::string_view collection, const std::string* whole, std::size_t limit,
                             service::Position before);
  std::optional<Error> charge(const std::optional<service::Charge>& charge);
  [[nodiscard]] bool is_shown(const service::StoredRecord& record) const {
    return !shown_ || record.created_at <= *shown_;
  }

  const Clock& clock_;
  Random& random_;
  const std::string site_id_ = "simulated";
  std::map<std::string, std::vector<service::StoredRecord>, std::less<>> records_;
  std::map<std::string, std::vector<std::string>, std::less<>> wholes_;  ///< the whole that each record is part of
  std::map<std::pair<std::string, std::string>, std::size_t, std::less<>> places_;
  std::map<service::Position, service::Change> changes_;
  struct Request {
    std::string collection;
    std::size_t place = 0;
    WallTime at;
  };
  std::unordered_map<std::string, Request> requests_;
  std::map<std::string, std::deque<WallTime>> charges_;
  WallTime last_;
  std::map<std::string, std::vector<service::StoredRecord>, std::less<>> replaced_;  ///< by id, oldest first
  std::optional<WallTime> shown_;
};

class NoAccounts final : public service::Accounts {
 public:
  Result<std::optional<std::string>> account_of_key(std::string_view) override { return std::optional<std::string>(); }
  Result<bool> put_code(const service::SignInCode&, const service::MailLimit&,
                        std::span<const service::Charge>) override {
    return nobody();
  }
  Result<std::optional<service::SignedIn>> redeem_code(std::string_view, std::string_view, std::string_view,
                                                       std::span<const service::Charge>) override {
    return nobody();
  }
  Result<service::SignedIn> sign_in(std::string_view, std::string_view) override { return nobody(); }
  Result<std::vector<service::Account>> list_accounts(std::string_view, std::size_t) override {
    return std::vector<service::Account>();
  }
  Result<std::optional<service::Account>> find_account(std::string_view) override {
    return std::optional<service::Account>();
  }
  Result<std::vector<service::ApiKey>> keys_of(std::string_view) override { return std::vector<service::ApiKey>(); }
  Result<std::int64_t> revoke_keys(std::string_view, std::string_view) override { return 0; }

 private:
  static tl::unexpected<Error> nobody() { return fail(ErrorCode::not_supported, "nobody signs in here"); }
};

}  // namespace playfs::sim
