#include "model/content_hash.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <openssl/evp.h>

#include "base/text.h"

namespace playfs {

namespace {
/// The values of hex digits; -1: it is none. A table, since a clone's index has thousands of hashes.
constexpr auto kDigits = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::int8_t i = 0; i < 10; ++i) values[static_cast<std::size_t>('0' + i)] = i;
  for (std::int8_t i = 10; i < 16; ++i)
    values[static_cast<std::size_t>('a' + i - 10)] = values[static_cast<std::size_t>('A' + i - 10)] = i;
  return values;
}();
}  // namespace

struct ContentHasher::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  EVP_MD_CTX* copy = nullptr;  ///< scratch context of so_far()
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    EVP_MD_CTX_free(handle);
    EVP_MD_CTX_free(copy);
  }
  static void finish(EVP_MD_CTX* context, std::array<std::byte, 32>& bytes) {
    if (EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(bytes.data()), nullptr) != 1) std::abort();
  }
};

ContentHasher::ContentHasher() : context_(std::make_unique<Context>()) {
  if (EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr) != 1) std::abort();  // out of memory, or no SHA-256
}
ContentHasher::ContentHasher(ContentHasher&&) noexcept = default;
ContentHasher& ContentHasher::operator=(ContentHasher&&) noexcept = default;
ContentHasher::~ContentHasher() = default;

void ContentHasher::update(std::string_view bytes) {
  if (EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) != 1) std::abort();
}

ContentHash ContentHasher::so_far() {
  if (!context_->copy) context_->copy = EVP_MD_CTX_new();
  if (!context_->copy || EVP_MD_CTX_copy_ex(context_->copy, context_->handle) != 1) std::abort();
  ContentHash hash;
  Context::finish(context_->copy, hash.bytes_);
  return hash;
}

ContentHash ContentHasher::finish() {
  ContentHash hash;
  Context::finish(context_->handle, hash.bytes_);
  return hash;
}

ContentHash ContentHash::of(std::string_view bytes) {
  ContentHasher hasher;
  hasher.update(bytes);
  return hasher.finish();
}

std::optional<ContentHash> ContentHash::parse(std::string_view text) {
  for (std::string_view prefix : {"sha256:", "sha256-"}) {
    if (text.size() == 64 + prefix.size() && equals_ignoring_case(text.substr(0, prefix.size()), prefix)) {
      text.remove_prefix(prefix.size());
      break;
    }
  }
  if (text.size() != 64) return std::nullopt;
  ContentHash hash;
  int all = 0;
  for (std::size_t i = 0; i < hash.bytes_.size(); ++i) {
    const int high = kDigits[static_cast<unsigned char>(text[2 * i])];
    const int low = kDigits[static_cast<unsigned char>(text[2 * i + 1])];
    all |= high | low;
    hash.bytes_[i] = static_cast<std::byte>(high << 4 | low);
  }
  return all < 0 ? std::nullopt : std::optional(hash);
}

std::string ContentHash::hex() const { return to_hex(bytes_); }

}  // namespace playfs
