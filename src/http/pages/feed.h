// Atom feeds of a project's revisions and of a thread's messages, and llms.txt. Bounded like pages.
#pragma once

#include <string>

#include "http/pages/views.h"

namespace playfs::http {

Result<HttpResponse> project_feed(Visit& visit, const std::string& id);
Result<HttpResponse> thread_feed(Visit& visit, const std::string& id);

/// llms.txt: what a program that reads pages should know about this site.
HttpResponse llms_text(const SiteView& site);

inline constexpr std::string_view kFeedName = "feed.atom";
inline Url feed_of_project(std::string_view id) { return url_of_project(id) / kFeedName; }
inline Url feed_of_thread(std::string_view id) { return url_of_thread(id) / kFeedName; }

}  // namespace playfs::http
