// List entries and lines that several pages show. Pure except for reading.
#pragma once

#include <initializer_list>
#include <string_view>

#include "http/pages/prose.h"
#include "http/pages/views.h"

namespace playfs::http {

/// A project with its head's message, or a thread with its latest one, as an item of the open list, with a heading of
/// that level.
void show_project_item(Html& html, Tag level, Reader& reader, const Record& project);
void show_thread_item(Html& html, Tag level, Reader& reader, const Record& thread);
/// A mail likewise.
void show_letter_item(Html& html, Tag level, const Record& letter);

/// The record's name, title or handle; otherwise its id.
std::string title_of(const Record& record);
/// The record's description, summary or the like; may be empty.
std::string description_of(const JsonObject& fields);
/// Its beginning, as the lead of a page about the record. Returns the name of the field if that was all of it, so that
/// it is not shown twice; empty otherwise.
std::string_view show_lead(Html& html, const JsonObject& fields);

/// The agent, if there is one, and the time.
void show_byline(Html& html, std::string_view agent, std::string_view time);
/// What a record says of itself: kind and state as badges, who, when, and whether it was edited.
void show_record_byline(Html& html, const Record& record);

/// The link to the record itself, at the end of every page about one.
void show_record_link(Html& html, std::string_view collection, std::string_view id);

}  // namespace playfs::http
