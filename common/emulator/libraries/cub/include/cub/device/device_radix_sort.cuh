// Stands for CUB's header of this name: sorts of arrays by keys. They are stable.
#pragma once

#include <algorithm>

#include "emulator/cub_device.h"

namespace cub {

// Two arrays, of which one has the data: a sort may leave its result in either.
template <typename T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;

  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
  // Sorts by all bits of the keys.
  template <typename Key, typename Count>
  static cudaError_t SortKeys(void* temporary, std::size_t& bytes, const Key* in, Key* out, Count count,
                              int first_bit = 0, int last_bit = 8 * sizeof(Key),
                              cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return keys("cub::DeviceRadixSort::SortKeys", temporary, bytes, in, out, count, std::less<>(), first_bit,
                last_bit, stream, where);
  }
  template <typename Key, typename Count>
  static cudaError_t SortKeysDescending(void* temporary, std::size_t& bytes, const Key* in, Key* out,
                                        Count count, int first_bit = 0, int last_bit = 8 * sizeof(Key),
                                        cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return keys("cub::DeviceRadixSort::SortKeysDescending", temporary, bytes, in, out, count,
                std::greater<>(), first_bit, last_bit, stream, where);
  }
  template <typename Key, typename Value, typename Count>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, const Key* keys_in, Key* keys_out,
                               const Value* values_in, Value* values_out, Count count, int first_bit = 0,
                               int last_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return pairs("cub::DeviceRadixSort::SortPairs", temporary, bytes, keys_in, keys_out, values_in,
                 values_out, count, std::less<>(), first_bit, last_bit, stream, where);
  }
  template <typename Key, typename Value, typename Count>
  static cudaError_t SortPairsDescending(void* temporary, std::size_t& bytes, const Key* keys_in,
                                         Key* keys_out, const Value* values_in, Value* values_out,
                                         Count count, int first_bit = 0, int last_bit = 8 * sizeof(Key),
                                         cudaStream_t stream = nullptr, EMULATOR_HERE) {
    return pairs("cub::DeviceRadixSort::SortPairsDescending", temporary, bytes, keys_in, keys_out, values_in,
                 values_out, count, std::greater<>(), first_bit, last_bit, stream, where);
  }

  template <typename Key, typename Count>
  static cudaError_t SortKeys(void* temporary, std::size_t& bytes, DoubleBuffer<Key>& keys, Count count,
                              int first_bit = 0, int last_bit = 8 * sizeof(Key),
                              cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const cudaError_t error = SortKeys(temporary, bytes, static_cast<const Key*>(keys.Current()),
                                       keys.Alternate(), count, first_bit, last_bit, stream, where);
    if (temporary && !error) keys.selector ^= 1;
    return error;
  }
  template <typename Key, typename Value, typename Count>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, DoubleBuffer<Key>& keys,
                               DoubleBuffer<Value>& values, Count count, int first_bit = 0,
                               int last_bit = 8 * sizeof(Key), cudaStream_t stream = nullptr, EMULATOR_HERE) {
    const cudaError_t error = SortPairs(temporary, bytes, static_cast<const Key*>(keys.Current()),
                                        keys.Alternate(), static_cast<const Value*>(values.Current()),
                                        values.Alternate(), count, first_bit, last_bit, stream, where);
    if (temporary && !error) {
      keys.selector ^= 1;
      values.selector ^= 1;
    }
    return error;
  }

 private:
  // The part of a key that is compared: integers may be sorted by some of their bits only.
  template <typename Key>
  static auto part_of(Key key, int first_bit, int last_bit) {
    if constexpr (std::is_integral_v<Key>) {
      if (first_bit == 0 && last_bit == 8 * int(sizeof(Key))) return static_cast<long double>(key);
      const auto bits = static_cast<unsigned long long>(std::make_unsigned_t<Key>(key));
      const int width = last_bit - first_bit;
      return static_cast<long double>(bits >> first_bit & (width < 64 ? (1ull << width) - 1 : ~0ull));
    } else {
      return key;
    }
  }

  // A key, and its place among the keys that are sorted.
  template <typename Key, typename Count>
  struct Entry {
    Key key;
    Count place;
  };

  // Sorts in temporary memory; then calls finish(i, entry) for each entry in order.
  template <typename Key, typename Count, typename Compare, typename Finish>
  static void sort(Entry<Key, Count>* entries, const Key* from, Count count, Compare compare, int first_bit,
                   int last_bit, Finish finish) {
    for (Count i = 0; i < count; i++) entries[i] = {from[i], i};
    std::sort(entries, entries + count, [=](const Entry<Key, Count>& a, const Entry<Key, Count>& b) {
      const auto left = part_of(a.key, first_bit, last_bit), right = part_of(b.key, first_bit, last_bit);
      return compare(left, right) || (!compare(right, left) && a.place < b.place);
    });
    for (Count i = 0; i < count; i++) finish(i, entries[i]);
  }

  template <typename Key, typename Count, typename Compare>
  static cudaError_t keys(const char* name, void* temporary, std::size_t& bytes, const Key* in, Key* out,
                          Count count, Compare compare, int first_bit, int last_bit, cudaStream_t stream,
                          emulator::Position where) {
    using Own = Entry<Key, Count>;
    cudaError_t result;
    if (emulator::cub::is_answered(temporary, bytes, (std::size_t(count) + 1) * sizeof(Own), result))
      return result;
    const auto body = [=](const Key* from, Key* to, Own* entries) {
      sort(entries, from, count, compare, first_bit, last_bit,
           [=](Count i, const Own& own) { to[i] = own.key; });
    };
    return emulator::launch_once(name, "d_keys_in, d_keys_out, d_temp_storage", stream, where, body, in, out,
                                 static_cast<Own*>(temporary));
  }
  template <typename Key, typename Value, typename Count, typename Compare>
  static cudaError_t pairs(const char* name, void* temporary, std::size_t& bytes, const Key* keys_in,
                           Key* keys_out, const Value* values_in, Value* values_out, Count count,
                           Compare compare, int first_bit, int last_bit, cudaStream_t stream,
                           emulator::Position where) {
    using Own = Entry<Key, Count>;
    cudaError_t result;
    if (emulator::cub::is_answered(temporary, bytes, (std::size_t(count) + 1) * sizeof(Own), result))
      return result;
    const auto body = [=](const Key* from, Key* to, const Value* from_values, Value* to_values,
                          Own* entries) {
      sort(entries, from, count, compare, first_bit, last_bit, [=](Count i, const Own& own) {
        to[i] = own.key;
        to_values[i] = from_values[own.place];
      });
    };
    return emulator::launch_once(name, "d_keys_in, d_keys_out, d_values_in, d_values_out, d_temp_storage",
                                 stream, where, body, keys_in, keys_out, values_in, values_out,
                                 static_cast<Own*>(temporary));
  }
};

}  // namespace cub
