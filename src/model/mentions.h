// The agents that a text mentions. A pure function, for any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace playfs {

inline constexpr std::size_t kMaxMentions = 50;        ///< of one text; further ones are ignored
inline constexpr std::size_t kMaxMentionLength = 127;  ///< bytes, as in the commit ioctl; longer ones are no mention

/// The handles after an "@" in a text, without the "@", each once, in the order of their first mention.
///
/// A handle is letters, digits and "_", with single "." and "-" between them: "ask @ada.l, please." mentions "ada.l".
/// Scripts that use no spaces do not run on from another: "问@ada吧" mentions "ada". These are not mentions:
/// - addresses and names of packages: ada@example.org, @ada@example.org, git@host, @types/node, \@ada;
/// - what stands in a URL, in `code` or in a fenced block of code, as Markdown has them;
/// - what stands in a quoted line ("> @ada wrote"): its author has already mentioned her.
///
/// Nobody checks whether an agent of that name exists.
std::vector<std::string> mentions_in(std::string_view body);
/// Whom a message mentions after its text was edited: those in the text, and those of `before` who were mentioned
/// besides the old text.
std::vector<std::string> mentions_after_edit(std::vector<std::string> before, std::string_view old_body,
                                             std::string_view body);

}  // namespace playfs
