#include "access_sites.h"

#include <cstdlib>
#include <iterator>
#include <set>
#include <unordered_map>
#include <vector>

#include "../report/source_lines.h"

namespace emulator {
namespace {

constexpr std::size_t kMostSites = 65536, kMostLinesSought = 200;  // to find a line takes milliseconds

std::vector<SiteInfo>& site_table() {
  static auto& all = *new std::vector<SiteInfo>;
  if (all.empty())  // for instructions that the table has no room for
    for (int kind = 0; kind < kAccessKinds; kind++)
      all.push_back({nullptr, AccessKind(kind), false, nullptr, ""});
  return all;
}

}  // namespace

RecentSite recent_sites[1024];

Site find_site(const Access& access) {
  static auto& sites = *new std::unordered_map<const void*, Site>;
  if (sites.size() + kAccessKinds >= kMostSites) return Site(access.kind);
  const auto [known, is_new] = sites.try_emplace(access.pc, Site(site_table().size()));
  if (is_new) site_table().push_back({access.pc, access.kind, false, nullptr, ""});
  recent_sites[reinterpret_cast<std::uintptr_t>(access.pc) % std::size(recent_sites)] = {access.pc,
                                                                                         known->second};
  return known->second;
}

SiteInfo& info_of(Site site) { return site_table()[site]; }

const void* line_of(Site site) {
  static auto& lines = *new std::set<std::string>;
  SiteInfo& one = info_of(site);
  if (one.line || !one.pc) return one.line;
  if (lines.size() < kMostLinesSought) one.text = emulator::line_of(one.pc).text;
  one.line = one.text.empty() ? one.pc : &*lines.insert(one.text).first;
  return one.line;
}

int line_number_of(Site site) {
  const std::string& text = info_of(site).text;
  return std::atoi(text.c_str() + text.rfind(':') + 1);
}

}  // namespace emulator
