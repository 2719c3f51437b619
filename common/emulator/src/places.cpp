// Names for people: of threads, of files, of lines.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>

#include "launch_state.h"

namespace emulator {
namespace {

// Where this extension, or program, lies in memory.
struct Segment {
  const char *begin, *end;
  bool holds(const void* address) const { return address >= begin && address < end; }
};
Segment own_code, own_constants[8], own_variables;

int find_in(dl_phdr_info* info, std::size_t, void*) {
  Segment code = {}, constants[8] = {}, variables = {};
  Segment relocated = {};  // constants with addresses in them: they lie where variables begin
  int known = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD && header.p_type != PT_GNU_RELRO) continue;
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const Segment segment = {begin, begin + header.p_memsz};
    if (header.p_type == PT_GNU_RELRO)
      relocated = segment;
    else if (header.p_flags & PF_W)
      variables = segment;
    else if (segment.holds(reinterpret_cast<const void*>(&find_in)))
      code = segment;
    else if (known < 7)
      constants[known++] = segment;
  }
  if (!code.begin) return 0;
  if (variables.holds(relocated.begin)) variables.begin = relocated.end;
  constants[known] = relocated;
  own_code = code;
  own_variables = variables;
  std::memcpy(own_constants, constants, sizeof(constants));
  return 1;
}

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

}  // namespace

void find_own_code() {
  if (!own_code.begin) dl_iterate_phdr(find_in, nullptr);
}

bool is_own_code(const void* address) { return own_code.holds(address); }
static bool is_own_constant(const void* address) {
  return std::any_of(std::begin(own_constants), std::end(own_constants),
                     [&](const Segment& constants) { return constants.holds(address); });
}
// Constants that hold addresses lie among the variables.
bool is_own_variable(const void* address) {
  return own_variables.holds(address) && !is_own_constant(address);
}
bool is_own_data(const void* address) {
  return is_own_constant(address) || own_code.holds(address) || own_variables.holds(address);
}

const void* counter_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  return static_cast<void>(machine), nullptr;
#endif
}

void calls_in_kernel(const void* context, const void* (&counters)[kCalls]) {
  int found = 0;
  if (is_own_code(counter_of(context))) counters[found++] = counter_of(context);
  const char* end = Fiber::running()->stack_end();
  const char* at = stack_of(context);
  if (!at || at > end || end - at > (1 << 20)) return;
  for (; found < kCalls && at + sizeof(void*) <= end; at += sizeof(void*)) {
    const char* candidate;
    std::memcpy(&candidate, at, sizeof(candidate));
    if (is_own_code(candidate)) counters[found++] = candidate - 1;
  }
}

bool is_same(const Position& a, const Position& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

std::string in_words(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) +
         ")";
}

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
  while (path[0] == '.' && path[1] == '/') path += 2;
  char directory[4096];
  if (!getcwd(directory, sizeof(directory))) return path;
  const std::size_t length = std::strlen(directory);
  return std::strncmp(path, directory, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

namespace {

struct Library {
  std::string file;
  std::uintptr_t begin = 0;  // what a counter in it is counted from
};

Library library_of(const void* program_counter) {
  Dl_info info;
  if (!program_counter || !dladdr(program_counter, &info) || !info.dli_fname ||
      std::strchr(info.dli_fname, '\''))
    return {};
  const auto* header = static_cast<const ElfW(Ehdr)*>(info.dli_fbase);
  return {info.dli_fname, header->e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0};
}

// Whether a line is the learner's own: what headers inline into it is not.
bool is_own_line(const char* text) {
  for (const char* theirs : {"/emulator/", "/torch/include/", "/include/c++/", "/usr/include/"})
    if (std::strstr(text, theirs)) return false;
  return text[0] != '?' && !std::strstr(text, ":?");
}

// Reads what addr2line -a says: an address, then its lines, innermost first.
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

// Asks addr2line, which comes with every g++.
std::vector<SourceLine> lines_of(const std::vector<const void*>& counters) {
  constexpr std::size_t kAtOnce = 1000;  // a command line has an end
  std::vector<SourceLine> lines(counters.size(), SourceLine{});
  for (std::size_t first = 0, last; first < counters.size(); first = last) {
    const Library library = library_of(counters[first]);
    std::string command = "addr2line -a -i -e '" + library.file + "'";
    for (last = first; last < counters.size() && last < first + kAtOnce; last++) {
      if (library_of(counters[last]).file != library.file) break;
      char address[32];
      std::snprintf(address, sizeof(address), " 0x%" PRIxPTR,
                    reinterpret_cast<std::uintptr_t>(counters[last]) - library.begin);
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

SourceLine line_of(const void* program_counter) { return lines_of({program_counter}).front(); }

SourceLine innermost_line(const void* const (&counters)[kCalls]) {
  const std::vector<const void*> calls(std::begin(counters), std::end(counters));
  for (const SourceLine& line : lines_of(calls))
    if (line.text[0]) return line;
  return {};
}

}  // namespace emulator
