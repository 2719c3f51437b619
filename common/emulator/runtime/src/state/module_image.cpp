#include "module_image.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace emulator {
namespace {

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

bool is_own_constant(const void* address) {
  return std::any_of(std::begin(own_constants), std::end(own_constants),
                     [&](const Segment& constants) { return constants.holds(address); });
}

// A variable, as the symbol table of the file lists it: its mangled name, and the addresses of its first byte
// and behind its last.
struct Extent {
  std::uintptr_t first, second;
  std::string name;
};

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
    const char* names = file.data() + sections[sections[i].sh_link].sh_offset;
    std::for_each_n(symbols, sections[i].sh_size / sizeof(*symbols), [&](const ElfW(Sym) & symbol) {
      const std::uintptr_t begin = base + symbol.st_value;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF)
        variables.push_back({begin, begin + symbol.st_size, names + symbol.st_name});
    });
  }
  return variables;
}

const std::vector<Extent>& known_variables() {
  static const auto& variables = *new std::vector<Extent>(read_variables());
  return variables;
}

const Extent* variable_at(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Extent& variable : known_variables())
    if (at >= variable.first && at < variable.second) return &variable;
  return nullptr;
}

std::string plain_name(const std::string& mangled) {
  char* plain = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, nullptr);
  const std::string name = plain ? plain : mangled;
  std::free(plain);
  return name;
}

// Whether a variable is of the program itself, at file scope, and no instance of a template. The others may be
// used by device code: static variables of its functions, and variables in the emulator's headers.
bool is_of_program(const std::string& mangled) {
  if (mangled.rfind("_ZZ", 0) == 0) return false;
  const std::string name = plain_name(mangled);
  for (const char* other :
       {"emulator", "std::", "__gnu_cxx::", "cuda::", "cub::", "thrust::", "cooperative_groups::",
        "guard variable", "vtable", "typeinfo", "__", "at::", "c10::", "torch::", "pybind11::"})
    if (name.rfind(other, 0) == 0) return false;
  return name.find('<') == std::string::npos && name.find('.') == std::string::npos;
}

// The rewriter makes a reference of a `__managed__` variable, and a variable of another name with its value.
bool is_managed(const std::string& name) {
  const std::size_t scope = name.rfind("::");
  const std::string initial = "emulator_initial_" + name.substr(scope == std::string::npos ? 0 : scope + 2);
  const auto& all = known_variables();
  return std::any_of(all.begin(), all.end(), [&](const Extent& variable) {
    return variable.name.find(initial) != std::string::npos;
  });
}

}  // namespace

void find_own_code() {
  if (!own_code.begin) dl_iterate_phdr(find_in, nullptr);
}

bool is_own_code(const void* address) { return own_code.holds(address); }
// Constants that hold addresses lie among the variables.
bool is_own_variable(const void* address) {
  return own_variables.holds(address) && !is_own_constant(address);
}
bool is_own_data(const void* address) {
  return is_own_constant(address) || own_code.holds(address) || own_variables.holds(address);
}

bool is_in_variable(const void* address) { return known_variables().empty() || variable_at(address); }

std::string host_variable_at(const void* address) {
  const Extent* variable = variable_at(address);
  if (!variable || !is_of_program(variable->name)) return "";
  const std::string name = plain_name(variable->name);
  return is_managed(name) ? "" : name;
}

}  // namespace emulator
