// Storms of system calls over a tree, timed from inside, so that neither the start of a process nor the walk that finds
// the names is in the figure.
//
//   bench-storm KIND ROOT [COUNT]
//
// Prints seconds. Reading kinds leave ROOT as it is and go over it COUNT times; writing kinds make COUNT files below
// ROOT, or change those that are there. Exit 1 with a word on stderr at the first call that does not do what it should.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSmallFile = 4096;
constexpr int kFilesPerFolder = 500;

[[noreturn]] void stop(const std::string& what) {
  std::fprintf(stderr, "bench-storm: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void must(bool worked, const std::string& what) {
  if (!worked) stop(what);
}

struct Tree {
  std::vector<std::string> files;
  std::vector<std::string> everything;

  explicit Tree(const std::string& root) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
      everything.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    std::sort(everything.begin(), everything.end());
  }
};

/// Runs `body` and gives its seconds.
double timed(const std::function<void()>& body) {
  auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void write_file(const std::string& path, int flags, const char* bytes, std::size_t size) {
  int file = open(path.c_str(), O_WRONLY | flags, 0644);
  must(file >= 0, path);
  must(write(file, bytes, size) == static_cast<ssize_t>(size), path);
  must(close(file) == 0, path);
}

std::string numbered(const std::string& root, int i, const char* suffix) {
  return root + "/" + std::to_string(i / kFilesPerFolder) + "/" + std::to_string(i) + suffix;
}

// Reading.

double stat_all(const std::string& root, int rounds) {
  Tree tree(root);
  return timed([&] {
    struct stat attributes {};
    for (int round = 0; round < rounds; ++round)
      for (const auto& path : tree.everything) must(lstat(path.c_str(), &attributes) == 0, path);
  });
}

double read_all(const std::string& root, int rounds) {
  Tree tree(root);
  std::vector<char> buffer(256 * 1024);
  return timed([&] {
    for (int round = 0; round < rounds; ++round) {
      for (const auto& path : tree.files) {
        int file = open(path.c_str(), O_RDONLY);
        must(file >= 0, path);
        while (true) {
          ssize_t got = read(file, buffer.data(), buffer.size());
          must(got >= 0, path);
          if (got < static_cast<ssize_t>(buffer.size())) break;  // a short read of a regular file is its end
        }
        must(close(file) == 0, path);
      }
    }
  });
}

double missing_names(const std::string& root, int rounds) {
  std::vector<std::string> names;
  for (const auto& path : Tree(root).files) names.push_back(path + ".missing");
  return timed([&] {
    struct stat attributes {};
    for (int round = 0; round < rounds; ++round)
      for (const auto& name : names) must(lstat(name.c_str(), &attributes) != 0 && errno == ENOENT, name);
  });
}

/// Names that nobody asked for before: each must be answered by the file system itself.
double new_missing_names(const std::string& root, int count) {
  std::string stem = root + "/missing-" + std::to_string(getpid()) + "-";
  return timed([&] {
    struct stat attributes {};
    for (int i = 0; i < count; ++i) must(lstat((stem + std::to_string(i)).c_str(), &attributes) != 0, stem);
  });
}

// Writing.

/// As editors and package managers do it: a temporary beside it, then rename.
double create(const std::string& root, int count) {
  std::string text(kSmallFile, 'x');
  for (int folder = 0; folder * kFilesPerFolder < count; ++folder)
    must(mkdir((root + "/" + std::to_string(folder)).c_str(), 0755) == 0, root);
  return timed([&] {
    for (int i = 0; i < count; ++i) {
      std::string temporary = numbered(root, i, ".tmp");
      write_file(temporary, O_CREAT | O_EXCL, text.data(), text.size());
      must(rename(temporary.c_str(), numbered(root, i, "").c_str()) == 0, temporary);
    }
  });
}

double unlink_created(const std::string& root, int count) {
  return timed([&] {
    for (int i = 0; i < count; ++i) must(unlink(numbered(root, i, "").c_str()) == 0, numbered(root, i, ""));
  });
}

double rewrite(const std::string& root, int count) {
  Tree tree(root);
  must(tree.files.size() >= static_cast<std::size_t>(count), "too few files");
  std::string text(kSmallFile, 'y');
  return timed([&] {
    for (int i = 0; i < count; ++i)
      write_file(tree.files[static_cast<std::size_t>(i)], O_TRUNC, text.data(), text.size());
  });
}

double rename_over(const std::string& root, int count) {
  Tree tree(root);
  must(tree.files.size() >= static_cast<std::size_t>(count), "too few files");
  std::string text(kSmallFile, 'z');
  return timed([&] {
    for (int i = 0; i < count; ++i) {
      const std::string& path = tree.files[static_cast<std::size_t>(i)];
      write_file(path + ".tmp", O_CREAT | O_EXCL, text.data(), text.size());
      must(rename((path + ".tmp").c_str(), path.c_str()) == 0, path);
    }
  });
}

/// Seconds for all COUNT of: change a small file, fsync it.
double sync_small(const std::string& root, int count) {
  std::string path = root + "/synced";
  int file = open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  must(file >= 0, path);
  std::string text(kSmallFile, 's');
  must(write(file, text.data(), text.size()) >= 0 && fsync(file) == 0, path);
  double seconds = timed([&] {
    for (int i = 0; i < count; ++i)
      must(pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) && fsync(file) == 0, path);
  });
  must(close(file) == 0, path);
  return seconds;
}

/// Dirties every page of COUNT megabytes through a shared mapping, twice, and waits for msync.
double map_shared(const std::string& root, int megabytes) {
  std::string path = root + "/mapped";
  std::size_t size = static_cast<std::size_t>(megabytes) << 20;
  int file = open(path.c_str(), O_RDWR | O_CREAT, 0644);
  must(file >= 0, path);
  must(ftruncate(file, static_cast<off_t>(size)) == 0, path);
  double seconds = timed([&] {
    auto* bytes = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    must(bytes != MAP_FAILED, path);
    for (char round = 1; round <= 2; ++round) {
      std::memset(bytes, round, size);
      must(msync(bytes, size, MS_SYNC) == 0, path);
    }
    must(munmap(bytes, size) == 0, path);
  });
  must(close(file) == 0, path);
  return seconds;
}

double append_byte(const std::string& path, int count) {
  return timed([&] {
    for (int i = 0; i < count; ++i) write_file(path, O_APPEND, "!", 1);
  });
}

using Storm = double (*)(const std::string& root, int count);
const std::map<std::string, Storm> kStorms = {
    {"stat", stat_all},   {"read", read_all},         {"missing", missing_names}, {"new-missing", new_missing_names},
    {"create", create},   {"unlink", unlink_created}, {"rewrite", rewrite},       {"rename-over", rename_over},
    {"sync", sync_small}, {"mmap", map_shared},       {"append", append_byte},
};

}  // namespace

int main(int argc, char** argv) {
  auto storm = argc >= 3 ? kStorms.find(argv[1]) : kStorms.end();
  int count = argc > 3 ? std::atoi(argv[3]) : 1;
  if (storm == kStorms.end() || count < 1) {
    std::fprintf(stderr, "usage: bench-storm KIND ROOT [COUNT], KIND one of:");
    for (const auto& [name, _] : kStorms) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  std::printf("%.6f\n", storm->second(argv[2], count));
  return 0;
}
