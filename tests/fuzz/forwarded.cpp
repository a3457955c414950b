// Addresses through proxies: three fields, the trusted networks, the peer, and X-Forwarded-For. No client's address is
// taken from text that the client itself wrote.
#include <vector>

#include "fuzz.h"
#include "service/client_address.h"

using namespace playfs::service;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  std::vector<std::string> networks;
  for (std::string_view list = input.field(); !list.empty();) {
    networks.emplace_back(list.substr(0, list.find(' ')));
    list.remove_prefix(std::min(list.size(), networks.back().size() + 1));
  }
  const std::string_view peer = input.field(), forwarded = input.rest();
  auto is_address = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  };
  for (std::string_view text : {peer, forwarded}) {
    const std::string counted = counted_address(text);
    FUZZ_CHECK(counted_address(counted) == counted);
    FUZZ_CHECK(counted == text || is_address(text));
  }
  auto proxies = TrustedProxies::parse(networks);
  if (!proxies) return 0;
  auto trusts = [&](std::string_view text) {
    const std::string behind = text == "192.0.2.77" ? "192.0.2.78" : "192.0.2.77";
    return proxies->client(text, behind) == behind;
  };
  const std::string client = proxies->client(peer, forwarded);
  FUZZ_CHECK(client == peer || (trusts(peer) && is_address(client)));
  FUZZ_CHECK(client == peer || forwarded.find(client) != std::string_view::npos);
  FUZZ_CHECK(!trusts(peer) || is_address(peer));
  if (!forwarded.empty() && !trusts(client))
    FUZZ_CHECK(proxies->client(peer, "203.0.113.9, " + std::string(forwarded)) == client);
  playfs::HttpRequest request;
  request.headers.add("X-Forwarded-For", std::string(forwarded));
  FUZZ_CHECK(proxies->client_of(request, peer) == client);
  return 0;
}
