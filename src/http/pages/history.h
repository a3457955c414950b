// What a project's page and its log have in common. Pure.
#pragma once

#include <string>

#include "http/pages/graph.h"
#include "http/pages/html.h"
#include "model/records.h"

namespace playfs::http {

enum class Tab { files, history };
void show_tabs(Html& html, const Project& project, Tab tab);

/// The parts of a revision that a log shows. The manifest is not read, so a broken one does no harm here.
struct LogEntry {
  GraphNode node;
  std::string agent, message, time;
};

LogEntry log_entry_of(const Record& record, const std::string& head);

}  // namespace playfs::http
