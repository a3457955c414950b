// Contents as git names and encodes them in patches. Callable on several threads at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::compare {

/// git's name of this content: 40 hex digits. Whoever chooses contents can make two of one name; it proves nothing.
Result<std::string> blob_id(std::string_view content);

/// The lines of a "GIT binary patch" between the two, which applies in both directions, also if they are equal.
/// REQUIRES: less than 512 MiB each.
Result<std::vector<std::string>> binary_patch(std::string_view before, std::string_view after);

}  // namespace playfs::compare
