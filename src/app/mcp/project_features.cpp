#include "app/mcp/project_features.h"

#include <algorithm>

#include "app/mcp/answers.h"
#include "app/mcp/edit.h"
#include "app/mcp/tool_list.h"
#include "base/text_check.h"

namespace playfs::app {

namespace {

constexpr std::size_t kFilesInPage = 500;
constexpr std::size_t kResourcesInPage = 200;
constexpr std::size_t kLargestResource = 4 << 20;

constexpr std::string_view kFileUri = "playfs://work/";
constexpr std::string_view kThreadUri = "playfs://threads/";

// Cursors of resources/list, as text before base64: a path after which files go on, or that only threads are left.
constexpr std::string_view kAfterFile = "f/";
constexpr std::string_view kThreads = "t/";

std::string uri_of_file(const std::string& path) {
  std::string uri(kFileUri);
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    uri += (at == 0 ? "" : "/") + percent_encode(std::string_view(path).substr(at, slash - at));
    at = slash + 1;
  }
  return uri;
}

bool is_text(std::string_view content) {
  TextCheck check;
  check.update(content);
  return check.is_text();
}

std::string described(const WorkFiles::Entry& entry) {
  return safe(entry.path) + (entry.is_link         ? "  (link)"
                             : entry.is_executable ? "  " + std::to_string(entry.size) + "  (executable)"
                                                   : "  " + std::to_string(entry.size));
}

bool wants(const JsonObject& arguments, std::string_view name) { return arguments.find(name) != nullptr; }

std::string text_or_empty(const JsonObject& arguments, std::string_view name) {
  const Json* value = arguments.find(name);
  return value && value->string() ? *value->string() : std::string();
}

mcp::Answer or_failed(Result<mcp::Answer> answer) { return answer ? std::move(*answer) : failed(answer.error()); }

}  // namespace

ProjectFeatures::ProjectFeatures(const CommandContext& context, Workplace& workplace, const std::string& agent,
                                 bool is_read_only)
    : tools_(tool_definitions(is_read_only)),
      templates_(resource_template_definitions()),
      workplace_(workplace),
      files_lane_(context, agent),
      tree_lane_(context, agent),
      talk_lane_(context, agent),
      inbox_lane_(context, agent),
      publishing_(tree_lane_, workplace),
      talking_(talk_lane_, workplace),
      inbox_(inbox_lane_, workplace) {}

mcp::Turn ProjectFeatures::turn_of(const mcp::Request& request) const {
  if (request.method == "resources/list") {
    const auto cursor = from_base64(text_or_empty(request.params, "cursor"));
    return {cursor && cursor->starts_with(kThreads) ? kTalk : kFiles, {}};
  }
  if (request.method == "resources/read")
    return {text_or_empty(request.params, "uri").starts_with(kThreadUri) ? kTalk : kFiles, {}};
  const std::string tool = text_or_empty(request.params, "name");
  const Json* given = request.params.find("arguments");
  const JsonObject none;
  const JsonObject& arguments = given && given->object() ? *given->object() : none;
  if (tool == "talk" || (tool == "read" && (wants(arguments, "thread") || wants(arguments, "revision"))))
    return {kTalk, {}};
  if (tool == "inbox") return {kInbox, {}};
  const std::string what = text_or_empty(arguments, "what");
  if (tool == "list" && what == "threads") return {kTalk, {}};
  // Runs after earlier writes, so that they are included. Otherwise the two lanes do not wait for each other.
  if (tool == "publish" || (tool == "list" && what == "changes")) return {kTree, kFiles};
  return {kFiles, {}};
}

mcp::Answer ProjectFeatures::call(const std::string& tool, const JsonObject& arguments, mcp::Call& call) {
  if (tool == "publish") return publishing_.publish(arguments, call);
  if (tool == "talk") return talking_.talk(arguments);
  if (tool == "inbox") return inbox_.read(arguments, call);
  if (tool == "write") return or_failed(write(arguments));
  if (tool == "read") return or_failed(read(arguments));
  if (auto known = check_arguments(arguments, {"what", "path", "cursor"}); !known) return failed(known.error());
  auto what = text_argument(arguments, "what");
  if (!what) return failed(what.error());
  if (*what == "changes") return publishing_.changes();
  if (*what == "threads") return talking_.list_threads();
  if (*what && **what != "files") return failed({ErrorCode::invalid_argument, "what is files, changes or threads"});
  return list_files(arguments);
}

Result<const WorkFiles*> ProjectFeatures::files() {
  PLAYFS_TRY(const FoundWork* found, workplace_.enter(files_lane_));
  return found->files.get();
}

// Tools for files.

mcp::Answer ProjectFeatures::list_files(const JsonObject& arguments) {
  auto listed = [&]() -> Result<mcp::Answer> {
    PLAYFS_TRY(const auto given, text_argument(arguments, "path"));
    PLAYFS_TRY(const auto cursor, text_argument(arguments, "cursor"));
    PLAYFS_TRY(const std::string top, path_in_project(given.value_or("")));
    PLAYFS_TRY(const std::string after, path_in_project(cursor.value_or("")));
    PLAYFS_TRY(const WorkFiles* work, files());
    PLAYFS_TRY(const auto listing, work->list(top, after, kFilesInPage));
    std::string text;
    for (const auto& entry : listing.entries) text += described(entry) + "\n";
    if (text.empty()) return answered({"There are no files."}, "write one");
    if (!listing.goes_on) return answered({std::move(text)}, "read or write a file");
    return answered({std::move(text)}, "list with cursor=" + safe(listing.entries.back().path) + " for more");
  };
  return or_failed(listed());
}

Result<mcp::Answer> ProjectFeatures::read(const JsonObject& arguments) {
  PLAYFS_CHECK(check_arguments(arguments, {"path", "revision", "offset", "limit", "thread"}));
  PLAYFS_TRY(const auto thread, text_argument(arguments, "thread"));
  PLAYFS_TRY(const auto given, text_argument(arguments, "path"));
  PLAYFS_TRY(const auto revision, text_argument(arguments, "revision"));
  PLAYFS_TRY(const auto offset, number_argument(arguments, "offset"));
  PLAYFS_TRY(const auto limit, number_argument(arguments, "limit"));
  if (thread.has_value() == given.has_value())
    return fail(ErrorCode::invalid_argument, "read needs either a path or a thread");
  if (thread) return talking_.read_thread(*thread);
  PLAYFS_TRY(const std::string path, path_in_project(*given));
  std::string content;
  if (revision) {
    PLAYFS_TRY(content, talking_.published_file(*revision == "head" ? "" : *revision, path));
  } else {
    PLAYFS_TRY(const WorkFiles* work, files());
    PLAYFS_TRY(content, work->read(path));
  }
  if (!is_text(content))
    return answered({"'" + safe(path) + "' is not text; it has " + count_words(content.size(), "byte") + "."},
                    "resources/read of " + uri_of_file(path) + " has them");
  const Excerpt excerpt = lines_from(content, std::max(offset.value_or(1), 1U), limit);
  if (excerpt.next == 0)
    return answered({std::string(excerpt.text)}, revision ? "list or read more" : "write, to change it");
  return answered({std::string(excerpt.text)}, "read with offset=" + std::to_string(excerpt.next) + "; it has " +
                                                   count_words(excerpt.lines, "line"));
}

Result<mcp::Answer> ProjectFeatures::write(const JsonObject& arguments) {
  PLAYFS_TRY(const WriteRequest wanted, WriteRequest::from(arguments));
  PLAYFS_TRY(const WorkFiles* work, files());
  const std::string name = "'" + safe(wanted.path) + "'";
  if (wanted.is_deletion) {
    PLAYFS_CHECK(work->remove(wanted.path));
    return answered({"Deleted " + name + "."}, "publish with a message, once all is done");
  }
  std::string content = wanted.content;
  std::string what;
  if (!wanted.is_whole) {
    PLAYFS_TRY(const std::string before, work->read(wanted.path));
    PLAYFS_TRY(const Edited edited, edit(before, wanted));
    content = edited.text;
    what = "Replaced " + count_words(edited.count, "place") + " in " + name;
  }
  PLAYFS_TRY(const bool is_new, work->write(wanted.path, content, wanted.executable));
  if (what.empty()) what = (is_new ? "Created " : "Wrote ") + name;
  return answered({what + ": " + count_words(content.size(), "byte") + "."},
                  "publish with a message, once all is done");
}

// Resources.

Result<mcp::ResourcePage> ProjectFeatures::resources(const std::optional<std::string>& cursor, mcp::Call&) {
  if (!cursor) return file_page("");
  const auto place = from_base64(*cursor);
  if (place && *place == kThreads) return thread_page();
  if (!place || !place->starts_with(kAfterFile)) return fail(ErrorCode::invalid_argument, "there is no such cursor");
  PLAYFS_TRY(const std::string after, path_in_project(place->substr(kAfterFile.size())));
  return file_page(after);
}

Result<mcp::ResourcePage> ProjectFeatures::file_page(const std::string& after) {
  PLAYFS_TRY(const WorkFiles* work, files());
  PLAYFS_TRY(const auto listing, work->list("", after, kResourcesInPage));
  mcp::ResourcePage page;
  for (const auto& entry : listing.entries)
    if (!entry.is_link)
      page.resources.emplace_back(
          JsonObject{{"uri", uri_of_file(entry.path)}, {"name", entry.path}, {"size", entry.size}});
  page.next =
      to_base64(listing.goes_on ? std::string(kAfterFile) + listing.entries.back().path : std::string(kThreads));
  return page;
}

/// Those that cannot be asked for now are left out: the files are there nevertheless.
Result<mcp::ResourcePage> ProjectFeatures::thread_page() {
  mcp::ResourcePage page;
  auto threads = talking_.newest_threads();
  if (!threads && is_outage(threads.error().code)) return page;
  if (!threads) return fail(threads.error());
  for (const Record& thread : *threads) {
    const Json* title = thread.fields.find("title");
    page.resources.emplace_back(JsonObject{{"uri", std::string(kThreadUri) + percent_encode(thread.id)},
                                           {"name", title && title->string() ? *title->string() : thread.id},
                                           {"mimeType", "text/plain"}});
  }
  return page;
}

Result<JsonObject> ProjectFeatures::resource(const std::string& uri, mcp::Call&) {
  auto unknown = [&] { return fail(ErrorCode::not_found, "there is no resource " + safe(uri.substr(0, 200))); };
  const bool is_thread = uri.starts_with(kThreadUri);
  if (!is_thread && !uri.starts_with(kFileUri)) return unknown();
  const auto name = percent_decode(std::string_view(uri).substr((is_thread ? kThreadUri : kFileUri).size()));
  if (!name || name->empty()) return unknown();
  if (is_thread) {
    PLAYFS_TRY(std::string text, talking_.thread_text(*name, kLargestResource));
    return JsonObject{{"uri", uri}, {"mimeType", "text/plain"}, {"text", std::move(text)}};
  }
  auto path = path_in_project(*name);
  if (!path || path->empty()) return unknown();
  return file_contents(uri, *path);
}

Result<JsonObject> ProjectFeatures::file_contents(const std::string& uri, const std::string& path) {
  PLAYFS_TRY(const WorkFiles* work, files());
  PLAYFS_TRY(std::string content, work->read(path));
  if (content.size() > kLargestResource)
    return fail(ErrorCode::file_too_big, "'" + safe(path) + "' has " + count_words(content.size(), "byte") +
                                             ", too many for a resource; the tool read shows parts");
  if (!is_text(content))
    return JsonObject{{"uri", uri}, {"mimeType", "application/octet-stream"}, {"blob", to_base64(content)}};
  return JsonObject{{"uri", uri}, {"mimeType", "text/plain"}, {"text", std::move(content)}};
}

}  // namespace playfs::app
