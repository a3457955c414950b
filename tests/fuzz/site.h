// A deterministic in-memory service, for targets that begin with requests or records. For one thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "service/accounts.h"
#include "service/mailer.h"
#include "service/service.h"
#include "support/manual_time.h"
#include "whole/memory_store.h"

namespace playfs::fuzz {

/// Deterministic numbers that look random.
class CountedRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override {
    for (std::byte& byte : bytes) {
      state_ = state_ * 6364136223846793005 + 1442695040888963407;
      byte = static_cast<std::byte>(state_ >> 56);
    }
  }

 private:
  std::uint64_t state_ = 0;
};

/// Accounts without rate limits.
class MemoryAccounts final : public service::Accounts {
 public:
  Result<std::optional<std::string>> account_of_key(std::string_view key_hash) override {
    auto key = keys_.find(std::string(key_hash));
    return key == keys_.end() ? std::nullopt : std::optional(key->second);
  }
  Result<bool> put_code(const service::SignInCode& code, const service::MailLimit&,
                        std::span<const service::Charge>) override {
    codes_[std::string(code.email)] = code.hash;
    return true;
  }
  Result<std::optional<service::SignedIn>> redeem_code(std::string_view email, std::string_view code_hash,
                                                       std::string_view key_hash,
                                                       std::span<const service::Charge>) override {
    auto code = codes_.find(std::string(email));
    if (code == codes_.end() || code->second != code_hash) return std::optional<service::SignedIn>();
    codes_.erase(code);
    return sign_in(email, key_hash).map([](service::SignedIn&& who) { return std::optional(std::move(who)); });
  }
  Result<service::SignedIn> sign_in(std::string_view email, std::string_view key_hash) override {
    keys_[std::string(key_hash)] = email;
    return service::SignedIn{std::string(email), true};
  }
  Result<std::vector<service::Account>> list_accounts(std::string_view, std::size_t) override {
    std::vector<service::Account> accounts;
    for (const auto& [hash, email] : keys_) accounts.push_back({email, email, {}, 1});
    return accounts;
  }
  Result<std::optional<service::Account>> find_account(std::string_view id_or_email) override {
    return service::Account{std::string(id_or_email), std::string(id_or_email), {}, 0};
  }
  Result<std::vector<service::ApiKey>> keys_of(std::string_view account) override {
    std::vector<service::ApiKey> keys;
    for (const auto& [hash, email] : keys_)
      if (email == account) keys.push_back({hash.substr(0, service::kKeyIdLength), {}});
    return keys;
  }
  Result<std::int64_t> revoke_keys(std::string_view account, std::string_view key_id) override {
    return static_cast<std::int64_t>(std::erase_if(keys_, [&](const auto& key) {
      return key.second == account && (key_id.empty() || key.first.substr(0, service::kKeyIdLength) == key_id);
    }));
  }

 private:
  std::map<std::string, std::string> codes_, keys_;
};

/// Keeps the mail.
class Mailbox final : public service::Mailer {
 public:
  [[nodiscard]] Status send(const service::Mail& mail) override {
    mails.push_back(mail);
    return {};
  }
  std::vector<service::Mail> mails;
};

struct Site {
  test::ManualClock clock;
  CountedRandom random;
  sim::MemoryStore store{clock, random};
  MemoryAccounts accounts;
  Mailbox mailbox;
  service::SignIn sign_in{accounts, mailbox, clock, random};
};

/// Replaces `@0` to `@9` in `text` by the first, second, … id; by nothing if there are fewer.
inline std::string with_ids(std::string_view text, std::span<const std::string> ids) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool named = text[i] == '@' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!named) {
      out += text[i];
      continue;
    }
    const auto index = static_cast<std::size_t>(text[++i] - '0');
    if (index < ids.size()) out += ids[index];
  }
  return out;
}

}  // namespace playfs::fuzz
