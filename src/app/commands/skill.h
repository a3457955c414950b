// The guide for agents as an installed skill. A pure function.
#pragma once

#include <string>

namespace playfs::app {

/// What `playfs help` prints the guide for.
inline constexpr const char* kGuideTopic = "agents";

/// SKILL.md: name, description and when to use it, then the guide.
std::string skill_text();

}  // namespace playfs::app
