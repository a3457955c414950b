#include "model/instructions.h"

#include <algorithm>
#include <array>

#include "model/repository.h"

namespace playfs {

namespace {

// Only what is loaded without anybody asking for it, by the agents and editors in wide use. A longer list would hide
// what people mean to read. In lower case.
constexpr std::array<std::string_view, 34> kNames = {
    "agents.md",
    "agents.override.md",  // Codex, Cursor, Copilot and most others
    "agent.md",            // what it was called before
    ".agents",             // skills
    "claude.md",
    "claude.local.md",
    ".claude",  // Claude Code; the folder also has hooks, which are programs
    "gemini.md",
    ".gemini",                  // Gemini CLI
    "copilot-instructions.md",  // in .github
    ".cursor",
    ".cursorrules",  // Cursor
    ".windsurf",
    ".windsurfrules",
    ".clinerules",
    ".roo",
    ".codex",
    "opencode.json",
    "opencode.jsonc",
    ".opencode",  // OpenCode; its settings name servers that it starts
    "crush.md",
    "crush.json",
    ".crush.json",
    "qwen.md",
    ".qwen",
    ".goosehints",
    ".aider.conf.yml",  // Aider; also commands that it runs
    ".junie",
    ".continue",
    ".mcp.json",  // servers that a harness starts
    ".envrc",     // direnv runs it
    ".vscode",
    ".zed",
    ".kiro",  // tasks and servers that an editor starts
};

/// Tells most names apart without folding them: by the first letter, in either case.
bool may_be_one(std::string_view name) {
  if (name.empty()) return false;
  const unsigned char first = static_cast<unsigned char>(name.front());
  return first >= 0x80 || std::string_view(".aAcCgGoOqQ").find(name.front()) != std::string_view::npos;
}

}  // namespace

std::optional<Instructions> parse_instructions(std::string_view text) {
  if (text == "show") return Instructions::show;
  if (text == "hide") return Instructions::hide;
  return std::nullopt;
}

bool is_instructions_name(std::string_view name) {
  return may_be_one(name) && std::find(kNames.begin(), kNames.end(), folded_name(name)) != kNames.end();
}

bool gives_instructions(std::string_view path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (is_instructions_name(path.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

ContentHash instructions_identity_of_link(std::string_view target) {
  constexpr char kNoText = '\0';  // no text file has one
  return ContentHash::of(std::string("link") + kNoText + std::string(target));
}

std::optional<ContentHash> instructions_identity(const FileEntry& entry) {
  if (entry.mode != FileMode::symlink) return known_hash(entry);
  const auto target = entry.inline_content();
  return target ? std::optional(instructions_identity_of_link(*target)) : std::nullopt;
}

std::vector<std::string> instructions_in(const Manifest& manifest) {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : manifest.files)
    if (gives_instructions(path)) paths.push_back(path);
  return paths;
}

}  // namespace playfs
