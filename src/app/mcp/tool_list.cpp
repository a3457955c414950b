#include "app/mcp/tool_list.h"

#include <string>

#include "model/kinds.h"

namespace playfs::app {

namespace {

Json text(const char* description) { return JsonObject{{"type", "string"}, {"description", description}}; }
Json plain(const char* type) { return JsonObject{{"type", type}}; }
Json texts(const char* description) {
  return JsonObject{{"type", "array"}, {"items", plain("string")}, {"description", description}};
}

template <class Words>
Json one_of(const Words& words) {
  Json::Array list;
  for (const auto& word : words) list.emplace_back(word);
  return JsonObject{{"enum", std::move(list)}};
}
Json one_of(std::initializer_list<const char*> words) { return one_of<std::initializer_list<const char*>>(words); }

Json tool(const char* name, const char* description, bool only_reads, JsonObject properties,
          const char* required = nullptr) {
  JsonObject schema{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (required) schema.append("required", Json::Array{required});
  JsonObject made{{"name", name}, {"description", description}, {"inputSchema", std::move(schema)}};
  if (only_reads) made.append("annotations", JsonObject{{"readOnlyHint", true}});
  return made;
}

Json list_tool() {
  return tool("list", "List the project's files, your unpublished changes, or all threads.", true,
              {{"what", one_of({"files", "changes", "threads"})},
               {"path", text("only files below this directory")},
               {"cursor", text("from the previous page")}});
}

Json read_tool() {
  return tool("read", "Read a file or a thread.", true,
              {{"path", text("a file, as list shows it")},
               {"revision", text("as published: a revision's id, or \"head\"; default: with your changes")},
               {"offset", JsonObject{{"type", "integer"}, {"description", "first line, from 1"}}},
               {"limit", JsonObject{{"type", "integer"}, {"description", "lines"}}},
               {"thread", text("a thread's id or title")}});
}

Json write_tool() {
  return tool("write",
              "Write, edit or delete a file; nothing is published. Give content for a whole file, or old and new to "
              "replace one place, or delete.",
              false,
              {{"path", plain("string")},
               {"content", plain("string")},
               {"old", text("a text that occurs once")},
               {"new", text("what replaces it")},
               {"all", JsonObject{{"type", "boolean"}, {"description", "replace each occurrence of old"}}},
               {"delete", plain("boolean")},
               {"executable", plain("boolean")}},
              "path");
}

Json publish_tool() {
  return tool(
      "publish",
      "Publish all changes as a revision that everybody sees. Actions: preview shows what would be sent; update "
      "merges others' latest revision into your files; discard drops your changes to paths; wait and cancel are "
      "for a publication under way.",
      false,
      {{"message", text("what changed, and why")},
       {"action", one_of({"publish", "preview", "update", "discard", "wait", "cancel"})},
       {"paths", texts("to discard")},
       {"resolved", JsonObject{{"type", "boolean"}, {"description", "files in conflict are right as they are"}}},
       {"wait_seconds", plain("integer")}});
}

Json talk_tool() {
  return tool("talk", "Post a public message to a thread, or begin one. @handle mentions an agent.", false,
              {{"text", plain("string")},
               {"thread", text("its id or title")},
               {"reply_to", text("a message's id")},
               {"title", text("of a new thread")},
               {"kind", one_of(kThreadKinds)},
               {"dry_run", plain("boolean")}},
              "text");
}

Json inbox_tool() {
  return tool("inbox", "Show what is new for you: mentions, replies, answers.", true,
              {{"wait_seconds", JsonObject{{"type", "integer"}, {"description", "wait for something new"}}},
               {"seen", texts("ids to mark as seen first")},
               {"all", JsonObject{{"type", "boolean"}, {"description", "with what was seen"}}}});
}

}  // namespace

Json::Array tool_definitions(bool is_read_only) {
  Json::Array tools{list_tool(), read_tool()};
  if (!is_read_only) tools.insert(tools.end(), {write_tool(), publish_tool(), talk_tool()});
  tools.push_back(inbox_tool());
  return tools;
}

Json::Array resource_template_definitions() {
  return {JsonObject{{"uriTemplate", "playfs://work/{+path}"},
                     {"name", "file"},
                     {"description", "A file of the project, with unpublished changes"}},
          JsonObject{{"uriTemplate", "playfs://threads/{id}"},
                     {"name", "thread"},
                     {"description", "A thread with its messages"},
                     {"mimeType", "text/plain"}}};
}

}  // namespace playfs::app
