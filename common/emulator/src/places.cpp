// Names for people: of threads, of files, of lines.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "launch_state.h"

namespace emulator {

Place describe(const Thread* thread) {
  Place place = {};
  if (!state) return place;
  if (!thread) {
    std::snprintf(place.text, sizeof(place.text), "kernel %.300s", state->kernel);
    return place;
  }
  const uint3 b = thread->block->index, t = thread->index;
  std::snprintf(place.text, sizeof(place.text), "kernel %.300s, block (%u, %u, %u), thread (%u, %u, %u)",
                state->kernel, b.x, b.y, b.z, t.x, t.y, t.z);
  return place;
}

const char* short_name(const char* path) {
  char directory[4096];
  if (!getcwd(directory, sizeof(directory))) return path;
  const std::size_t length = std::strlen(directory);
  return std::strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

// Asks addr2line, which comes with every g++.
SourceLine line_of(const void* program_counter) {
  SourceLine line = {};
  Dl_info info;
  if (!program_counter || !dladdr(program_counter, &info) || !info.dli_fname ||
      std::strchr(info.dli_fname, '\''))
    return line;
  const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  const auto address = reinterpret_cast<std::uintptr_t>(program_counter) -
                       (header->e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0);
  char command[4600];
  std::snprintf(command, sizeof(command), "addr2line -i -e '%.4096s' 0x%" PRIxPTR " 2>/dev/null",
                info.dli_fname, address);
  std::FILE* answer = popen(command, "r");
  if (!answer) return line;
  // Innermost first: what the headers inline into a kernel's line is not that line.
  char text[sizeof(line.text)];
  while (std::fgets(text, sizeof(text), answer)) {
    text[std::strcspn(text, "\n")] = 0;
    if (char* note = std::strstr(text, " (discriminator")) *note = 0;
    if (line.text[0] || text[0] == '?' || std::strstr(text, "/emulator/") ||
        std::strncmp(text, "/usr/include/", 13) == 0)
      continue;
    std::snprintf(line.text, sizeof(line.text), "%s", short_name(text));
  }
  pclose(answer);
  return line;
}

}  // namespace emulator
