#include "wire/records.h"

#include <gtest/gtest.h>

#include "support.h"
#include "wire/json.h"

namespace playfs::wire {
namespace {

Record record(std::string_view text) {
  auto decoded = decode_record(json(text));
  EXPECT_TRUE(decoded) << text;
  return decoded.value_or(Record());
}

TEST(Record, IsReadInEveryShape) {
  for (auto text : {R"({"id":"r","created_at":"C","updated_at":"U","status":"ok","x":1,"y":2})",
                    R"({"id":"r","createdAt":"C","updatedAt":"U","status":"ok","data":{"x":1,"y":2}})",
                    R"({"record":{"id":"r","created_at":"C","updatedAt":"U","status":"ok","x":1,"data":{"y":2}}})",
                    R"({"id":"r","created_at":"C","updated_at":"U","status":"ok","x":1,"data":{"x":9,"y":2}})"}) {
    auto r = record(text);
    EXPECT_EQ(r.id, "r") << text;
    EXPECT_EQ(r.created_at, "C") << text;
    EXPECT_EQ(r.updated_at, "U") << text;
    EXPECT_EQ(r.status, "ok") << text;
    EXPECT_EQ(r.fields, (JsonObject{{"x", 1}, {"y", 2}})) << text;
  }
  EXPECT_EQ(record(R"({"id":12})").id, "12");
  // A record with a field named "record" is not a wrapper.
  EXPECT_EQ(record(R"({"id":"a","record":{"id":"b"}})").id, "a");
  EXPECT_EQ(record(R"({"id":"a","data":"text"})").fields, (JsonObject{{"data", "text"}}));
}

TEST(Record, NeedsAnId) {
  for (const std::string& text :
       {std::string("1"), std::string("{}"), std::string(R"({"id":null})"), std::string(R"({"id":""})"),
        std::string(R"({"id":1.5})"), std::string(R"({"id":{}})"), std::string(R"({"record":[]})"),
        R"({"id":")" + std::string(kMaxIdLength + 1, 'x') + "\"}"}) {
    auto decoded = decode_record(json(text));
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, ErrorCode::protocol);
  }
}

TEST(Record, IsReadBackAsWritten) {
  EXPECT_TRUE(rc::check([] {
    auto name = rc::gen::oneOf(
        any_text(), rc::gen::element<std::string>("id", "created_at", "createdAt", "status", "data", "record"));
    Record original{"r1", *any_text(), *any_text(), *any_text(), *object_of(name, any_json(1))};
    auto back = decode_record(encode_record(original));
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->id == original.id);
    RC_ASSERT(back->created_at == original.created_at);
    RC_ASSERT(back->updated_at == original.updated_at);
    RC_ASSERT(back->status == original.status);
    RC_ASSERT(back->fields == original.fields);
  }));
}

TEST(Page, CountsWhatIsNoRecord) {
  auto page = decode_page(json(R"({"records":[{"id":"a"},7,{"record":{"id":"b"}},{}],"nextCursor":"n"})"));
  ASSERT_TRUE(page);
  ASSERT_EQ(page->records.size(), 2u);
  EXPECT_EQ(page->records[1].id, "b");
  EXPECT_EQ(page->unreadable, 2u);
  EXPECT_EQ(page->next_cursor, "n");
  EXPECT_EQ(decode_page(json(R"({"records":[],"next_cursor":"n"})"))->next_cursor, "n");
  EXPECT_EQ(decode_page(json(R"({"records":[],"nextCursor":17})"))->next_cursor, "17");
  EXPECT_EQ(decode_page(json(R"({"records":[],"nextCursor":null})"))->next_cursor, "");
  EXPECT_EQ(decode_page(json(R"({"records":[]})"))->next_cursor, "");
}

TEST(Page, FailsWhereItCannotBeFollowed) {
  for (const std::string& text : {std::string("[]"), std::string("{}"), std::string(R"({"records":{}})"),
                                  std::string(R"({"records":[],"nextCursor":{}})"),
                                  R"({"records":[],"nextCursor":")" + std::string(5000, 'x') + "\"}"})
    EXPECT_FALSE(decode_page(json(text))) << text;
}

TEST(Project, ToleratesWhatStrangersPatch) {
  auto project =
      decode_project(record(R"({"id":"p","created_at":"2026-10-01T12:00:00Z","name":"n","latest_revision":"r"})"));
  EXPECT_EQ(project->name, "n");
  EXPECT_EQ(project->latest_revision, RevisionId("r"));
  EXPECT_EQ(format_iso8601(project->created_at), "2026-10-01T12:00:00.000000Z");
  EXPECT_EQ(decode_project(record(R"({"id":"p","latest_revision":5})"))->latest_revision, RevisionId("5"));
  for (auto head : {"null", "\"\"", "{}", "[\"r\"]", "1.5"}) {
    project = decode_project(
        record(R"({"id":"p","created_at":"yesterday","name":7,"latest_revision":)" + std::string(head) + "}"));
    EXPECT_TRUE(project->latest_revision.empty()) << head;
    EXPECT_EQ(project->name, "");
    EXPECT_EQ(project->created_at, WallTime{});
  }
}

TEST(Revision, IsReadWhole) {
  auto revision = decode_revision(
      record(R"({"id":"r","created_at":"2026-10-01T12:00:00Z","data":{"project":"p","parents":["a",2,null],
    "agent":"me","message":"m","manifest":{"files":{"f":{"inline":"x"}}},"state":{"k":[1]},"mood":"good"}})"));
  ASSERT_TRUE(revision);
  EXPECT_EQ(revision->id, RevisionId("r"));
  EXPECT_EQ(revision->project, ProjectId("p"));
  EXPECT_EQ(revision->parents, (std::vector{RevisionId("a"), RevisionId("2")}));
  EXPECT_EQ(revision->agent, "me");
  EXPECT_EQ(revision->message, "m");
  EXPECT_EQ(revision->manifest.files.size(), 1u);
  EXPECT_EQ(revision->state, json(R"({"k":[1]})"));
  EXPECT_EQ(revision->extra, (JsonObject{{"mood", "good"}}));
  EXPECT_NE(revision->created_at, WallTime{});
}

TEST(Revision, NeedsAManifest) {
  EXPECT_EQ(decode_revision(record(R"({"id":"r"})")).error().code, ErrorCode::refused_input);
  EXPECT_EQ(decode_revision(record(R"({"id":"r","manifest":"x"})")).error().code, ErrorCode::refused_input);
  auto bare = decode_revision(record(R"({"id":"r","manifest":{},"parents":"a","agent":1})"));
  ASSERT_TRUE(bare);
  EXPECT_TRUE(bare->project.empty() && bare->parents.empty() && bare->agent.empty() && bare->state.is_null());
}

TEST(Chunk, NeedsContent) {
  auto chunk = decode_chunk(record(R"({"id":"c","hash":"h","content":"text"})"));
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->content, "text");
  EXPECT_EQ(chunk->hash_claim, "h");
  EXPECT_FALSE(decode_chunk(record(R"({"id":"c"})")));
  EXPECT_FALSE(decode_chunk(record(R"({"id":"c","content":7})")));
}

TEST(Drafts, AreWhatTheServiceDocuments) {
  RevisionDraft draft;
  draft.project = ProjectId("p");
  draft.parents = {RevisionId("a")};
  draft.agent = "me";
  draft.message = "m";
  draft.manifest.files["f"].inline_text = "x";
  draft.extra = {{"mood", "good"}, {"agent", "someone else"}};
  EXPECT_EQ(
      to_text(encode_revision_draft(draft)),
      R"({"project":"p","parents":["a"],"agent":"me","message":"m","manifest":{"files":{"f":{"inline":"x"}}},"state":{},"mood":"good"})");
  draft.state = JsonObject{{"k", 1}};
  EXPECT_EQ(*encode_revision_draft(draft).object()->find("state"), draft.state);

  ChunkDraft chunk{RevisionId("r"), "f", 2, ContentHash::of("x"), "x"};
  EXPECT_EQ(to_text(encode_chunk_draft(chunk)),
            R"({"rev":"r","path":"f","seq":2,"hash":")" + ContentHash::of("x").hex() + R"(","content":"x"})");
}

}  // namespace
}  // namespace playfs::wire
