// A whole client whose service's responses are altered by the input: another status, other headers, a body that is cut,
// changed byte by byte, or with one JSON value in place of another; or no response, after the request was carried out.
// In any case each operation gets exactly one reply, requests end, and what was written into the work tree is there.
#include <sys/stat.h>

#include "fuzz.h"
#include "mount.h"
#include "wire/json.h"

using namespace playfs;
using vfs::Entry;
using vfs::NodeId;

namespace {

/// Replaces the `index`-th value on a walk through `json` by `value`; true once that is done.
bool put(Json& json, std::size_t& index, const Json& value) {
  if (index-- == 0) {
    json = value;
    return true;
  }
  if (auto* array = json.array())
    return std::any_of(array->begin(), array->end(), [&](Json& item) { return put(item, index, value); });
  if (auto* object = json.object()) {
    std::vector<std::string> names;
    for (const auto& member : *object) names.push_back(member.name);
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return put(*object->find(name), index, value); });
  }
  return false;
}

Json value_of(Input& input, const Json& whole) {
  switch (input.byte() % 8) {
    case 0: return nullptr;
    case 1: return true;
    case 2: return Json::Number{"-1"};
    case 3: return Json::Number{"1e400"};
    case 4: return Json::Array{};
    case 5: return JsonObject{};
    case 6: return whole;
    default: return std::string(input.field());
  }
}

void change_json(Input& input, std::string& body) {
  auto json = wire::parse_json(body);
  if (!json) return;
  std::size_t index = input.byte();
  const Json value = value_of(input, *json);
  put(*json, index, value);
  body = wire::to_text(*json);
}

class Mutator {
 public:
  explicit Mutator(std::string_view script)
      : input_(reinterpret_cast<const std::uint8_t*>(script.data()), script.size()) {}

  void operator()(Result<HttpResponse>& response) {
    if (input_.empty()) return;
    std::string& body = response->body;
    switch (input_.byte() % 16) {
      case 0: response = fail(ErrorCode::unreachable, "the service is away"); break;
      case 1: response = fail(ErrorCode::timed_out, "no answer in time"); break;
      case 2: response->status = 100 + static_cast<int>(input_.below(500)); break;
      case 3: {
        constexpr int common[] = {200, 204, 304, 400, 401, 404, 409, 413, 429, 500, 503};
        response->status = common[input_.byte() % std::size(common)];
        break;
      }
      case 4: response->headers.set("Retry-After", std::string(input_.field())); break;
      case 5: response->headers.set("ETag", std::string(input_.field())); break;
      case 6: body.resize(input_.below(body.size() + 1)); break;
      case 7:
        if (!body.empty()) body[input_.below(body.size())] = static_cast<char>(input_.byte());
        break;
      case 8: body = input_.field(); break;
      case 9: body += input_.field(); break;
      case 10:
      case 11:
      case 12: change_json(input_, body); break;
      case 13: std::swap(body, last_); return;
      default: break;
    }
    if (response) last_ = response->body;
  }

 private:
  Input input_;
  std::string last_;  ///< the previous body
};

/// What a user does in a mount, from looking around to a commit.
class User {
 public:
  explicit User(fuzz::Mount& mount) : mount_(mount), fs_(mount.fs()) {}

  NodeId find(NodeId from, const std::vector<std::string>& path) {
    for (const std::string& name : path) {
      auto entry =
          mount_.ask<Entry>([&](const auto& caller, auto reply) { fs_.lookup(caller, from, name, std::move(reply)); });
      if (!entry || entry->node == 0) return 0;
      from = entry->node;
    }
    return from;
  }
  Result<std::string> read(NodeId node, fuzz::Mount::Patience patience = {}) {
    return mount_.ask<std::string>(
        [&](const auto& caller, auto reply) { fs_.read(caller, node, 0, 1 << 16, std::move(reply)); }, patience);
  }
  std::vector<std::string> list(NodeId node) {
    auto names = std::make_shared<std::vector<std::string>>();
    auto room = [names](const vfs::DirectoryItem& item) {
      FUZZ_CHECK(!item.name.empty() && item.name.find('/') == std::string::npos);
      names->push_back(item.name);
      return names->size() < 50;
    };
    static_cast<void>(mount_.ask<void>(
        [&](const auto& caller, auto reply) { fs_.list(caller, node, 0, false, room, std::move(reply)); }));
    return *names;
  }
  /// 0 if it was refused.
  NodeId write_new(NodeId directory, const std::string& name, const std::string& data) {
    auto made = mount_.ask<Entry>([&](const auto& caller, auto reply) {
      fs_.make_node(caller, directory, name, S_IFREG | 0644, 0, std::move(reply));
    });
    if (!made || made->node == 0) return 0;
    auto written = mount_.ask<std::size_t>(
        [&](const auto& caller, auto reply) { fs_.write(caller, made->node, 0, data, std::move(reply)); });
    return written && *written == data.size() ? made->node : 0;
  }
  void append(NodeId node, const std::string& data) {
    static_cast<void>(mount_.ask<std::size_t>(
        [&](const auto& caller, auto reply) { fs_.write(caller, node, 8, data, std::move(reply)); }));
  }
  Result<vfs::CommitResult> commit(NodeId node) {
    vfs::CommitRequest request;
    request.message = "what was done";
    return mount_.ask<vfs::CommitResult>(
        [&](const auto& caller, auto reply) { fs_.commit(caller, node, request, std::move(reply)); });
  }
  void update(NodeId node) {
    static_cast<void>(mount_.ask<vfs::UpdateResult>(
        [&](const auto& caller, auto reply) { fs_.update(caller, node, RevisionId(), std::move(reply)); }));
  }

 private:
  fuzz::Mount& mount_;
  vfs::FileSystem& fs_;
};

/// More than all operations below need, even if each is tried as often as the client does.
constexpr int kMostRequests = 3000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const unsigned order = input.byte();
  const bool is_honest = input.empty();
  Mutator mutator(input.rest());
  auto change = [&](const HttpRequest&, Result<HttpResponse>& response) { mutator(response); };
  fuzz::Mount mount(false, change, is_honest ? 1 : 1000);  // some responses take days of waiting
  User user(mount);
  const NodeId projects = user.find(vfs::kRootNode, {"projects"});
  if (order & 1) user.list(projects);
  const NodeId project = user.find(projects, {mount.project()});
  if (order & 2) user.list(user.find(project, {"revisions"}));
  const NodeId work = user.find(project, {"work"});
  FUZZ_CHECK(!is_honest || work != 0);
  if (work == 0) return 0;
  for (const std::string& name : user.list(work)) static_cast<void>(user.read(user.find(work, {name})));
  if (order & 4) static_cast<void>(user.read(user.find(work, {"d", "e", "chunked"})));
  if (order & 8) user.append(user.find(work, {"README.md"}), "2\n");
  const std::string text = "written here\n";
  const NodeId file = user.write_new(work, "new", text);
  auto check_file = [&] {
    if (file == 0) return;
    // It is local, whatever the service answers and however busy the machine is.
    auto read = user.read(file, fuzz::Mount::kLongest);
    FUZZ_CHECK(read && *read == text);
  };
  FUZZ_CHECK(!is_honest || file != 0);
  check_file();
  if (order & 16) user.update(work);
  check_file();
  auto result = user.commit(work);
  FUZZ_CHECK(!is_honest || (result && result->outcome != vfs::Outcome::pending && !result->revision.empty()));
  check_file();
  if (order & 32) static_cast<void>(user.read(user.find(project, {"status.json"})));
  if (order & 64) user.update(work);
  check_file();
  if (order & 128) static_cast<void>(user.read(user.find(project, {"log"})));
  FUZZ_CHECK(mount.network().count() < kMostRequests);
  return 0;
}
