// A sequence of requests to the service, each field one request as on the wire. `@0` to `@9` are the ids of the records
// made so far, `@c` the code of the last mail. Responses are well-formed, and what was created is there.
#include "base/text.h"
#include "fuzz.h"
#include "model/records.h"
#include "service/problem.h"
#include "service/record_text.h"
#include "site.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

namespace {

constexpr std::string_view kBase = "/.site/data";

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

HttpRequest read_request(std::string_view text) {
  HttpRequest request;
  std::string_view first = take_line(text);
  const auto space = std::min(first.find(' '), first.size());
  request.method = first.substr(0, space);
  request.target = first.substr(std::min(space + 1, first.size()));
  for (std::string_view line = take_line(text); !line.empty(); line = take_line(text)) {
    const auto colon = std::min(line.find(": "), line.size());
    request.headers.add(std::string(line.substr(0, colon)), std::string(line.substr(std::min(colon + 2, line.size()))));
  }
  request.body = text;
  if (!request.headers.get("Host")) request.headers.add("Host", "play.test");
  return request;
}

void check_answer(const HttpRequest& request, const HttpResponse& response) {
  FUZZ_CHECK(service::reason_phrase(response.status) != "Error");
  FUZZ_CHECK(response.status < 500);
  for (const auto& [name, value] : response.headers)
    FUZZ_CHECK((name + value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  const bool has_body = response.status != 204 && response.status != 304;
  FUZZ_CHECK(has_body != response.body.empty());
  if (!has_body) return;
  auto json = wire::parse_json(response.body);
  FUZZ_CHECK(json && json->object());
  if (response.status == 200) return;
  const Json *code = json->object()->find("code"), *message = json->object()->find("message");
  FUZZ_CHECK(code && code->string() && message && message->string() && !message->string()->empty());
  FUZZ_CHECK(response.body.size() < 4096 + request.body.size() * 6);
  FUZZ_CHECK(response.headers.get("Allow").has_value() == (response.status == 405));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  fuzz::Site site;
  service::ServiceOptions options;
  options.site_hosts = {"play.test"};
  const service::Service service(site.store, site.accounts, std::move(options), &site.sign_in);
  std::vector<std::string> ids;
  for (int requests = 0; requests < 10 && !input.empty(); ++requests) {
    std::string text = fuzz::with_ids(input.field(), ids);
    if (auto at = text.find("@c"); at != std::string::npos && !site.mailbox.mails.empty())
      text.replace(at, 2, site.mailbox.mails.back().subject.substr(sizeof "Your sign-in code: " - 1));
    HttpRequest request = read_request(text);
    const std::size_t mails = site.mailbox.mails.size();
    const HttpResponse response = service.handle(request, {"192.0.2.1"});
    check_answer(request, response);
    if (site.mailbox.mails.size() > mails) {
      const auto& mail = site.mailbox.mails.back();
      FUZZ_CHECK(response.status == 200 &&
                 mail.to.find_first_of(std::string_view(" \r\n<>,\0", 7)) == std::string::npos);
      FUZZ_CHECK(mail.subject.find_first_of("\r\n") == std::string::npos);
    }
    const bool writes = request.method == "POST" || request.method == "PATCH";
    if (response.status != 200 || !writes || !request.target.starts_with(kBase)) continue;
    FUZZ_CHECK(request.method == "PATCH" || request.headers.get("Origin"));
    auto answer = wire::parse_json(response.body);
    auto record = wire::decode_record(*answer);
    FUZZ_CHECK(record);
    const Json* printed = answer->object()->find("record");
    FUZZ_CHECK(printed && json_size(*printed) <= kMaxRecordSize);
    auto segments = service::segments_below(kBase, service::parse_target(request.target)->path);
    FUZZ_CHECK(segments && !segments->empty());
    const std::string path = std::string(kBase) + '/' + percent_encode(segments->front()) + '/' + record->id;
    const HttpResponse read = service.handle({"GET", path, {{"Host", "play.test"}}, {}}, {"192.0.2.2"});
    auto again = wire::parse_json(read.body);
    FUZZ_CHECK(read.status == 200 && again && *again == *answer);
    if (request.method == "POST") ids.push_back(record->id);
  }
  return 0;
}
