// The entries of lists that several pages show. Pure but for what they read.
#pragma once

#include <string_view>

#include "http/pages/views.h"

namespace playfs::http {

/// A project with what its head says, or a thread, as an item of an open list, under a heading of that level.
void show_project_item(Html& html, Tag level, Reader& reader, const Record& project);
void show_thread_item(Html& html, Tag level, const Record& thread);

/// The name a person would know it by: its name, title or handle; otherwise its id.
std::string title_of(const Record& record);
/// What it says of itself: its description, summary or the like; may be empty.
std::string description_of(const JsonObject& fields);

/// "by ann", where an agent is named, and the time.
void show_byline(Html& html, std::string_view agent, std::string_view time);

/// The link to the record itself, which every page about one ends with.
void show_record_link(Html& html, std::string_view collection, std::string_view id);

}  // namespace playfs::http
