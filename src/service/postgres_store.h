// Records and accounts in a PostgreSQL database, which any number of servers share.
//
// Reads run in parallel on a few connections; writes are committed in groups (postgres_writes.h). No state is kept in
// this process, or in a session of the database. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/callback.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "service/site_store.h"

namespace playfs::service {

class PostgresPool;
class PostgresWriter;
struct PostgresSite;

class PostgresStore final : public SiteStore {
 public:
  /// Opens the store in the database of a connection URI (postgresql://…), and creates it if there is none. Clock and
  /// random must outlive it.
  static Result<std::unique_ptr<PostgresStore>> open(const std::string& uri, const Clock& clock, Random& random);
  /// The same for a store that is there. Errors: not_found.
  static Result<std::unique_ptr<PostgresStore>> open_existing(const std::string& uri, const Clock& clock,
                                                              Random& random);
  ~PostgresStore() override;

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
  static Result<std::unique_ptr<PostgresStore>> open(const std::string& uri, const Clock& clock, Random& random,
                                                     UniqueFunction<Result<PostgresSite>(PostgresPool&)> find);
  PostgresStore(const std::string& uri, std::unique_ptr<PostgresPool> writers, std::string site_id, const Clock& clock,
                Random& random);

  const std::unique_ptr<PostgresPool> readers_;
  const std::unique_ptr<PostgresPool> writers_;  ///< of its own, so that no number of reads keeps writes waiting
  const std::string site_id_;
  const Clock& clock_;
  Random& random_;
  const std::unique_ptr<PostgresWriter> writer_;
};

}  // namespace playfs::service
