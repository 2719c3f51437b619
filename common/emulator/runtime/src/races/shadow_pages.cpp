#include "shadow_pages.h"

#include <cstring>

namespace emulator {
namespace {

constexpr std::size_t kPage = Shadow::kWords * sizeof(ShadowWord), kSlab = 256 * kPage;  // bytes
constexpr std::size_t kKeptSlabs = 64;

}  // namespace

ShadowPages& shadow_pages() {
  static auto& all = *new ShadowPages;
  return all;
}

ShadowWord* ShadowPages::take() {
  if (free.empty()) add_free(slabs.emplace_back(std::make_unique_for_overwrite<std::byte[]>(kSlab))[0]);
  ShadowWord* page = free.back();
  free.pop_back();
  std::memset(static_cast<void*>(page), 0, kPage);
  return page;
}

void ShadowPages::trim() {
  if (slabs.size() <= kKeptSlabs) return;
  slabs.resize(kKeptSlabs);
  free.clear();
  for (auto& slab : slabs) add_free(slab[0]);
}

void ShadowPages::add_free(std::byte& slab) {
  for (std::size_t at = kSlab; at > 0; at -= kPage)
    free.push_back(reinterpret_cast<ShadowWord*>(&slab + at - kPage));
}

}  // namespace emulator
