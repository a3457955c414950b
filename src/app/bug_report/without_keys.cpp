#include "app/bug_report/without_keys.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::string_view kInItsPlace = "KEY";
constexpr std::string_view kBearer = "bearer ";

}  // namespace

WithoutKeys::WithoutKeys(const std::vector<std::string>& kept) {
  for (const std::string& value : kept) {
    take_out(value);
    // Texts are shown by lines.
    std::istringstream lines(value);
    for (std::string line; std::getline(lines, line);) take_out(std::string(trim(line, " \t\r")));
  }
}

/// Also as it is in JSON and in a URL.
void WithoutKeys::take_out(const std::string& value) {
  if (value.empty()) return;
  std::string in_json = wire::to_text(Json(value));
  in_json = in_json.substr(1, in_json.size() - 2);
  for (std::string each : {value, std::move(in_json), percent_encode(value)}) {
    sizes_.insert(each.size());
    values_.insert(std::move(each));
  }
}

std::string WithoutKeys::text(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto size = std::find_if(sizes_.begin(), sizes_.end(), [&](std::size_t each) {
      return each <= rest.size() && values_.contains(rest.substr(0, each));
    });
    if (size != sizes_.end()) {
      out += kInItsPlace;
      at += *size;
    } else if (equals_ignoring_case(rest.substr(0, kBearer.size()), kBearer)) {
      const std::size_t begin = std::min(rest.find_first_not_of(' ', kBearer.size()), rest.size());
      out.append(rest.substr(0, begin)).append(kInItsPlace);
      at += std::min(rest.find_first_of(" \t\r\n", begin), rest.size());
    } else {
      out += text[at++];
    }
  }
  return out;
}

Json WithoutKeys::json(const Json& value) const {
  if (const std::string* text = value.string()) return this->text(*text);
  if (const Json::Array* array = value.array()) {
    Json::Array out;
    for (const Json& each : *array) out.push_back(json(each));
    return out;
  }
  const JsonObject* object = value.object();
  if (object == nullptr) return value;
  JsonObject out;
  for (const auto& [name, each] : *object) out.set(text(name), json(each));
  return out;
}

}  // namespace playfs::app
