// The counts and traced accesses as JSON:
//   {"launches": [{"kernel": "k<T>", "launches": 1, "grid": [2, 1, 1], "block": [256, 1, 1], "idle_blocks":
//   0, ...}],
//    "rows": [{"kernel": "k<T>", "file": "./csrc/k.cu", "line": 7, "space": "global load", "requests": ...}],
//    "arrays": [{"name": "x", "element": 4, "past_sector": 0, "sizes": [3, 70], "strides": [70, 1]}],
//    "accesses": [{"kernel": "k<T>", "line": ..., "array": 0, "thread": 31, "request": 0, "offset": 124,
//    ...}]}
#include <cstdlib>

#include "../state/settings.h"
#include "counts.h"

namespace emulator {
namespace {

std::string quoted(const std::string& text) {
  std::string answer = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') answer += '\\';
    answer += c == '\n' || c == '\t' ? ' ' : c;
  }
  return answer + "\"";
}

// The fields of one object, in order.
class Object {
 public:
  Object& add(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "\"" : ", \"") + std::string(name) + "\": " + value;
    return *this;
  }
  Object& text(const char* name, const std::string& value) { return add(name, quoted(value)); }
  template <typename T>
  Object& number(const char* name, T value) {
    return add(name, std::to_string(value));
  }
  template <typename T>
  Object& numbers(const char* name, const std::vector<T>& values) {
    std::string list;
    for (const T value : values) list += (list.empty() ? "" : ", ") + std::to_string(value);
    return add(name, "[" + list + "]");
  }
  // "lltm.cu:12" as a file and a line; an unknown one is line 0.
  Object& place(const std::string& where) {
    const std::size_t colon = where.rfind(':');
    return text("file", where.substr(0, colon))
        .number("line", where.empty() ? 0 : std::atol(where.c_str() + colon + 1));
  }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string field(const char* name, const std::vector<std::string>& objects) {
  std::string list;
  for (const std::string& object : objects) list += (list.empty() ? "\n " : ",\n ") + object;
  return "\"" + std::string(name) + "\": [" + list + "]";
}

std::vector<unsigned> list_of(dim3 size) { return {size.x, size.y, size.z}; }

std::vector<std::string> launches() {
  std::vector<std::string> texts;
  for (const CountedKernel& kernel : counts().kernels)
    texts.push_back(Object()
                        .text("kernel", kernel.name)
                        .number("launches", kernel.launches)
                        .numbers("grid", list_of(kernel.grid))
                        .numbers("block", list_of(kernel.block))
                        .number("on_other_streams", kernel.on_other_streams)
                        .number("unguarded", kernel.unguarded)
                        .number("idle_blocks", kernel.idle_blocks)
                        .number("idle_warps", kernel.idle_warps)
                        .number("stored_bytes", kernel.stored_bytes)
                        .number("repeated_stores", kernel.repeated_stores)
                        .text("first_repeated", kernel.first_repeated)
                        .str());
  return texts;
}

std::vector<std::string> rows(const std::vector<SourceLine>& lines) {
  std::map<std::pair<unsigned, std::pair<std::string, Use>>, Totals> by_line;
  for (std::size_t i = 0; i < lines.size(); i++) {
    const CountedInstruction& one = counts().instructions[i];
    by_line[{one.kernel, {lines[i].text, one.use}}] += one.totals;
  }
  std::vector<std::string> texts;
  for (const auto& [where, totals] : by_line)
    texts.push_back(Object()
                        .text("kernel", counts().kernels[where.first].name)
                        .place(where.second.first)
                        .text("space", name_of(where.second.second))
                        .number("requests", totals.requests)
                        .number("lanes", totals.lanes)
                        .number("bytes", totals.bytes)
                        .number("sectors", totals.sectors)
                        .number("ideal_sectors", totals.ideal_sectors)
                        .number("wavefronts", totals.wavefronts)
                        .number("conflicts", totals.conflicts)
                        .str());
  return texts;
}

std::vector<std::string> arrays() {
  std::vector<std::string> texts;
  for (const TracedArray& array : counts().trace.arrays)
    texts.push_back(Object()
                        .text("name", array.name)
                        .number("element", array.element)
                        .number("past_sector", array.begin % kSector)
                        .numbers("sizes", array.sizes)
                        .numbers("strides", array.strides)
                        .str());
  return texts;
}

std::vector<std::string> accesses(const std::vector<SourceLine>& lines) {
  std::vector<std::string> texts;
  for (const TracedAccess& access : counts().trace.accesses) {
    const CountedInstruction& one = counts().instructions[access.instruction];
    texts.push_back(Object()
                        .text("kernel", counts().kernels[one.kernel].name)
                        .place(lines[access.instruction].text)
                        .text("space", name_of(one.use))
                        .number("instruction", access.instruction)
                        .number("request", access.request)
                        .number("thread", access.thread)
                        .number("array", access.array)
                        .number("offset", access.offset)
                        .number("size", access.size)
                        .str());
  }
  return texts;
}

}  // namespace

std::string counts_as_json() {
  std::vector<const void*> pcs;
  for (const CountedInstruction& one : counts().instructions) pcs.push_back(one.pc);
  const std::vector<SourceLine> lines = lines_of(pcs);
  return "{\"nonce\": \"" + nonce() + "\",\n" + field("launches", launches()) + ",\n" +
         field("rows", rows(lines)) + ",\n" + field("arrays", arrays()) + ",\n" +
         field("accesses", accesses(lines)) + "}\n";
}

}  // namespace emulator
