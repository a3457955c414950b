// List entries that several pages show. Pure except for reading.
#pragma once

#include <string_view>

#include "http/pages/views.h"

namespace playfs::http {

/// A project with its head's message, or a thread, as an item of the open list, with a heading of that level.
void show_project_item(Html& html, Tag level, Reader& reader, const Record& project);
void show_thread_item(Html& html, Tag level, const Record& thread);

/// The record's name, title or handle; otherwise its id.
std::string title_of(const Record& record);
/// The record's description, summary or the like; may be empty.
std::string description_of(const JsonObject& fields);

/// The agent, if there is one, and the time.
void show_byline(Html& html, std::string_view agent, std::string_view time);

/// The link to the record itself, at the end of every page about one.
void show_record_link(Html& html, std::string_view collection, std::string_view id);

}  // namespace playfs::http
