#include "source_lines.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "../state/fiber.h"
#include "../state/module_image.h"

namespace emulator {
namespace {

const char* stack_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const char*>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const char*>(machine.sp);
#else
  return static_cast<void>(machine), nullptr;
#endif
}

struct Library {
  std::string file;
  std::uintptr_t begin = 0;  // the base address of its program counters
};

Library library_of(const void* pc) {
  Dl_info info;
  if (!pc || !dladdr(pc, &info) || !info.dli_fname || std::strchr(info.dli_fname, '\'')) return {};
  const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  return {info.dli_fname, header->e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0};
}

// Whether a line is in the learner's own code, and not inlined from a header.
bool is_own_line(const char* text) {
  for (const char* theirs : {"/runtime/include/", "/emulator/libraries/", "/cuemu/libraries/",
                             "/torch/include/", "/include/c++/", "/usr/include/"})
    if (std::strstr(text, theirs)) return false;
  return text[0] != '?' && !std::strstr(text, ":?");
}

// Reads the output of addr2line -a: an address, then its lines, innermost first.
void read_lines(std::FILE* answer, SourceLine* lines, std::size_t count) {
  char text[sizeof(lines->text)];
  std::size_t next = 0;
  while (std::fgets(text, sizeof(text), answer)) {
    text[std::strcspn(text, "\n")] = 0;
    if (char* note = std::strstr(text, " (discriminator")) *note = 0;
    if (std::strncmp(text, "0x", 2) == 0)
      next++;
    else if (next >= 1 && next <= count && !lines[next - 1].text[0] && is_own_line(text))
      std::snprintf(lines[next - 1].text, sizeof(text), "%s", short_name(text));
  }
}

}  // namespace

const void* pc_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  return static_cast<void>(machine), nullptr;
#endif
}

void calls_in_kernel(const void* context, const void* (&pcs)[kMostCalls]) {
  int found = 0;
  if (is_own_code(pc_of(context))) pcs[found++] = pc_of(context);
  const char* end = Fiber::running()->stack_end();
  const char* at = stack_of(context);
  if (!at || at > end || end - at > (1 << 20)) return;
  for (; found < kMostCalls && at + sizeof(void*) <= end; at += sizeof(void*)) {
    const char* candidate;
    std::memcpy(&candidate, at, sizeof(candidate));
    if (is_own_code(candidate)) pcs[found++] = candidate - 1;
  }
}

const char* short_name(const char* path) {
  while (path[0] == '.' && path[1] == '/') path += 2;
  char directory[4096];
  if (!getcwd(directory, sizeof(directory))) return path;
  const std::size_t length = std::strlen(directory);
  return std::strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

std::string line_at(Position where) {
  return std::string(short_name(where.file_name())) + ":" + std::to_string(where.line());
}

std::string at(Position where) { return line_at(where) + ":" + std::to_string(where.column()); }

// By addr2line, which comes with every g++.
std::vector<SourceLine> lines_of(const std::vector<const void*>& pcs) {
  constexpr std::size_t kAtOnce = 1000;  // the length of a command line is limited
  std::vector<SourceLine> lines(pcs.size(), SourceLine{});
  for (std::size_t first = 0, last; first < pcs.size(); first = last) {
    const Library library = library_of(pcs[first]);
    std::string command = "addr2line -a -i -e '" + library.file + "'";
    for (last = first; last < pcs.size() && last < first + kAtOnce; last++) {
      if (library_of(pcs[last]).file != library.file) break;
      char address[32];
      std::snprintf(address, sizeof(address), " 0x%" PRIxPTR,
                    reinterpret_cast<std::uintptr_t>(pcs[last]) - library.begin);
      command += address;
    }
    if (library.file.empty()) continue;
    std::FILE* answer = popen((command + " 2>/dev/null").c_str(), "r");
    if (!answer) continue;
    read_lines(answer, &lines[first], last - first);
    pclose(answer);
  }
  return lines;
}

SourceLine line_of(const void* pc) { return lines_of({pc}).front(); }

SourceLine innermost_line(const void* const (&pcs)[kMostCalls]) {
  const std::vector<const void*> calls(std::begin(pcs), std::end(pcs));
  for (const SourceLine& line : lines_of(calls))
    if (line.text[0]) return line;
  return {};
}

}  // namespace emulator
