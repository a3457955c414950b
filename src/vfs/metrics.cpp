#include "vfs/metrics.h"

namespace playfs::vfs {
namespace {

void append_header(std::string& text, std::string_view metric, std::string_view help) {
  text.append("# HELP ").append(metric).append(" ").append(help).append("\n");
  text.append("# TYPE ").append(metric).append(" counter\n");
}

}  // namespace

std::string_view name_of(Counted operation) {
  switch (operation) {
    case Counted::lookup: return "lookup";
    case Counted::forget: return "forget";
    case Counted::get_attributes: return "get_attributes";
    case Counted::set_attributes: return "set_attributes";
    case Counted::read_link: return "read_link";
    case Counted::make_node: return "make_node";
    case Counted::make_directory: return "make_directory";
    case Counted::make_symlink: return "make_symlink";
    case Counted::link: return "link";
    case Counted::unlink: return "unlink";
    case Counted::remove_directory: return "remove_directory";
    case Counted::rename: return "rename";
    case Counted::read: return "read";
    case Counted::write: return "write";
    case Counted::sync: return "sync";
    case Counted::allocate: return "allocate";
    case Counted::seek: return "seek";
    case Counted::list: return "list";
    case Counted::status: return "status";
    case Counted::get_xattr: return "get_xattr";
    case Counted::set_xattr: return "set_xattr";
    case Counted::remove_xattr: return "remove_xattr";
    case Counted::commit: return "commit";
    case Counted::work_status: return "work_status";
    case Counted::discard: return "discard";
    case Counted::update: return "update";
    case Counted::cancel: return "cancel";
    case Counted::checkpoint: return "checkpoint";
    case Counted::restore: return "restore";
  }
  return "unknown";
}

std::string Metrics::text() const {
  std::string text;
  auto append_table = [&](std::string_view metric, std::string_view help, const std::array<Counter, kCounted>& table) {
    append_header(text, metric, help);
    for (std::size_t i = 0; i < kCounted; ++i) {
      if (std::uint64_t value = table[i].load(std::memory_order_relaxed)) {
        text.append(metric).append("{operation=\"").append(name_of(static_cast<Counted>(i))).append("\"} ");
        text.append(std::to_string(value)).append("\n");
      }
    }
  };
  append_table("playfs_operations_total", "Operations requested by the kernel.", operations_);
  append_table("playfs_operation_errors_total", "Operations that failed.", errors_);
  append_table("playfs_operations_waited_total", "Operations that waited for a fetch.", waited_);
  auto append_one = [&](std::string_view metric, std::string_view help, const Counter& counter) {
    append_header(text, metric, help);
    text.append(metric).append(" ").append(std::to_string(counter.load(std::memory_order_relaxed))).append("\n");
  };
  append_one("playfs_read_bytes_total", "Bytes sent to the kernel.", bytes_read_);
  append_one("playfs_written_bytes_total", "Bytes received from the kernel.", bytes_written_);
  append_one("playfs_grown_files_total", "Growing files that were rendered again for news.", grown_);
  append_one("playfs_letters_made_total", "Letters of maildir/ that were new, or had changed.", letters_);
  return text;
}

}  // namespace playfs::vfs
