// How far a publication has come, in one line of a terminal. Pure.
#pragma once

#include <chrono>
#include <string>

#include "vfs/file_system.h"

namespace playfs::app {

inline constexpr std::chrono::milliseconds kShowPublicationEvery{250};

/// "Uploading [####        ] 12/40 chunks, 140 KB of 480 KB, 34 s left"; "" if there is none.
std::string words_for_publication(const vfs::WorkStatus& status);
std::string words_for_publication(const publish::Progress& progress);

}  // namespace playfs::app
