#include "stage/store/row_changes.h"

#include <xxhash.h>

#include <type_traits>

#include "base/fd.h"
#include "stage/store/entry_codec.h"

namespace playfs::stage {

namespace {

// One description of the fields serves both directions, so that they cannot drift apart. Numbers are LEB128, signed
// ones zigzag-encoded.

class Writer {
 public:
  explicit Writer(std::string& bytes) : bytes_(bytes) {}

  void operator()(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>(number | 0x80);
    bytes_ += static_cast<char>(number);
  }
  void operator()(WallTime time) {
    auto bits = static_cast<std::uint64_t>(time.nanoseconds);
    (*this)((bits << 1) ^ (time.nanoseconds < 0 ? ~std::uint64_t{0} : 0));
  }
  void operator()(std::string_view text) {
    (*this)(std::uint64_t{text.size()});
    bytes_ += text;
  }
  template <class Number>
  requires std::is_enum_v<Number> ||(std::is_integral_v<Number> && !std::is_same_v<Number, std::uint64_t>)void
  operator()(Number number) {
    (*this)(static_cast<std::uint64_t>(number));
  }
  void operator()(const FileEntry& entry) { (*this)(std::string_view(encode_entry(entry))); }
  void operator()(const ContentHash& hash) { (*this)(std::string_view(hash.hex())); }
  void operator()(const std::optional<FileEntry>& entry) {
    (*this)(entry.has_value());
    if (entry) (*this)(*entry);
  }

 private:
  std::string& bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view& bytes) : bytes_(bytes) {}
  [[nodiscard]] bool is_sound() const { return is_sound_; }

  void operator()(std::uint64_t& number) {
    number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) break;
      auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return;
    }
    is_sound_ = false;
  }
  void operator()(WallTime& time) {
    std::uint64_t bits = 0;
    (*this)(bits);
    time.nanoseconds = static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  void operator()(std::string& text) {
    std::uint64_t size = 0;
    (*this)(size);
    is_sound_ = is_sound_ && size <= bytes_.size();
    if (!is_sound_) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <class Number>
  requires std::is_enum_v<Number> ||(std::is_integral_v<Number> && !std::is_same_v<Number, std::uint64_t>)void
  operator()(Number& number) {
    std::uint64_t wide = 0;
    (*this)(wide);
    number = static_cast<Number>(wide);
  }
  void operator()(Kind& kind) {
    std::uint64_t number = 0;
    (*this)(number);
    is_sound_ = is_sound_ && number <= static_cast<std::uint64_t>(Kind::block_device);
    kind = static_cast<Kind>(number);
  }
  void operator()(FileMode& mode) {
    std::uint64_t number = 0;
    (*this)(number);
    is_sound_ = is_sound_ && number <= static_cast<std::uint64_t>(FileMode::symlink);
    mode = static_cast<FileMode>(number);
  }
  void operator()(FileEntry& entry) { take(entry, decode_entry); }
  void operator()(ContentHash& hash) { take(hash, ContentHash::parse); }
  void operator()(std::optional<FileEntry>& entry) {
    bool is_there = false;
    (*this)(is_there);
    if (is_there && is_sound_) (*this)(entry.emplace());
  }

 private:
  template <class Value, class Parse>
  void take(Value& value, const Parse& parse) {
    std::string text;
    (*this)(text);
    auto parsed = parse(text);
    is_sound_ = is_sound_ && parsed.has_value();
    if (is_sound_) value = std::move(*parsed);
  }

  std::string_view& bytes_;
  bool is_sound_ = true;
};

/// Calls the archive with each field; `Change` is const for a Writer.
template <class Archive, class Change>
void describe(Archive& each, Change& change) {
  using Type = std::remove_const_t<Change>;
  if constexpr (std::is_same_v<Type, PutInode>) {
    auto& row = change.row;
    each(row.ino), each(row.kind), each(row.metadata.permissions), each(row.metadata.uid), each(row.metadata.gid);
    each(row.metadata.atime), each(row.metadata.mtime), each(row.metadata.ctime), each(row.spool);
    each(row.target), each(row.device), each(row.opaque), each(row.lower_path), each(row.lower_revision);
  } else if constexpr (std::is_same_v<Type, DropInode>) {
    each(change.ino);
  } else if constexpr (std::is_same_v<Type, PutEntry>) {
    each(change.row.parent), each(change.row.name), each(change.row.ino);
  } else if constexpr (std::is_same_v<Type, DropEntry>) {
    each(change.parent), each(change.name);
  } else if constexpr (std::is_same_v<Type, DropWhiteouts>) {
    each(change.parent);
  } else if constexpr (std::is_same_v<Type, Touch>) {
    each(change.ino), each(change.mtime), each(change.ctime);
  } else if constexpr (std::is_same_v<Type, PutRescued>) {
    auto& row = change.row;
    each(row.revision), each(row.project), each(row.tx), each(row.path), each(row.entry);
  } else if constexpr (std::is_same_v<Type, PutValue>) {
    each(change.key), each(change.value);
  } else if constexpr (std::is_same_v<Type, DropValue>) {
    each(change.key);
  } else if constexpr (std::is_same_v<Type, PutTime>) {
    each(change.path), each(change.time);
  } else if constexpr (std::is_same_v<Type, DropTime> || std::is_same_v<Type, PutPendingDeletion>) {
    each(change.path);
  } else if constexpr (std::is_same_v<Type, PutPending>) {
    auto& file = change.file;
    each(file.path), each(file.mode), each(file.hash), each(file.size), each(file.published), each(file.spool);
    each(file.target);
  } else if constexpr (std::is_same_v<Type, PutReplacement>) {
    auto& row = change.row;
    each(row.spool), each(row.size), each(row.boot), each(row.old_spool), each(row.old_path);
  } else if constexpr (std::is_same_v<Type, DropReplacement>) {
    each(change.spool);
  } else if constexpr (std::is_same_v<Type, PutSize>) {
    each(change.row.spool), each(change.row.size), each(change.row.boot), each(change.row.synced);
  } else {
    static_assert(std::is_empty_v<Type>, "its fields are not described");
  }
}

template <std::size_t At = 0>
std::optional<RowChange> decode_at(std::uint64_t index, Reader& reader) {
  if constexpr (At == std::variant_size_v<RowChange>) {
    return std::nullopt;
  } else {
    if (index != At) return decode_at<At + 1>(index, reader);
    std::variant_alternative_t<At, RowChange> change;
    describe(reader, change);
    if (!reader.is_sound()) return std::nullopt;
    return RowChange(std::move(change));
  }
}

}  // namespace

std::uint64_t boot_of_system() {
  auto id = read_file("/proc/sys/kernel/random/boot_id", 100);
  return id ? XXH3_64bits(id->data(), id->size()) : 0;
}

void encode(std::string& bytes, const RowChange& change) {
  Writer writer(bytes);
  writer(std::uint64_t{change.index()});
  std::visit([&](const auto& each) { describe(writer, each); }, change);
}

std::optional<RowChange> decode(std::string_view& bytes) {
  Reader reader(bytes);
  std::uint64_t index = 0;
  reader(index);
  if (!reader.is_sound()) return std::nullopt;
  return decode_at(index, reader);
}

}  // namespace playfs::stage
