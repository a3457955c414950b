// Shared by the tests of the transport.
#pragma once

#include "base/await.h"
#include "net/curl_transport.h"

namespace playfs::net {

inline std::unique_ptr<CurlTransport> connect_to(const std::string& url, CurlOptions options = {}) {
  auto transport = CurlTransport::create(url, std::move(options));
  return transport ? std::move(*transport) : nullptr;
}

inline Result<HttpResponse> get(CurlTransport& transport, std::string target = "/", Deadline deadline = {},
                                CancelToken cancel = {}) {
  return await<HttpResponse>([&](auto done) {
    transport.send({"GET", std::move(target), {}, {}}, deadline, std::move(cancel), std::move(done));
  });
}

}  // namespace playfs::net
