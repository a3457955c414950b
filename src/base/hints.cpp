#include "base/hints.h"

namespace playfs {

std::string_view usual_hint(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "check the spelling of the path or name; playfs ls lists the projects, playfs ls PROJECT its files";
    case ErrorCode::already_exists: return "choose another name, or move what is there out of the way";
    case ErrorCode::not_a_directory: return "give the path of a directory";
    case ErrorCode::is_a_directory: return "give the path of a file; playfs ls PROJECT DIR lists a directory";
    case ErrorCode::not_empty: return "empty the directory first, or choose a new one";
    case ErrorCode::read_only: return "choose a place that can be written: in a mount, the project's work/";
    case ErrorCode::invalid_argument:
      return "playfs help COMMAND says what a command takes; a control file of a mount lists its fields when it is "
             "read";
    case ErrorCode::name_too_long: return "choose a shorter name: it may have up to 255 bytes";
    case ErrorCode::not_permitted: return "nobody can do this here: do it in the project's work/, or outside the mount";
    case ErrorCode::permission_denied:
      return "playfs whoami says who you write as; of local files, ls -ld PATH shows owner and mode";
    case ErrorCode::unauthorized: return "playfs login";
    case ErrorCode::busy:
      return "wait until what is under way has ended, then repeat it; in a work tree, playfs status shows what that is";
    case ErrorCode::conflict: return "playfs status, then edit the files that it lists as in conflict";
    case ErrorCode::stale: return "close the file and open it again";
    case ErrorCode::not_supported: return "playfs help agents says what works in a mount";
    case ErrorCode::no_attribute: return "getfattr -d -m - PATH lists the attributes that there are";
    case ErrorCode::too_many_links: return "copy the file: cp makes no link";
    case ErrorCode::loop: return "namei PATH shows each link on the way: remove one that leads back";
    case ErrorCode::cross_device: return "copy it, and delete the original, as mv does by itself";
    case ErrorCode::no_data: return "seek from an earlier place: the file ends before this one";
    case ErrorCode::record_too_large:
      return "split it, or shorten its texts; playfs commit --dry-run shows the size of a commit's record";
    case ErrorCode::file_too_big: return "split the file, or list it in .playfsignore";
    case ErrorCode::no_space: return "free some space on that disk; playfs cache clear empties the cache";
    case ErrorCode::quota_exceeded: return "quota -s shows your quota; playfs cache clear frees what the cache takes";
    case ErrorCode::out_of_range: return "repeat the call with a larger buffer";
    case ErrorCode::rate_limited:
      return "wait, then repeat it; playfs commit --dry-run says what a commit costs, and when it can be sent";
    case ErrorCode::unreachable:
      return "check the network, and the address of the service (--site); what has been read before can still be read";
    case ErrorCode::timed_out: return "check the network; playfs doctor names mounts that do not answer";
    case ErrorCode::interrupted: return "repeat it, unless you stopped it on purpose";
    case ErrorCode::offline: return "mount without -o offline, and unset PLAYFS_OFFLINE, or \"offline\" in config.toml";
    case ErrorCode::protocol:
      return "check that the address is a playground's (--site); a proxy on the way may have answered in its place";
    case ErrorCode::corrupt:
      return "playfs doctor checks what is stored here, playfs cache verify the cache, playfs fsck PROJECT the service";
    case ErrorCode::refused_input: return "playfs fsck PROJECT says what is wrong with what was published";
    case ErrorCode::io: return "playfs doctor checks what is stored here; dmesg shows errors of disks";
    case ErrorCode::internal: return "this is a bug: playfs bugreport -o FILE collects what is needed to find it";
  }
  return usual_hint(ErrorCode::internal);
}

}  // namespace playfs
