#include "emulator/ptx/mbarrier.h"

namespace emulator::ptx {

void refuse_arrival(const MBarrier& barrier, std::uint32_t count) {
  abandon("arrives %u times at an mbarrier that expects %u more in this phase", count,
          unsigned(barrier.left));
}

}  // namespace emulator::ptx
