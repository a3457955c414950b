#include "app/clone_state.h"

#include "base/text.h"

namespace playfs::app {

namespace {

void append_line(std::string& section, const std::string& path, const std::string& why = {}) {
  section += "  " + escape_for_terminal(path) + (why.empty() ? "" : ": " + escape_for_terminal(why)) + "\n";
}

std::string titled(const char* heading, const std::string& section) {
  return section.empty() ? "" : "\n" + std::string(heading) + "\n" + section;
}

Json path_json(const std::string& path, const std::string& why) { return JsonObject{{"path", path}, {"reason", why}}; }

}  // namespace

std::string clone_state_text(const clone::DirectoryState& state) {
  std::string left_out, unread, kept;
  for (const auto& [path, why] : state.left_out) append_line(left_out, path, why);
  for (const auto& each : state.unread) append_line(unread, each.path, each.why);
  for (const std::string& path : state.lost_and_found) append_line(kept, path);
  std::string text;
  if (state.is_interrupted)
    text += "\nA command was interrupted before this directory had all of its work (use \"playfs update\" to go on)\n";
  text += titled("Left out, or still in an older version (\"playfs update\" tries again):", left_out);
  text += titled("Not read, so neither staged nor deleted:", unread);
  text += titled("Changed here while playfs replaced it, and kept (compare it with your file, then remove it):", kept);
  return text;
}

void add_clone_state(JsonObject& document, const clone::DirectoryState& state) {
  Json::Array left_out, unread, kept;
  for (const auto& [path, why] : state.left_out) left_out.push_back(path_json(path, why));
  for (const auto& each : state.unread) unread.push_back(path_json(each.path, each.why));
  for (const std::string& path : state.lost_and_found) kept.emplace_back(path);
  document.set("interrupted", state.is_interrupted);
  document.set("left_out", std::move(left_out));
  document.set("unread", std::move(unread));
  document.set("lost_and_found", std::move(kept));
  if (state.is_interrupted || !state.left_out.empty()) document.set("next", "playfs update");
}

}  // namespace playfs::app
