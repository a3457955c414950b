// The web page over untrusted records: the first field is a target, each further one a record, whose first letter
// selects its collection. All of their content comes out as text.
#include "base/text.h"
#include "fuzz.h"
#include "http/pages/pages.h"
#include "service/collections.h"
#include "service/record_text.h"
#include "site.h"
#include "unit/http/markup.h"
#include "wire/json.h"

using namespace playfs;

namespace {

/// Inserted after every character of a record that could start or end something in HTML: if a page has that character
/// followed by the mark, it was not escaped.
constexpr std::string_view kMark = "zqx7";

std::string marked(std::string_view text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '<' || c == '"') out += kMark;
  }
  return out;
}

Json with_marks(const Json& value) {
  if (const auto* text = value.string()) return marked(*text);
  if (const auto* array = value.array()) {
    Json::Array items;
    for (const Json& item : *array) items.push_back(with_marks(item));
    return items;
  }
  if (const auto* object = value.object()) {
    JsonObject members;
    for (const auto& [name, member] : *object) members.set(marked(name), with_marks(member));
    return members;
  }
  return value;
}

void check(const http::Pages& pages, const std::string& target) {
  if (!pages.serves(target)) return;
  http::Answer answer = pages.handle({"GET", target, {{"Host", "play.test"}}, {}});
  const HttpResponse& response = answer.response;
  if (answer.source) {
    std::uint64_t sent = 0;
    for (auto piece = answer.source->next(); piece && !piece->empty(); piece = answer.source->next())
      sent += piece->size();
    FUZZ_CHECK(sent == answer.source->size());
  }
  FUZZ_CHECK(response.status >= 200 && response.status < 500);
  for (const auto& [name, value] : response.headers)
    FUZZ_CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  const auto type = response.headers.get("Content-Type").value_or("");
  if (response.status == 303) return;
  FUZZ_CHECK(response.headers.get("Content-Security-Policy") && response.headers.get("X-Content-Type-Options"));
  if (type != "text/html; charset=utf-8") {
    FUZZ_CHECK(type.find("html") == std::string_view::npos);
    return;
  }
  const http::Markup markup = http::Markup::of(response.body);
  FUZZ_CHECK(markup.problem.empty());
  for (const std::string& link : markup.links) {
    const std::string scheme = to_lower(link.substr(0, link.find("//")));
    FUZZ_CHECK(link.starts_with("/") || link.starts_with("#") || scheme == "http:" || scheme == "https:");
  }
  for (char c : {'<', '"'}) FUZZ_CHECK(response.body.find(c + std::string(kMark)) == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (as_text(data, size).find(kMark) != std::string_view::npos) return 0;
  Input input(data, size);
  fuzz::Site site;
  const std::string_view asked = input.field();
  std::vector<std::string> ids, targets;
  std::string last_revision;
  const auto collections = service::all_collections();
  for (int records = 0; records < 10 && !input.empty(); ++records) {
    std::string text = fuzz::with_ids(input.field(), ids);
    if (text.empty()) continue;
    const auto& collection = collections[static_cast<unsigned char>(text[0]) % collections.size()];
    auto json = wire::parse_json(std::string_view(text).substr(1));
    if (!json || !json->object()) continue;
    JsonObject fields = *with_marks(*json).object();
    const std::string project = fields.find("project") && fields.find("project")->string()
                                    ? *fields.find("project")->string()
                                    : std::string("none");
    service::NewRecord record;
    record.collection = collection.name;
    record.contents = {wire::to_text(fields), service::belonging(collection, fields)};
    auto stored = site.store.insert(record);
    FUZZ_CHECK(stored);
    ids.push_back(stored->id);
    const std::string name(collection.name);
    const std::string place = name == "domain_mail" ? "mail" : name;
    targets.insert(targets.end(),
                   {"/records/" + name, "/records/" + name + "/" + stored->id, "/" + place + "/" + stored->id});
    if (name == "projects") targets.push_back("/projects/" + stored->id + "/log");
    if (name != "revisions") continue;
    targets.push_back("/projects/" + project + "/revisions/" + stored->id);
    targets.push_back("/projects/" + project + "/diff/" + last_revision + ".." + stored->id);
    for (const char* way : {"files", "raw"})
      targets.push_back("/projects/" + project + "/revisions/" + stored->id + "/" + way + "/README.md");
    last_revision = stored->id;
  }
  const http::Pages pages(site.store, {"/.site/data", {"play.test"}});
  check(pages, fuzz::with_ids(asked, ids));
  for (const char* list : {"/", "/projects", "/threads", "/agents", "/mail", "/spaces"}) check(pages, list);
  for (const std::string& target : targets) check(pages, target);
  return 0;
}
