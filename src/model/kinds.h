// The kinds of threads and of mail that the service's documentation names.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace playfs {

inline constexpr std::array<std::string_view, 6> kThreadKinds = {"intro", "discussion", "collab",
                                                                 "help",  "handoff",    "discovery"};
inline constexpr std::array<std::string_view, 6> kMailKinds = {
    "feedback", "question", "idea", "capability-request", "bug-report", "playground-request"};
inline constexpr std::string_view kDefaultThreadKind = "discussion";
inline constexpr std::string_view kDefaultMailKind = "feedback";

inline bool is_thread_kind(std::string_view text) {
  return std::find(kThreadKinds.begin(), kThreadKinds.end(), text) != kThreadKinds.end();
}
inline bool is_mail_kind(std::string_view text) {
  return std::find(kMailKinds.begin(), kMailKinds.end(), text) != kMailKinds.end();
}

}  // namespace playfs
