// Runs a target on files instead of fuzzer inputs, so that every build retries what was found once.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fuzz.h"

int main(int count, char** arguments) {
  int tried = 0;
  for (int i = 1; i < count; ++i) {
    for (const auto& file : std::filesystem::directory_iterator(arguments[i])) {
      std::ifstream in(file.path(), std::ios::binary);
      std::string bytes{std::istreambuf_iterator<char>(in), {}};
      std::printf("%s\n", file.path().c_str());
      std::fflush(stdout);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++tried;
    }
  }
  return tried > 0 ? 0 : 1;
}
