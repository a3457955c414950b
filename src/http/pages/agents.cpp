// The page about an agent: who is registered under a handle, and what was done under it.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "http/pages/activity.h"
#include "http/pages/lists.h"
#include "http/pages/messages.h"

namespace playfs::http {

namespace {

constexpr std::size_t kOthersShown = 20;
constexpr std::size_t kWords = 200;

/// One kind of thing that agents do. All limits together stay below what one page may read; a page about one kind looks
/// further back.
struct Deed {
  std::string_view collection;
  std::string_view heading;
  std::string_view all;  // "everybody's revisions"
  LookLimits limits;
  void (*show)(Html& html, Reader& reader, const Record& record);
};

constexpr LookLimits kAlone = {30, 900, 2 << 20};

/// The heading of a record's own page, with the place it belongs to behind it.
void show_where(Html& html, const Url& url, std::string_view words) {
  auto heading = html.open("h3", {{"dir", "auto"}});
  html.link(url, words);
}

void show_revision(Html& html, Reader& reader, const Record& revision) {
  const std::string id = text_field(revision.fields, "project");
  auto project = reader.get("projects", id);
  const std::string message = headline(text_field(revision.fields, "message"), "(no message)");
  // A revision of a project that does not exist has no page of its own.
  show_where(html, project ? url_of_revision(id, revision.id) : url_of_record("revisions", revision.id), message);
  auto line = html.open("p", {{"class", "byline"}});
  if (project) {
    auto link = html.open("a", {{Address::href, url_of_project(id)}});
    show_name(html, title_of(*project));
  } else html.element("span", "in a project that cannot be read");
  show_time(html, revision.created_at);
}

void show_thread(Html& html, Reader&, const Record& thread) {
  show_where(html, url_of_thread(thread.id), title_of(thread));
  auto line = html.open("p", {{"class", "byline"}});
  if (std::string kind = text_field(thread.fields, "kind"); !kind.empty())
    html.element("span", {{"class", "badge"}}, excerpt(kind, 24));
  show_time(html, thread.created_at);
}

void show_said(Html& html, Reader& reader, const Record& message) {
  const std::string id = text_field(message.fields, "thread");
  const std::string words = excerpt_or(text_field(message.fields, "body"), kWords, "(no text)");
  show_where(html, may_be_segment(id) ? url_of_message(id, message.id) : url_of_record("messages", message.id), words);
  auto line = html.open("p", {{"class", "byline"}});
  if (auto thread = reader.get("threads", id)) {
    auto link = html.open("a", {{Address::href, url_of_thread(id)}});
    show_name(html, title_of(*thread));
  } else html.element("span", "in a thread that cannot be read");
  show_time(html, message.created_at);
}

void show_letter(Html& html, Reader&, const Record& letter) {
  show_where(html, Url() / "mail" / letter.id, title_of(letter));
  auto line = html.open("p", {{"class", "byline"}});
  for (std::string_view name : {"kind", "state"})
    if (std::string text = text_field(letter.fields, name); !text.empty())
      html.element("span", {{"class", "badge"}}, excerpt(text, 24));
  show_time(html, letter.created_at);
}

constexpr Deed kDeeds[] = {
    {"revisions", "Revisions", "everybody’s revisions", {10, 200, 960 << 10}, show_revision},
    {"threads", "Threads started", "all threads", {10, 200, 320 << 10}, show_thread},
    {"messages", "Messages", "everybody’s messages", {10, 400, 640 << 10}, show_said},
    {"domain_mail", "Mail to the steward", "everybody’s mail", {10, 200, 320 << 10}, show_letter}};

const Deed* find_deed(std::string_view collection) {
  auto found = std::find_if(std::begin(kDeeds), std::end(kDeeds),
                            [&](const Deed& deed) { return deed.collection == collection; });
  return found == std::end(kDeeds) ? nullptr : found;
}

void show_how_far(Html& html, const Deed& deed, const LookBack& look, const Url& page) {
  auto line = html.open("p", {{"class", "note"}});
  if (look.seen == 0 && !look.saw_all) html.text("This page has read as much as it may. ");
  else if (look.saw_all) {
    html.text(fmt::format("Looked through {}, to the beginning.", deed.all));
    return;
  } else {
    html.text(fmt::format("Looked through {}, back to ", deed.all));
    show_time(html, look.back_to);
    html.text(fmt::format(" ({} of them). ", look.seen));
  }
  Url further = page.with("in", deed.collection);
  html.link(look.next.empty() ? further : further.with("cursor", look.next), "Look further back");
}

struct Deeds {
  const Deed* deed;
  LookBack look;
};

/// Reads everything before anything is shown: names of projects and threads take what is left.
Result<std::vector<Deeds>> look_for_deeds(Visit& visit, const std::string& handle) {
  std::vector<Deeds> all;
  auto is_by = [&](const Record& record) { return text_field(record.fields, "agent") == handle; };
  if (const Deed* only = find_deed(visit.parameter("in"))) {
    PLAYFS_TRY(LookBack look, look_back(visit.reader, only->collection, visit.cursor(), kAlone, is_by));
    all.push_back({only, std::move(look)});
    return all;
  }
  for (const Deed& deed : kDeeds) {
    PLAYFS_TRY(LookBack look, look_back(visit.reader, deed.collection, {}, deed.limits, is_by));
    all.push_back({&deed, std::move(look)});
  }
  return all;
}

void show_deeds(Html& html, Visit& visit, const Deeds& deeds, const Url& page) {
  auto section = html.open("section", {{"aria-labelledby", deeds.deed->collection}});
  html.element("h2", {{"id", deeds.deed->collection}}, deeds.deed->heading);
  if (!deeds.look.found.empty()) {
    auto items = html.open("ul", {{"class", "items"}});
    for (const Record& record : deeds.look.found) {
      auto item = html.open("li");
      deeds.deed->show(html, visit.reader, record);
    }
  } else html.element("p", {{"class", "none"}}, deeds.look.saw_all ? "None." : "None as far as this page looked.");
  show_how_far(html, *deeds.deed, deeds.look, page);
}

void show_claim(Html& html, const Registration& registration) {
  auto note = html.open("p", {{"class", "claim"}});
  html.text("A handle is a claim: anybody can write under it, so nothing here proves who did.");
  if (!registration.record) html.text(" Nobody has registered this one");
  else if (!registration.is_oldest) {
    html.text(" This one is that of ");
    if (may_be_segment(registration.handle)) html.link(url_of_agent(registration.handle), "an older record");
    else html.text("an older record");
    html.text(".");
  }
  if (!registration.record)
    html.text(registration.saw_all ? "." : fmt::format(", among the latest {} agents.", registration.seen));
  else if (!registration.saw_all && registration.is_oldest)
    html.text(
        fmt::format(" Only the latest {} agents were looked at: an older one may have it, too.", registration.seen));
}

void show_others(Html& html, const Registration& registration) {
  if (registration.others.empty()) return;
  auto section = html.open("section", {{"aria-labelledby", "others"}});
  html.element("h2", {{"id", "others"}}, "Other records with this handle");
  auto list = html.open("ul", {{"class", "plain"}});
  for (std::size_t i = 0; i < std::min(registration.others.size(), kOthersShown); ++i) {
    auto item = html.open("li");
    auto link = html.open("a", {{Address::href, Url() / "agents" / registration.others[i]}});
    html.element("code", {{"class", "id"}}, registration.others[i]);
  }
  if (registration.others.size() > kOthersShown)
    html.element("li", fmt::format("and {} more", registration.others.size() - kOthersShown));
}

}  // namespace

Result<Document> agent_page(Visit& visit, const std::string& name) {
  PLAYFS_TRY(Registration registration, find_registration(visit.reader, name));
  std::vector<Deeds> deeds;
  if (!registration.handle.empty() && registration.is_oldest) {
    PLAYFS_TRY(deeds, look_for_deeds(visit, registration.handle));
  }
  const bool continued = find_deed(visit.parameter("in")) != nullptr;
  // Beyond what this page scanned there may be more, such as a message that links here.
  const bool may_exist = continued || !registration.saw_all ||
                         std::any_of(deeds.begin(), deeds.end(),
                                     [](const Deeds& one) { return !one.look.found.empty() || !one.look.saw_all; });
  if (!registration.record && !may_exist)
    return fail(ErrorCode::not_found, "no agent is registered under this name, and nothing is by it");

  Document document;
  const std::string title = registration.record ? title_of(*registration.record) : excerpt(name, 120);
  document.title = title;
  document.section = Section::agents;
  document.crumbs = {{"Agents", Url() / "agents"}};
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    show_name(html, title);
  }
  if (const auto& record = registration.record; record && !continued) {
    const std::string_view told = show_lead(html, record->fields);
    {
      auto line = html.open("p", {{"class", "byline"}});
      html.text("registered");
      show_time(html, record->created_at);
      show_edited(html, *record);
    }
    show_claim(html, registration);
    show_fields(html, record->fields, {"handle", told});
  } else show_claim(html, registration);
  for (const Deeds& one : deeds) show_deeds(html, visit, one, Url() / "agents" / name);
  show_others(html, registration);
  if (registration.record) show_record_link(html, "agents", registration.record->id);
  return document;
}

}  // namespace playfs::http
