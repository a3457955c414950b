#include "compare/similarity.h"

#include <algorithm>
#include <functional>

namespace playfs::compare {

Fingerprint fingerprint_of(std::string_view content) {
  constexpr std::size_t kLongestPiece = 64;
  Fingerprint pieces, fingerprint;
  while (!content.empty()) {
    auto end = content.substr(0, kLongestPiece).find('\n');
    auto piece = content.substr(0, end == std::string_view::npos ? kLongestPiece : end + 1);
    pieces.emplace_back(std::hash<std::string_view>()(piece), piece.size());
    content.remove_prefix(piece.size());
  }
  // Sorted, since in a hash table strangers could choose pieces that all fall into one bucket.
  std::sort(pieces.begin(), pieces.end());
  for (const auto& [hash, size] : pieces) {
    if (fingerprint.empty() || fingerprint.back().first != hash) fingerprint.emplace_back(hash, 0);
    fingerprint.back().second += size;
  }
  return fingerprint;
}

unsigned similarity(const Fingerprint& a, const Fingerprint& b, std::uint64_t size) {
  std::uint64_t common = 0;
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (one->first == other->first) common += std::min(one++->second, other++->second);
    else if (one->first < other->first) ++one;
    else ++other;
  }
  return static_cast<unsigned>(std::min<std::uint64_t>(common * 100 / size, 99));
}

}  // namespace playfs::compare
