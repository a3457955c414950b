// The text of one request through a control file, written piece by piece: what is collected is what a file would
// contain, and the parser and the file agree on when an object is complete. Pieces are fields, each after two bytes of
// offset.
#include "base/text.h"
#include "fuzz.h"
#include "vfs/control/request_text.h"
#include "vfs/control/requests.h"
#include "wire/json.h"

using namespace playfs;
using vfs::RequestText;

namespace {

const vfs::Form kForm{"message", {{"message", "why"}, {"agent", "who"}}, false, R"({"message": "why"})"};

void check_whole(const std::string& text) {
  RequestText whole{vfs::Caller{}};
  auto json = wire::parse_json(text);
  const bool is_object = json && json->object();
  if (is_object) FUZZ_CHECK(whole.may_take(0, text) && whole.completes(0, text));
  if (auto body = vfs::request_body(text, kForm)) {
    FUZZ_CHECK(body->find("message") && vfs::check_fields(*body, kForm));
    if (is_object) {
      FUZZ_CHECK(Json(*body) == *json);
    } else {
      const std::string& message = *body->find("message")->string();
      FUZZ_CHECK(text == message || text == message + "\n");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  RequestText text{vfs::Caller{}};
  std::string model;
  std::size_t begin = 0;
  while (!input.empty()) {
    const std::size_t offset = input.below(1024);
    const std::string_view piece = input.field();
    if (offset == 1023) {
      text.resize(piece.size());
      model.resize(std::min(model.size(), piece.size() - std::min(piece.size(), begin)));
      if (model.empty()) begin = 0;
      continue;
    }
    // Mostly appending, as write(2) does.
    const std::size_t at = offset < 16 ? text.end() : offset;
    if (!text.may_take(at, piece)) continue;
    if (text.empty() && model.empty() && begin == 0) begin = at;
    text.take(at, piece);
    if (model.size() < at - begin + piece.size()) model.resize(at - begin + piece.size());
    model.replace(at - begin, piece.size(), piece);
    FUZZ_CHECK(model.size() <= 64 * 1024);
  }
  FUZZ_CHECK(text.empty() == model.empty());
  FUZZ_CHECK(model.empty() || text.bytes(begin, model.size()) == model);
  auto whole = text.whole();
  if (whole) FUZZ_CHECK(*whole == model && is_valid_utf8(model));
  check_whole(model);
  FUZZ_CHECK(text.start(1) && !text.start(2));
  text.finish({}, std::string("done"));
  FUZZ_CHECK(text.phase() == RequestText::Phase::done && text.document() == vfs::ShownText(std::string("done")) &&
             text.outcome());
  return 0;
}
