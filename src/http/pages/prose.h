// Text by strangers, shown as text; the addresses in it, and the agents that it mentions, are links. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/pages/html.h"

namespace playfs::http {

/// Long text with its line breaks. An "@" with one of `handles` behind it links to that agent.
void show_prose(Html& html, std::string_view text, const std::vector<std::string>& handles = {});

/// A link if it is a plain web address, or one of this site; text otherwise.
void show_address(Html& html, std::string_view address);

/// An agent's handle, with a link to the page about it.
void show_agent(Html& html, std::string_view handle);

/// The links of one text; what follows them stays text.
inline constexpr std::size_t kMostLinks = 100;

}  // namespace playfs::http
