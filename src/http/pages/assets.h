// The files that pages load, built into the program (see embed.py).
#pragma once

#include <string_view>

namespace playfs::http {

std::string_view style_sheet();
std::string_view site_icon();

}  // namespace playfs::http
