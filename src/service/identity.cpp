#include "service/identity.h"

#include "base/text.h"
#include "model/content_hash.h"

namespace playfs::service {

namespace {
constexpr std::string_view kScheme = "bearer ";
}  // namespace

std::string hash_of_secret(std::string_view secret) { return ContentHash::of(secret).hex(); }

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

Gatekeeper::Gatekeeper(Accounts& accounts, std::string_view steward_key)
    : accounts_(accounts), steward_hash_(steward_key.empty() ? "" : hash_of_secret(steward_key)) {}

Result<Identity> Gatekeeper::identify(const HttpRequest& request) const {
  auto header = request.headers.get("Authorization");
  if (!header) return Identity{};
  if (!equals_ignoring_case(header->substr(0, kScheme.size()), kScheme))
    return fail(ErrorCode::unauthorized, "send the API key as Authorization: Bearer KEY");
  std::string hash = hash_of_secret(header->substr(kScheme.size()));
  if (equal_in_constant_time(hash, steward_hash_)) return Identity{std::string(kStewardAccount), true};
  PLAYFS_TRY(auto account, accounts_.account_of_key(hash));
  if (!account) return fail(ErrorCode::unauthorized, "this API key is not valid; sign in again to get a new one");
  return Identity{*std::move(account), false};
}

Status may_update(const Identity& who, const Collection& collection, const StoredRecord& record) {
  if (who.steward) return {};
  if (record.status == kHiddenStatus)
    return fail(ErrorCode::permission_denied, "the domain steward has hidden this record");
  if (collection.update == Access::anyone) return {};
  if (!who.account.empty() && who.account == record.owner) return {};
  return fail(ErrorCode::permission_denied,
              "only the account that created it may change a record of " + std::string(collection.name));
}

Status may_set(const Identity& who, const Collection& collection, const JsonObject& fields) {
  if (who.steward) return {};
  for (std::string_view name : collection.steward_fields)
    if (fields.find(name))
      return fail(ErrorCode::permission_denied, "only the domain steward may set " + std::string(name));
  return {};
}

}  // namespace playfs::service
