// Records and accounts in one SQLite database in WAL mode. Any number of threads and processes may share one file.
//
// Reads run in parallel, each on its own connection; writes go through one connection and are committed in groups. The
// order of records is an AUTOINCREMENT sequence taken inside the write transaction: SQLite has one writer at a time,
// over all processes, so a lower number is never committed after a higher one was visible.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "service/site_store.h"

namespace playfs::service {

class Connections;

class SqliteStore final : public SiteStore {
 public:
  /// Opens or creates `path`. Clock and random must outlive the store.
  static Result<std::unique_ptr<SqliteStore>> open(const std::string& path, Database::Durability durability,
                                                   const Clock& clock, Random& random);
  ~SqliteStore() override;

  Result<StoredRecord> insert(const NewRecord& record) override;
  Result<std::optional<StoredRecord>> created_by(std::string_view request_key) override;
  Result<StoredRecord> get(std::string_view collection, std::string_view id) override;
  Result<Page> list(std::string_view collection, std::size_t limit, Position before) override;
  Result<Page> list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                          Position before) override;
  Result<std::optional<StoredRecord>> replace(std::string_view collection, const StoredRecord& read, Contents contents,
                                              const std::optional<Charge>& charge) override;
  Result<StoredRecord> set_status(std::string_view collection, std::string_view id, std::string_view status) override;
  Status try_to_write() override;
  Result<std::vector<Change>> changes(Position after, std::size_t limit) override;
  Result<std::optional<Change>> last_change(Position most) override;
  Result<Position> newest_change() override;
  [[nodiscard]] const std::string& site_id() const override { return site_id_; }

  Result<std::optional<std::string>> account_of_key(std::string_view key_hash) override;
  Result<bool> put_code(const SignInCode& code, const MailLimit& limit, std::span<const Charge> charges) override;
  Result<std::optional<SignedIn>> redeem_code(std::string_view email, std::string_view code_hash,
                                              std::string_view key_hash, std::span<const Charge> charges) override;
  Result<SignedIn> sign_in(std::string_view email, std::string_view key_hash) override;
  Result<std::vector<Account>> list_accounts(std::string_view after, std::size_t limit) override;
  Result<std::optional<Account>> find_account(std::string_view id_or_email) override;
  Result<std::vector<ApiKey>> keys_of(std::string_view account) override;
  Result<std::int64_t> revoke_keys(std::string_view account, std::string_view key_id) override;

 private:
  SqliteStore(std::unique_ptr<Connections> connections, std::string site_id, const Clock& clock, Random& random);

  const std::unique_ptr<Connections> connections_;
  const std::string site_id_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace playfs::service
