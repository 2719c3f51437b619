// Stands for CUB's header of this name: a block sorts its threads' keys, with or without values. It is
// stable.
#pragma once

#include <algorithm>

#include "emulator/cub_operators.h"

namespace cub {

template <typename Key, int threads_x, int count, typename Value = NullType>
class BlockRadixSort {
 public:
  struct Entry {
    Key key;
    Value value;
    int place;  // keeps the order of equal keys
  };
  struct TempStorage {
    Entry entries[threads_x * count];
  };

  explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}
  BlockRadixSort(EMULATOR_HERE) : storage_(emulator::cub::own_storage<TempStorage>(where)) {}

  // Afterwards each thread has adjacent keys; or, if the result is striped, every `threads_x`-th key.
  void Sort(Key (&keys)[count], EMULATOR_HERE) { sort(keys, no_values_, std::less<>(), false, where); }
  void SortDescending(Key (&keys)[count], EMULATOR_HERE) {
    sort(keys, no_values_, std::greater<>(), false, where);
  }
  void SortBlockedToStriped(Key (&keys)[count], EMULATOR_HERE) {
    sort(keys, no_values_, std::less<>(), true, where);
  }
  void Sort(Key (&keys)[count], Value (&values)[count], EMULATOR_HERE) {
    sort(keys, values, std::less<>(), false, where);
  }
  void SortDescending(Key (&keys)[count], Value (&values)[count], EMULATOR_HERE) {
    sort(keys, values, std::greater<>(), false, where);
  }

 private:
  template <typename Compare>
  void sort(Key (&keys)[count], Value (&values)[count], Compare compare, bool is_striped,
            emulator::Position where) {
    const int rank = int(emulator::cub::thread_rank());
    for (int i = 0; i < count; i++)
      storage_.entries[rank * count + i] = {keys[i], values[i], rank * count + i};
    __syncthreads(where);
    if (rank == 0)
      std::sort(storage_.entries, storage_.entries + threads_x * count, [=](const Entry& a, const Entry& b) {
        return compare(a.key, b.key) || (!compare(b.key, a.key) && a.place < b.place);
      });
    __syncthreads(where);
    for (int i = 0; i < count; i++) {
      const Entry& entry = storage_.entries[is_striped ? i * threads_x + rank : rank * count + i];
      keys[i] = entry.key;
      values[i] = entry.value;
    }
  }

  TempStorage& storage_;
  Value no_values_[count];
};

}  // namespace cub
