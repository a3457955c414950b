#include "http/gzip.h"

#include <zlib.h>

#include <cstdlib>

#include "base/text.h"

namespace playfs::http {

namespace {

constexpr std::string_view kTagSuffix = "-gzip\"";
constexpr std::size_t kWorthIt = 1024;
// Higher levels make a page of JSON a few per cent smaller for several times the work.
constexpr int kLevel = 4;
constexpr int kGzipWindow = 15 + 16;

bool is_text(std::string_view content_type) {
  return content_type.starts_with("application/json") || content_type.starts_with("text/") ||
         content_type.starts_with("application/atom+xml") || content_type.starts_with("application/javascript") ||
         content_type.starts_with("image/svg+xml");
}

/// Whether an element's parameters give it a weight above 0.
bool has_weight(std::string_view parameters) {
  auto q = parameters.find("q=");
  return q == std::string_view::npos || std::strtod(std::string(parameters.substr(q + 2)).c_str(), nullptr) > 0;
}

HttpRequest with_plain_tags(HttpRequest request, std::string_view tags) {
  std::string plain;
  for (auto at = tags.find(kTagSuffix); at != std::string_view::npos; at = tags.find(kTagSuffix)) {
    plain.append(tags.substr(0, at)) += '"';
    tags.remove_prefix(at + kTagSuffix.size());
  }
  request.headers.set("If-None-Match", plain.append(tags));
  return request;
}

/// The tag of an answer's compressed form; empty if the answer has none.
std::string compressed_tag(const HttpResponse& response) {
  auto tag = response.headers.get("ETag").value_or("");
  if (tag.empty() || tag.back() != '"') return {};
  return std::string(tag.substr(0, tag.size() - 1)) + std::string(kTagSuffix);
}

}  // namespace

bool accepts_gzip(std::string_view accept_encoding) {
  while (!accept_encoding.empty()) {
    auto comma = accept_encoding.find(',');
    std::string_view element = accept_encoding.substr(0, comma);
    accept_encoding = comma == std::string_view::npos ? std::string_view() : accept_encoding.substr(comma + 1);
    auto semicolon = element.find(';');
    std::string_view name = trim(element.substr(0, semicolon));
    if (!equals_ignoring_case(name, "gzip") && name != "*") continue;
    return semicolon == std::string_view::npos || has_weight(element.substr(semicolon));
  }
  return false;
}

Answer compressed(const HttpRequest& request, const std::function<Answer(const HttpRequest&)>& handler) {
  std::string sent_tags(request.headers.get("If-None-Match").value_or(""));
  bool knows_compressed = sent_tags.find(kTagSuffix) != std::string::npos;
  Answer answer = handler(knows_compressed ? with_plain_tags(request, sent_tags) : request);
  HttpResponse& response = answer.response;

  if (response.status == 304) {
    response.headers.add("Vary", "Accept-Encoding");  // as with the 200 that it stands for
    // Names the copy that the client has, so that it can tell which of its copies is still valid.
    std::string tag = compressed_tag(response);
    if (!tag.empty() && sent_tags.find(tag) != std::string::npos) response.headers.set("ETag", std::move(tag));
    return answer;
  }
  if (answer.live) return answer;
  if (response.body.size() < kWorthIt || !is_text(response.headers.get("Content-Type").value_or(""))) return answer;
  response.headers.add("Vary", "Accept-Encoding");
  if (!accepts_gzip(request.headers.get("Accept-Encoding").value_or(""))) return answer;
  auto packed = gzip(response.body);
  if (!packed) return answer;
  response.body = *std::move(packed);
  response.headers.add("Content-Encoding", "gzip");
  if (std::string tag = compressed_tag(response); !tag.empty()) response.headers.set("ETag", std::move(tag));
  return answer;
}

std::optional<std::string> gzip(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) return std::nullopt;
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  int result = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return std::nullopt;
  return packed;
}

}  // namespace playfs::http
