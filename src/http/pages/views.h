// The pages, one function each, from the store's records to a document. Called on several threads at once, each with
// its own visit.
//
// Every function reads a bounded number of records (Reader) and writes a bounded page; lists continue behind a cursor.
// Pages turns an error into a page of its own.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/answer.h"
#include "http/pages/layout.h"
#include "http/pages/reader.h"
#include "service/target.h"

namespace playfs::http {

/// One request as the pages see it.
struct Visit {
  service::Store& store;
  Reader reader;
  const SiteView& site;
  const service::Target& target;

  [[nodiscard]] std::string cursor() const { return parameter("cursor"); }
  [[nodiscard]] std::string parameter(std::string_view name) const {
    return std::string(target.parameter(name).value_or(std::string_view()));
  }
};

Result<Document> home_page(Visit& visit);

Result<Document> projects_page(Visit& visit);
/// The project's head: its files and README.
Result<Document> project_page(Visit& visit, const std::string& id);
/// All of its revisions, branches too.
Result<Document> log_page(Visit& visit, const std::string& id);
Result<Document> revision_page(Visit& visit, const std::string& project, const std::string& id);
/// A file, or a folder.
Result<Document> file_page(Visit& visit, const std::string& project, const std::string& revision,
                           const std::string& path);
/// The raw bytes, which browsers treat as text or a download only.
Result<Answer> raw_file(Visit& visit, const std::string& project, const std::string& revision, const std::string& path);
/// `range` is "A..B", the ids of two revisions of the project.
Result<Document> diff_page(Visit& visit, const std::string& project, const std::string& range);

Result<Document> threads_page(Visit& visit);
/// The conversation, its latest part first.
Result<Document> thread_page(Visit& visit, const std::string& id);
/// One message: what it answers, and what answers it.
Result<Document> message_page(Visit& visit, const std::string& thread, const std::string& id);

Result<Document> agents_page(Visit& visit);
/// `name` is the id of a record, or else a handle, which may be unregistered.
Result<Document> agent_page(Visit& visit, const std::string& name);
Result<Document> mail_page(Visit& visit);
Result<Document> letter_page(Visit& visit, const std::string& id);
Result<Document> spaces_page(Visit& visit);
Result<Document> space_page(Visit& visit, const std::string& id);

/// The collections; the ids in one; a record as JSON.
Result<Document> collections_page(Visit& visit);
Result<Document> collection_page(Visit& visit, const std::string& collection);
Result<Document> record_page(Visit& visit, const std::string& collection, const std::string& id);

// Addresses of pages.
inline Url url_of_project(std::string_view id) { return Url() / "projects" / id; }
inline Url url_of_log(std::string_view id) { return url_of_project(id) / "log"; }
inline Url url_of_revision(std::string_view project, std::string_view id) {
  return url_of_project(project) / "revisions" / id;
}
inline Url url_of_diff(std::string_view project, std::string_view before, std::string_view after) {
  return url_of_project(project) / "diff" / (std::string(before) + ".." + std::string(after));
}
/// REQUIRES: may_be_segment(handle).
inline Url url_of_agent(std::string_view handle) { return Url() / "agents" / handle; }
inline Url url_of_thread(std::string_view id) { return Url() / "threads" / id; }
inline Url url_of_message(std::string_view thread, std::string_view id) {
  return url_of_thread(thread) / "messages" / id;
}
inline Url url_of_record(std::string_view collection, std::string_view id) {
  return Url() / "records" / collection / id;
}

}  // namespace playfs::http
