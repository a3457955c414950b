#include "content/blobs.h"

#include <atomic>

#include "base/text.h"
#include "content/verify.h"
#include "model/repository.h"

namespace playfs::content {

namespace {

/// The verified content of an inline entry, or of one with an empty chunk list. REQUIRES: one of the two.
Result<Blob> immediate_blob(const FileRef& file) {
  const FileEntry& entry = *file.entry;
  if (!entry.inline_text || entry.encoding == ContentEncoding::text) {
    const std::string_view text = entry.inline_text ? std::string_view(*entry.inline_text) : std::string_view();
    PLAYFS_CHECK(check_content(entry, text));
    return Blob(file.revision, text);
  }
  auto content = entry.inline_content();
  if (!content) return fail(ErrorCode::corrupt, "its text is not valid base64");
  PLAYFS_CHECK(check_content(entry, *content));
  auto owner = std::make_shared<const std::string>(std::move(*content));
  return Blob(owner, *owner);
}

bool is_immediate(const FileEntry& entry) { return entry.inline_text || entry.chunks.empty(); }

/// Withholds content under a name with which it would turn its directory into a repository.
Status check_name(const FileRef& file, const Blob& blob) {
  if (!is_named_as_head(file.path)) return {};
  PLAYFS_TRY(std::string beginning, blob.read(0, kReadOfHead));
  if (!is_content_of_head(file.entry->mode, beginning)) return {};
  return fail(ErrorCode::refused_input, std::string(kWhyNoHead), "ask its publisher to rename it");
}

/// The key of a refusal: for inline content its revision and path.
std::string refusal_key(const FileRef& file) {
  return is_immediate(*file.entry) ? subject_of(file) : origin_key(*file.entry);
}

/// Whether the published data is at fault, not its transfer.
bool is_fault_of_content(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::refused_input || code == ErrorCode::not_found;
}

}  // namespace

struct Blobs::Assembly {
  explicit Assembly(FileRef of, std::string name) : file(std::move(of)), key(std::move(name)) {}

  const FileRef file;
  const std::string key;
  std::atomic<bool> wanted_now = false;
  CancelSource abandoned;  ///< failed: remaining requests are unnecessary
  Mutex mutex;
  std::unordered_map<ChunkId, std::size_t> uses PLAYFS_GUARDED_BY(mutex);  ///< how often the list names each
  std::unordered_map<ChunkId, ChunkPtr> chunks PLAYFS_GUARDED_BY(mutex);
  std::uint64_t text_size PLAYFS_GUARDED_BY(mutex) = 0;  ///< of the chunks here, counted once per use
  bool ended PLAYFS_GUARDED_BY(mutex) = false;
};

std::optional<Blob> Blobs::stored(const FileRef& file) {
  const FileEntry& entry = *file.entry;
  auto find = [&](const ContentHash& hash) -> std::optional<Blob> {
    auto object = context_.objects.find(hash);
    return object && *object ? std::optional<Blob>(*object) : std::nullopt;
  };
  // An object found under its own SHA-256 is what the manifest means, whoever published it. A size not counted in bytes
  // must be checked against the content; the result is remembered by origin.
  if (auto claim = ContentHash::parse(entry.hash_claim)) {
    if (auto blob = find(*claim); blob && (!entry.size_claim || *entry.size_claim == blob->size())) return blob;
  }
  auto hash = content_of(origin_key(entry));
  return hash ? find(*hash) : std::nullopt;
}

std::optional<ContentHash> Blobs::content_of(const std::string& key) {
  {
    MutexLock lock(mutex_);
    if (const ContentHash* hash = origins_.find(key)) return *hash;
  }
  return context_.records.content_of(context_.site, key);
}

std::optional<Blob> Blobs::known(const FileRef& file) {
  std::optional<Blob> blob;
  if (!is_immediate(*file.entry)) blob = stored(file);
  else if (auto immediate = immediate_blob(file)) blob = std::move(*immediate);
  return blob && check_name(file, *blob) ? blob : std::nullopt;
}

std::optional<std::uint64_t> Blobs::size_of(const FileRef& file) {
  const FileEntry& entry = *file.entry;
  if (entry.inline_text) {
    if (entry.encoding == ContentEncoding::text) return entry.inline_text->size();
    auto content = entry.inline_content();
    return content ? std::optional<std::uint64_t>(content->size()) : std::nullopt;
  }
  if (entry.chunks.empty()) return 0;
  // playfs clients count bytes, but others copy `tx` when they edit a manifest. A caller that shows a claim must
  // compare it with the content before returning any of it; a claim found wrong is not trusted again.
  const bool is_likely = !file.revision->tree.manifest().tx.empty() && ContentHash::parse(entry.hash_claim) &&
                         entry.size_claim && *entry.size_claim <= context_.options.file_ceiling;
  if (is_likely && !content_of(origin_key(entry))) return entry.size_claim;
  auto blob = stored(file);
  return blob ? std::optional<std::uint64_t>(blob->size()) : std::nullopt;
}

Error Blobs::refuse(const FileRef& file, const std::string& key, const Error& why) {
  Error error = why;
  // A listed file whose chunk is missing is not an absent file.
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::corrupt;
  std::string chunks;
  for (const auto& chunk : file.entry->chunks) {
    if (chunks.size() > 400) {
      chunks += " …";
      break;
    }
    chunks += ' ' + escape_for_terminal(chunk.text());
  }
  error.message = escape_for_terminal(file.path) + " in revision " +
                  escape_for_terminal(file.revision->revision.id.text()) + ": " + error.message +
                  (chunks.empty() ? "" : " (chunks" + chunks + ")");
  context_.events.error(subject_of(file), error);
  MutexLock lock(mutex_);
  static_cast<void>(refusals_.insert(key, Refusal{error, context_.clock.steady()}));
  return error;
}

std::optional<Error> Blobs::refused_before(const std::string& key) {
  MutexLock lock(mutex_);
  const Refusal* refusal = refusals_.find(key);
  if (!refusal || context_.clock.steady() - refusal->at >= context_.options.refresh) return std::nullopt;
  return refusal->error;
}

Callback<Blob> Blobs::with_check_of_name(const FileRef& file, Callback<Blob> done) {
  return [this, file, done = std::move(done)](Result<Blob> blob) mutable {
    Status checked = blob ? check_name(file, *blob) : Status();
    if (checked) return done(std::move(blob));
    // Keyed by path: under another name the same content may be fine.
    const std::string key = subject_of(file);
    auto before = refused_before(key);
    done(fail(before ? *before : refuse(file, key, checked.error())));
  };
}

void Blobs::get(const FileRef& file, Urgency urgency, const CancelToken& cancel, Callback<Blob> done) {
  if (is_named_as_head(file.path)) done = with_check_of_name(file, std::move(done));
  const std::string key = refusal_key(file);
  if (is_immediate(*file.entry)) {
    auto blob = immediate_blob(file);
    if (blob) return done(std::move(blob));
    auto before = refused_before(key);
    return done(fail(before ? *before : refuse(file, key, blob.error())));
  }
  if (auto blob = stored(file)) return done(std::move(*blob));
  if (auto before = refused_before(key)) return done(fail(std::move(*before)));

  if (!flights_.join(key, cancel, std::move(done))) {
    if (urgency != Urgency::demand) return;
    AssemblyPtr assembly;
    {
      MutexLock lock(mutex_);
      if (auto found = assemblies_.find(key); found != assemblies_.end()) assembly = found->second;
    }
    if (assembly && !assembly->wanted_now.exchange(true)) chunks_.hurry(assembly->file.entry->chunks);
    return;
  }
  auto assembly = std::make_shared<Assembly>(file, key);
  assembly->wanted_now = urgency == Urgency::demand;
  {
    MutexLock lock(mutex_);
    assemblies_[key] = assembly;
  }
  // Looks up each chunk on disk, so not on the current thread, which may be a FUSE thread.
  context_.executor.post(context_.guarded([this, assembly] { start(assembly); }));
}

void Blobs::start(const AssemblyPtr& assembly) {
  // An earlier flight may have landed since the caller checked.
  if (auto blob = stored(assembly->file)) return end(assembly, std::move(*blob));

  std::vector<ChunkId> distinct;
  {
    MutexLock lock(assembly->mutex);
    for (const auto& id : assembly->file.entry->chunks)
      if (++assembly->uses[id] == 1) distinct.push_back(id);
  }
  const bool demanded = assembly->wanted_now;
  for (const auto& id : distinct)
    chunks_.get(id, assembly->file.revision->revision.project, demanded ? Urgency::demand : Urgency::ahead,
                assembly->abandoned.token(), context_.guarded([this, assembly, id](Result<ChunkPtr> chunk) {
                  chunk_arrived(assembly, id, std::move(chunk));
                }));
  if (!demanded && assembly->wanted_now) chunks_.hurry(distinct);
}

void Blobs::chunk_arrived(const AssemblyPtr& assembly, const ChunkId& id, Result<ChunkPtr> chunk) {
  std::optional<Error> failure;
  if (!chunk) failure = chunk.error();
  {
    MutexLock lock(assembly->mutex);
    if (assembly->ended) return;
    if (chunk) {
      assembly->text_size += assembly->uses[id] * (*chunk)->content.size();
      assembly->chunks[id] = std::move(*chunk);
      const std::uint64_t ceiling = context_.options.file_ceiling;
      if (assembly->text_size > text_ceiling(*assembly->file.entry, ceiling))
        failure = Error{ErrorCode::refused_input, "it is larger than " + std::to_string(ceiling) + " bytes"};
      else if (assembly->chunks.size() < assembly->uses.size()) return;
    }
    assembly->ended = true;
  }
  if (!failure) return end(assembly, finish(*assembly));
  assembly->abandoned.cancel();
  if (is_fault_of_content(failure->code)) failure = refuse(assembly->file, assembly->key, *failure);
  end(assembly, fail(std::move(*failure)));
}

Result<Blob> Blobs::finish(Assembly& assembly) {
  const FileEntry& entry = *assembly.file.entry;
  std::vector<const FileChunk*> chunks;
  {
    MutexLock lock(assembly.mutex);
    for (const auto& id : entry.chunks) chunks.push_back(assembly.chunks.at(id).get());
  }
  auto content = assemble(entry, chunks, context_.options.file_ceiling);
  if (!content) {
    // The disk holds what the service sent; a new request may bring better data.
    chunks_.forget(entry.chunks);
    return fail(refuse(assembly.file, assembly.key, content.error()));
  }
  PLAYFS_TRY(cache::ObjectPtr object, context_.objects.put(*content));
  const bool found_by_hash = ContentHash::parse(entry.hash_claim) == object->hash() &&
                             (!entry.size_claim || *entry.size_claim == object->size());
  if (!found_by_hash) {
    context_.records.store_content_of(context_.site, assembly.key, object->hash());
    MutexLock lock(mutex_);
    static_cast<void>(origins_.insert(assembly.key, object->hash()));
  }
  return Blob(std::move(object));
}

void Blobs::end(const AssemblyPtr& assembly, Result<Blob> result) {
  {
    MutexLock lock(mutex_);
    assemblies_.erase(assembly->key);
  }
  flights_.land(assembly->key, result);
}

}  // namespace playfs::content
