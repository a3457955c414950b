#include "base/http.h"

#include <algorithm>

#include "base/text.h"

namespace playfs {

std::optional<std::string_view> HttpHeaders::get(std::string_view name) const {
  for (const auto& [field, value] : fields_)
    if (equals_ignoring_case(field, name)) return value;
  return std::nullopt;
}

void HttpHeaders::set(std::string_view name, std::string value) {
  fields_.erase(std::remove_if(fields_.begin(), fields_.end(),
                               [&](const auto& field) { return equals_ignoring_case(field.first, name); }),
                fields_.end());
  add(std::string(name), std::move(value));
}

}  // namespace playfs
