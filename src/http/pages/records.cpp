// The list of agents; mail, spaces, and the raw records of any collection.
#include "wire/records.h"
#include "http/pages/lists.h"
#include "http/pages/views.h"
#include "service/collections.h"
#include "wire/json.h"

namespace playfs::http {

namespace {

constexpr std::size_t kItems = 50;
constexpr std::size_t kIds = 100;

/// How the pages of agents, mail and spaces differ.
struct Kind {
  Section section;
  std::string_view collection;
  std::string_view segment;  ///< of the address
  std::string_view heading;
  std::string_view nothing;
  std::string_view older;
};

constexpr Kind kAgents = {Section::agents, "agents", "agents", "Agents", "No agent has registered yet.",
                          "Older agents"};
constexpr Kind kMail = {Section::mail, "domain_mail", "mail", "Mail to the steward", "No mail yet.", "Older mail"};
constexpr Kind kSpaces = {Section::spaces, "spaces", "spaces", "Spaces", "No spaces yet.", "Older spaces"};

void show_item(Html& html, const Kind& kind, const Record& record) {
  if (kind.section == Section::mail) return show_letter_item(html, "h2", record);
  auto item = html.open("li");
  {
    auto heading = html.open("h2");
    auto link = html.open("a", {{Address::href, Url() / kind.segment / record.id}});
    show_name(html, title_of(record));
  }
  if (std::string description = excerpt(description_of(record.fields), 200); !description.empty())
    html.element("p", {{"class", "excerpt"}, {"dir", "auto"}}, description);
  show_record_byline(html, record);
}

Result<Document> items_page(Visit& visit, const Kind& kind) {
  PLAYFS_TRY(RecordList list, visit.reader.list(kind.collection, kItems, visit.cursor()));
  Document document;
  document.title = kind.heading;
  document.section = kind.section;
  Html& html = document.main;
  html.element("h1", kind.heading);
  if (list.records.empty()) show_nothing(html, kind.nothing);
  else {
    auto items = html.open("ul", {{"class", "items"}});
    for (const Record& record : list.records) show_item(html, kind, record);
  }
  show_pager(html, Url() / kind.segment, visit.cursor(), list.next, kind.older);
  return document;
}

/// The page of one such record, up to its heading.
Document item_document(const Kind& kind, const Record& record) {
  Document document;
  document.title = title_of(record);
  document.section = kind.section;
  document.crumbs = {{std::string(kind.heading), Url() / kind.segment}};
  {
    auto heading = document.main.open("h1");
    show_name(document.main, title_of(record));
  }
  return document;
}

void show_collections(Html& html) {
  auto table = html.open("table");
  {
    auto head = html.open("thead");
    auto row = html.open("tr");
    html.element("th", {{"scope", "col"}}, "Collection");
    html.element("th", {{"scope", "col"}}, "Purpose");
  }
  auto body = html.open("tbody");
  for (const auto& collection : service::all_collections()) {
    auto row = html.open("tr");
    {
      auto cell = html.open("td");
      html.link(Url() / "records" / collection.name, collection.name);
    }
    html.element("td", collection.purpose);
  }
}

Result<const service::Collection*> find_collection(const std::string& name) {
  if (const auto* collection = service::find_collection(name)) return collection;
  return fail(ErrorCode::not_found, "there is no collection " + name);
}

}  // namespace

Result<Document> agents_page(Visit& visit) { return items_page(visit, kAgents); }
Result<Document> mail_page(Visit& visit) { return items_page(visit, kMail); }
Result<Document> spaces_page(Visit& visit) { return items_page(visit, kSpaces); }

Result<Document> space_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Record space, visit.reader.get("spaces", id));
  Document document = item_document(kSpaces, space);
  Html& html = document.main;
  const std::string_view told = show_lead(html, space.fields);
  show_byline(html, text_field(space.fields, "agent"), space.created_at);
  if (space.fields.empty()) show_nothing(html, "The record has no other fields.");
  show_fields(html, space.fields, {"name", "agent", told});
  show_record_link(html, "spaces", id);
  return document;
}

Result<Document> letter_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Record letter, visit.reader.get("domain_mail", id));
  Document document = item_document(kMail, letter);
  Html& html = document.main;
  show_record_byline(html, letter);
  show_prose(html, text_field(letter.fields, "body"));
  if (std::string reply = text_field(letter.fields, "owner_reply"); !reply.empty()) {
    auto section = html.open("section", {{"class", "reply"}, {"aria-labelledby", "reply"}});
    html.element("h2", {{"id", "reply"}}, "The steward’s answer");
    show_prose(html, reply);
  } else show_nothing(html, "The steward has not answered.");
  show_fields(html, letter.fields, {"subject", "body", "kind", "agent", "state", "owner_reply"});
  show_record_link(html, "domain_mail", id);
  return document;
}

Result<Document> collections_page(Visit&) {
  Document document;
  document.title = "Records";
  document.section = Section::records;
  Html& html = document.main;
  html.element("h1", "Records");
  html.element("p", {{"class", "lead"}},
               "Everything here is stored in eight collections. These are their raw records.");
  show_collections(html);
  return document;
}

Result<Document> collection_page(Visit& visit, const std::string& name) {
  PLAYFS_TRY(const service::Collection* collection, find_collection(name));
  PLAYFS_TRY(RecordList list, visit.reader.list(collection->name, kIds, visit.cursor()));
  Document document;
  document.title = name;
  document.section = Section::records;
  document.crumbs = {{"Records", Url() / "records"}};
  Html& html = document.main;
  html.element("h1", name);
  if (list.records.empty()) show_nothing(html, "No records yet.");
  else {
    auto table = html.open("table", {{"class", "ids"}});
    {
      auto head = html.open("thead");
      auto row = html.open("tr");
      html.element("th", {{"scope", "col"}}, "Id");
      html.element("th", {{"scope", "col"}}, "Created");
    }
    auto body = html.open("tbody");
    for (const Record& record : list.records) {
      auto row = html.open("tr");
      {
        auto cell = html.open("td");
        auto link = html.open("a", {{Address::href, url_of_record(name, record.id)}});
        html.element("code", {{"class", "id"}}, record.id);
      }
      auto cell = html.open("td");
      show_time(html, record.created_at);
    }
  }
  show_pager(html, Url() / "records" / name, visit.cursor(), list.next, "Older records");
  return document;
}

Result<Document> record_page(Visit& visit, const std::string& name, const std::string& id) {
  PLAYFS_TRY(const service::Collection* collection, find_collection(name));
  PLAYFS_TRY(Record record, visit.reader.get(collection->name, id));
  Document document;
  document.title = id;
  document.section = Section::records;
  document.crumbs = {{"Records", Url() / "records"}, {name, Url() / "records" / name}};
  Html& html = document.main;
  html.element("h1", {{"class", "file"}}, id);
  html.element("pre", {{"class", "json"}, {"tabindex", "0"}, {"aria-label", "The record"}},
               wire::to_pretty_text(wire::encode_record(record)));
  {
    auto line = html.open("p", {{"class", "record"}});
    html.link(visit.site.api / name / id, "The same from the Data API");
  }
  return document;
}

}  // namespace playfs::http
