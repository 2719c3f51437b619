#include "shadow_pages.h"

#include <cstring>
#include <new>

#include "../memory/pages.h"

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
  if (free.empty()) add_slab();
  ShadowWord* page = free.back();
  free.pop_back();
  std::memset(static_cast<void*>(page), 0, kPage);
  return page;
}

void ShadowPages::add_slab() {
  if (!reserve) reserve = std::make_unique_for_overwrite<std::byte[]>(kSlab);
  if (slabs.size() % kKeptSlabs == 0 && !is_available(kKeptSlabs * kSlab)) throw std::bad_alloc();
  free.reserve((slabs.size() + 1) * kSlab / kPage);  // so that pages can be given back without any memory
  add_free(slabs.emplace_back(std::make_unique_for_overwrite<std::byte[]>(kSlab))[0]);
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
