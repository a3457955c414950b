#include "model/instructions.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

TEST(Instructions, AreWhatAgentsLoadByThemselves) {
  for (const char* path : {"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/settings.json", ".claude",
                           ".cursor/rules/x.mdc", ".cursorrules", ".mcp.json", ".envrc", ".vscode/tasks.json",
                           ".github/copilot-instructions.md", "src/deep/AGENTS.md", "src/.claude/hooks/run.sh",
                           "opencode.json", ".opencode/x", "QWEN.md", ".agents/skills/x/SKILL.md", "AGENT.md"})
    EXPECT_TRUE(gives_instructions(path)) << path;
}

TEST(Instructions, AreFoundAsACaseInsensitiveReaderFindsThem) {
  for (const char* path : {"agents.md", "Agents.MD", ".Claude/x", "AGENTS.md.", "AGENTS.md ", "AGENTS.md::$DATA",
                           "AGENT\u017f.md", "\u200cAGENTS.md", ".MCP.json"})
    EXPECT_TRUE(gives_instructions(path)) << path;
}

TEST(Instructions, AreNoOtherFiles) {
  for (const char* path :
       {"", "README.md", "AGENTS", "AGENTS.md.bak", "MYAGENTS.md", "agents/ada", "claude.py", ".gitignore",
        ".github/workflows/x.yml", ".env", "vscode/x", "docs/agents.rst", "opencode", "quick.md", "a", "c", "."})
    EXPECT_FALSE(gives_instructions(path)) << path;
}

TEST(Instructions, OfAManifestAreListedByPath) {
  Manifest manifest;
  for (const char* path : {"src/x.c", "src/CLAUDE.md", "AGENTS.md", ".vscode/a"}) manifest.files[path];
  EXPECT_EQ(instructions_in(manifest), (std::vector<std::string>{".vscode/a", "AGENTS.md", "src/CLAUDE.md"}));
}

}  // namespace
}  // namespace playfs
