// An export as an answer of the listener, part by part. Thread-safe.
#pragma once

#include "base/http.h"
#include "http/answer.h"
#include "service/service.h"

namespace playfs::http {

/// REQUIRES: `service.is_export(request)`; its store outlives the answer.
Answer export_records(const service::Service& service, const HttpRequest& request);

}  // namespace playfs::http
