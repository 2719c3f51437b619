// Pages of shadow words, given out and taken back in every launch.
#pragma once

#include <memory>
#include <vector>

#include "shadow.h"

EMULATOR_BEGIN
namespace emulator {

struct ShadowPages {
  std::vector<std::unique_ptr<std::byte[]>> slabs;
  std::unique_ptr<std::byte[]> reserve;  // for the report, if no memory is left
  std::vector<ShadowWord*> free;
  std::vector<Shadow*> users;  // that have taken any

  ShadowWord* take();  // no access in any of its words; throws bad_alloc if the machine has no memory left
  void trim();         // when all are free: keeps what the next launch is likely to need

 private:
  void add_slab();
  void add_free(std::byte& slab);
};
ShadowPages& shadow_pages();

}  // namespace emulator
EMULATOR_END
