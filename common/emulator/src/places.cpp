// Names for people: of threads, of files, of lines.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "launch_state.h"

namespace emulator {
namespace {

struct {
  const char *begin, *end;
} own_code;

int find_in(dl_phdr_info* info, std::size_t, void*) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const auto& header = info->dlpi_phdr[i];
    const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* end = begin + header.p_memsz;
    const char* here = reinterpret_cast<const char*>(&find_in);
    if (header.p_type == PT_LOAD && header.p_flags & PF_X && here >= begin && here < end) {
      own_code = {begin, end};
      return 1;
    }
  }
  return 0;
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

bool is_own_code(const void* address) { return address >= own_code.begin && address < own_code.end; }

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

// Where the kernel was: if it was in a library, the call that led there, as far as the stack tells.
const void* counter_in_kernel(const void* context) {
  const void* counter = counter_of(context);
  if (is_own_code(counter)) return counter;
  const char* end = Fiber::running()->stack_end();
  const char* at = stack_of(context);
  if (!at || at > end || end - at > (1 << 20)) return nullptr;
  for (; at + sizeof(void*) <= end; at += sizeof(void*)) {
    const char* candidate;
    std::memcpy(&candidate, at, sizeof(candidate));
    if (is_own_code(candidate)) return candidate - 1;
  }
  return nullptr;
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
