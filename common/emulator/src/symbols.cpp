// The variables of this extension, or program, as its file lists them.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "launch_state.h"

namespace emulator {
namespace {

using Extent = std::pair<std::uintptr_t, std::uintptr_t>;

std::vector<char> own_file(const Dl_info& own) {
  Dl_info program;
  const bool is_program =
      dladdr(reinterpret_cast<void*>(_r_debug.r_map->l_ld), &program) && program.dli_fbase == own.dli_fbase;
  std::ifstream file(is_program ? "/proc/self/exe" : own.dli_fname, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Extent> read_variables() {
  std::vector<Extent> variables;
  Dl_info own;
  if (!dladdr(reinterpret_cast<const void*>(&read_variables), &own)) return variables;
  const std::vector<char> file = own_file(own);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
  if (file.size() < sizeof(*header) || header->e_shoff + header->e_shnum * sizeof(ElfW(Shdr)) > file.size())
    return variables;
  const auto base = header->e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(own.dli_fbase) : 0;
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
    std::for_each_n(symbols, sections[i].sh_size / sizeof(*symbols), [&](const ElfW(Sym) & symbol) {
      const std::uintptr_t begin = base + symbol.st_value;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF)
        variables.emplace_back(begin, begin + symbol.st_size);
    });
  }
  return variables;
}

}  // namespace

bool is_in_variable(const void* address) {
  static const auto& variables = *new std::vector<Extent>(read_variables());
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return variables.empty() || std::any_of(variables.begin(), variables.end(), [&](const Extent& variable) {
           return at >= variable.first && at < variable.second;
         });
}

}  // namespace emulator
