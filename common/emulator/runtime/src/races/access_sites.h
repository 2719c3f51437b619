// The instructions that access memory, by their number in a table: small enough for shadow memory.
#pragma once

#include <cstdint>
#include <string>

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

using Site = std::uint16_t;

struct SiteInfo {
  const void* pc;
  AccessKind kind;
  bool is_repeated;  // see record_repetition
  const void* line;  // the same for all of one line; null: not looked up yet
  std::string text;  // "block_sum.cu:11"; may be empty
};

struct RecentSite {
  const void* pc;
  Site site;
};
extern RecentSite recent_sites[1024];
Site find_site(const Access& access);
inline Site site_of(const Access& access) {
  const RecentSite& recent = recent_sites[reinterpret_cast<std::uintptr_t>(access.pc) % 1024];
  return recent.pc == access.pc ? recent.site : find_site(access);
}
SiteInfo& info_of(Site site);
const void* line_of(Site site);  // looks it up; then `text` is known, too
int line_number_of(Site site);

}  // namespace emulator
EMULATOR_END
