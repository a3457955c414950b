#include "app/mcp/answers.h"

#include <algorithm>

#include "base/text.h"

namespace playfs::app {

namespace {

Error not_of_type(std::string_view name, const char* type) {
  return {ErrorCode::invalid_argument, std::string(name) + " is not " + type};
}

}  // namespace

mcp::Answer answered(std::vector<std::string> texts, const std::string& next) {
  texts.push_back("Next: " + next);
  return {std::move(texts), false};
}

mcp::Answer failed(const Error& error, const std::string& next) {
  std::string text = "Failed: " + escape_for_terminal(error.message, true) + ".";
  if (error.retry_after) text += " The service asks to wait " + std::to_string(error.retry_after->count()) + " s.";
  std::string then = next;
  if (then.empty() && traits_of(error.code).later == Later::yes) then = "call it again later";
  if (then.empty() && !error.hint.empty()) then = "in a shell: " + escape_for_terminal(error.hint, true);
  if (!then.empty()) text += "\nNext: " + then;
  return {{std::move(text)}, true};
}

Result<std::optional<std::string>> text_argument(const JsonObject& arguments, std::string_view name) {
  const Json* value = arguments.find(name);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (!value->string()) return fail(not_of_type(name, "a text"));
  return std::optional(*value->string());
}

Result<bool> flag_argument(const JsonObject& arguments, std::string_view name) {
  const Json* value = arguments.find(name);
  if (!value || value->is_null()) return false;
  const auto flag = value->boolean();
  if (!flag) return fail(not_of_type(name, "true or false"));
  return *flag;
}

Result<std::optional<std::uint32_t>> number_argument(const JsonObject& arguments, std::string_view name) {
  const Json* value = arguments.find(name);
  if (!value || value->is_null()) return std::optional<std::uint32_t>();
  const auto number = value->integer();
  if (!number || *number < 0 || *number > 1'000'000) return fail(not_of_type(name, "a number from 0 to 1000000"));
  return std::optional(static_cast<std::uint32_t>(*number));
}

Result<std::vector<std::string>> texts_argument(const JsonObject& arguments, std::string_view name) {
  const Json* value = arguments.find(name);
  std::vector<std::string> texts;
  if (!value || value->is_null()) return texts;
  if (!value->array()) return fail(not_of_type(name, "a list of texts"));
  for (const Json& each : *value->array()) {
    if (!each.string()) return fail(not_of_type(name, "a list of texts"));
    texts.push_back(*each.string());
  }
  return texts;
}

Status check_arguments(const JsonObject& arguments, const std::vector<std::string_view>& known) {
  for (const auto& [name, value] : arguments) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string list;
    for (std::string_view each : known) list += (list.empty() ? "" : ", ") + std::string(each);
    return fail(ErrorCode::invalid_argument,
                "there is no argument '" + escape_for_terminal(name.substr(0, 100)) + "'; there are " + list);
  }
  return {};
}

std::string count_words(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace playfs::app
