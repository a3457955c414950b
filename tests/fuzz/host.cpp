// Host and Origin: three fields, a configured name, a Host header and an Origin header. Whatever is accepted is this
// site under one of its names.
#include "base/text.h"
#include "fuzz.h"
#include "service/site_hosts.h"

using namespace playfs;
using service::parse_host;

namespace {

std::string print(const service::Host& host) { return host.name + (host.port.empty() ? "" : ":" + host.port); }

void check_host(std::string_view text) {
  auto host = parse_host(text);
  if (!host) return;
  FUZZ_CHECK(print(*host) == to_lower(text));
  FUZZ_CHECK(host->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._:[]") == std::string::npos);
  FUZZ_CHECK(host->port.size() <= 5 && host->port.find_first_not_of("0123456789") == std::string::npos);
  auto again = parse_host(print(*host));
  FUZZ_CHECK(again && again->name == host->name && again->port == host->port);
  FUZZ_CHECK(again->is_address == host->is_address && again->is_loopback == host->is_loopback);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string configured(input.field());
  const std::string_view host = input.field(), origin = input.rest();
  check_host(configured);
  check_host(host);
  const service::SiteHosts site({configured});
  auto parsed = parse_host(host), known = parse_host(configured);
  const bool is_known =
      parsed && known && parsed->name == known->name && (known->port.empty() || known->port == parsed->port);
  FUZZ_CHECK(site.answers_for(host) == (parsed && (is_known || parsed->is_address || parsed->is_loopback)));
  FUZZ_CHECK(!site.is_public(host) || (is_known && site.answers_for(host) && !parsed->is_loopback));

  if (parsed) {
    FUZZ_CHECK(site.is_own_origin("https://" + std::string(host), host, true));
    FUZZ_CHECK(!site.is_own_origin("http://" + std::string(host), host, true));
  }
  const std::string stranger = "https://x" + std::string(host);
  for (std::string_view page : {origin, std::string_view(stranger)}) {
    for (bool is_secure : {false, true}) {
      if (!site.is_own_origin(page, host, is_secure)) continue;
      FUZZ_CHECK(site.is_own_origin(page, host, false));
      FUZZ_CHECK(!is_secure || to_lower(page).starts_with("https://"));
      const auto scheme = page.find("://");
      const std::string name = to_lower(page.substr(0, scheme));
      FUZZ_CHECK(parsed && (name == "http" || name == "https" || name == "local"));
      auto from = parse_host(page.substr(scheme + 3));
      FUZZ_CHECK(from && (from->name == parsed->name || (known && from->name == known->name)));
    }
  }
  return 0;
}
