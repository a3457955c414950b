#include "http/response_head.h"

#include <algorithm>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "service/problem.h"

namespace playfs::http {

namespace {

void add_field(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  const std::size_t begin = head.size();
  head += value;
  auto is_break = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  std::replace_if(head.begin() + static_cast<std::ptrdiff_t>(begin), head.end(), is_break, ' ');
  head += "\r\n";
}

}  // namespace

std::string print_head(const HttpResponse& response, const Framing& framing) {
  std::string head;
  head.reserve(512);
  head += "HTTP/1.1 ";
  head += std::to_string(response.status);
  head += ' ';
  head += service::reason_phrase(response.status);
  head += "\r\n";
  for (const auto& [name, value] : response.headers) add_field(head, name, value);
  add_field(head, "Date", framing.date);
  if (framing.content_length) add_field(head, "Content-Length", std::to_string(*framing.content_length));
  if (framing.chunked) add_field(head, "Transfer-Encoding", "chunked");
  if (!framing.keep_alive) add_field(head, "Connection", "close");
  else if (framing.old_client) add_field(head, "Connection", "keep-alive");
  head += "\r\n";
  return head;
}

std::string_view DateHeader::now() {
  std::time_t second = std::time(nullptr);
  if (second != second_) {
    second_ = second;
    std::tm parts{};
    gmtime_r(&second, &parts);
    text_ = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", parts);
  }
  return text_;
}

}  // namespace playfs::http
