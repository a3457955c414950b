// Events as an answer of the listener: the service's greeting to a watcher, then a subscription to the feed.
// Thread-safe.
#pragma once

#include "base/http.h"
#include "http/answer.h"
#include "service/change_feed.h"
#include "service/service.h"

namespace playfs::http {

/// REQUIRES: `service.is_watch(request)`; `feed` is the service's, and outlives the listener.
Answer watch(const service::Service& service, service::ChangeFeed& feed, const HttpRequest& request);

}  // namespace playfs::http
