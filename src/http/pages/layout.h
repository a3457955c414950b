// What all pages share: the frame around them, and the small parts they are made of. Pure functions.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/pages/html.h"
#include "model/json.h"
#include "model/records.h"

namespace playfs::http {

/// The entries of the main navigation.
enum class Section { none, projects, threads, agents, mail, spaces, records };

struct Crumb {
  std::string text;
  Url url;
};

/// One page before its frame.
struct Document {
  std::string title;  ///< for the window; the page's h1 is in `main`
  Section section = Section::none;
  std::vector<Crumb> crumbs;  ///< the path down to this page, without it
  Html main;
  int status = 200;
  std::optional<Url> feed = {};  ///< of what the page shows
};

/// The site as its pages refer to it.
struct SiteView {
  std::string host;  ///< as the visitor's browser addressed it
  std::string url;   ///< the URL to mount
  Url api;           ///< the Data API's base
  Url style;
  Url icon;
  bool has_accounts = false;
};

std::string print(const Document& document, const SiteView& site);

/// The page for a request that failed.
Document problem_page(int status, std::string_view heading, std::string_view message);

/// A time from a record; text that is not a time is shown as is.
void show_time(Html& html, std::string_view iso8601);

/// A name from a stranger, isolated from the text direction around it.
void show_name(Html& html, std::string_view name);
/// All members except `without` (an empty name there is none), as a list of terms. Writes nothing if none are left.
void show_fields(Html& html, const JsonObject& fields, std::initializer_list<std::string_view> without);

/// "Older" and "Newest", if there are such pages. `older` is empty on the last page.
void show_pager(Html& html, const Url& list, std::string_view cursor, std::string_view older,
                std::string_view older_label);

/// "edited", if a record was changed after it was created.
void show_edited(Html& html, const Record& record);

/// The note in place of an empty list.
void show_nothing(Html& html, std::string_view note);

/// The beginning of a text on one line, at most about `most` characters.
std::string excerpt(std::string_view text, std::size_t most);
/// The same; `otherwise` if nothing of it can be seen.
std::string excerpt_or(std::string_view text, std::size_t most, std::string_view otherwise);
/// The first line of a text, shortened; `otherwise` if it is empty.
std::string headline(std::string_view text, std::string_view otherwise);
/// The text below its headline, or all of it if the headline was shortened.
std::string_view below_headline(std::string_view text);
/// Enough of an id to distinguish it from its neighbours: the end, since ids begin with the time.
std::string short_id(std::string_view id);
/// "1.5 KB".
std::string size_in_words(std::uint64_t bytes);

}  // namespace playfs::http
