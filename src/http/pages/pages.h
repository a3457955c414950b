// The read-only web page for people: a request in, HTML out. Handles all paths that are not the service's own.
//
// Rendered on the server, without scripts; see README.md.
// Thread-safe. handle() waits for the store, so call it on a worker thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/http.h"
#include "base/result.h"
#include "http/answer.h"
#include "http/pages/account.h"
#include "service/site_hosts.h"
#include "service/store.h"

namespace playfs::http {

struct Visit;

struct PagesOptions {
  std::string base_path = "/.site/data";  ///< of the Data API
  std::vector<std::string> site_hosts;    ///< as the service's, see service::SiteHosts
  const AccountPage* account = nullptr;   ///< none: there is no such page
};

class Pages {
 public:
  /// `store` must outlive it.
  Pages(service::Store& store, PagesOptions options);

  /// Whether a request is for the pages, that is, not for one of the service's own paths.
  [[nodiscard]] bool serves(std::string_view target) const;

  /// GET and HEAD, and the forms of the account's page. Never throws. Answers carry an ETag, and are 304 if the visitor
  /// has the page already. `peer` is the address that the request came from.
  [[nodiscard]] Answer handle(const HttpRequest& request, const std::string& peer = {}) const;

 private:
  [[nodiscard]] Answer route(const HttpRequest& request, const std::string& peer) const;
  [[nodiscard]] Result<Answer> find(Visit& visit, const std::vector<std::string>& segments) const;

  service::Store& store_;
  const PagesOptions options_;
  const service::SiteHosts site_;
};

}  // namespace playfs::http
