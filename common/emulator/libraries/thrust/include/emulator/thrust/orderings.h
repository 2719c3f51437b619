// Thrust's algorithms that move elements: scans, sorts, selections. They run in one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "emulator/thrust/functional.h"  // as Thrust's headers of these algorithms do
#include "emulator/thrust/policy.h"
#include "emulator/thrust/reductions.h"

namespace thrust {

// Scans: `out` may be `in`.
template <APolicy Policy, typename In, typename Out, typename Function, typename Operator>
Out transform_inclusive_scan(const Policy& policy, In first, In last, Out result, Function f, Operator op,
                             EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  run(
      policy, "thrust::inclusive_scan", "first, result", where,
      [=](auto in, auto out) mutable {
        if (count == 0) return;
        auto sum = f(value_of(in[0]));
        out[0] = sum;
        for (std::ptrdiff_t i = 1; i < count; i++) out[i] = sum = op(sum, f(value_of(in[i])));
      },
      first, result);
  return result + count;
}
template <typename In, typename Out, typename Function, typename Operator>
requires(!APolicy<In>) Out
    transform_inclusive_scan(In first, In last, Out result, Function f, Operator op, EMULATOR_HERE) {
  return transform_inclusive_scan(policy_of(first, result), first, last, result, f, op, where);
}
struct Same {
  template <typename T>
  T operator()(const T& value) const {
    return value;
  }
};
template <APolicy Policy, typename In, typename Out, typename Operator = std::plus<>>
Out inclusive_scan(const Policy& policy, In first, In last, Out result, Operator op = {}, EMULATOR_HERE) {
  return transform_inclusive_scan(policy, first, last, result, Same(), op, where);
}
template <typename In, typename Out, typename Operator = std::plus<>>
requires(!APolicy<In>) Out inclusive_scan(In first, In last, Out result, Operator op = {}, EMULATOR_HERE) {
  return inclusive_scan(policy_of(first, result), first, last, result, op, where);
}
template <APolicy Policy, typename In, typename Out, typename Function, typename T, typename Operator>
Out transform_exclusive_scan(const Policy& policy, In first, In last, Out result, Function f, T initial,
                             Operator op, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  run(
      policy, "thrust::exclusive_scan", "first, result", where,
      [=](auto in, auto out) mutable {
        T sum = initial;
        for (std::ptrdiff_t i = 0; i < count; i++) {
          const T next = op(sum, f(value_of(in[i])));
          out[i] = sum;
          sum = next;
        }
      },
      first, result);
  return result + count;
}
template <typename In, typename Out, typename Function, typename T, typename Operator>
requires(!APolicy<In>) Out transform_exclusive_scan(In first, In last, Out result, Function f, T initial,
                                                    Operator op, EMULATOR_HERE) {
  return transform_exclusive_scan(policy_of(first, result), first, last, result, f, initial, op, where);
}
template <APolicy Policy, typename In, typename Out, typename T, typename Operator = std::plus<>>
Out exclusive_scan(const Policy& policy, In first, In last, Out result, T initial, Operator op = {},
                   EMULATOR_HERE) {
  return transform_exclusive_scan(policy, first, last, result, Same(), initial, op, where);
}
template <APolicy Policy, typename In, typename Out>
Out exclusive_scan(const Policy& policy, In first, In last, Out result, EMULATOR_HERE) {
  return exclusive_scan(policy, first, last, result, iterator_value_t<In>(), std::plus<>(), where);
}
template <typename In, typename Out, typename T, typename Operator = std::plus<>>
requires(!APolicy<In>) Out
    exclusive_scan(In first, In last, Out result, T initial, Operator op = {}, EMULATOR_HERE) {
  return exclusive_scan(policy_of(first, result), first, last, result, initial, op, where);
}
template <typename In, typename Out>
requires(!APolicy<In>) Out exclusive_scan(In first, In last, Out result, EMULATOR_HERE) {
  return exclusive_scan(policy_of(first, result), first, last, result, where);
}

// Sorts are stable. A kernel sorts a copy of the keys, with their places.
template <typename Key>
struct Placed {
  Key key;
  std::ptrdiff_t place;
};
template <APolicy Policy, typename Keys, typename Values, typename Compare>
void sort_placed(const Policy& policy, const char* name, Keys first, Keys last, Values values, Compare less,
                 emulator::Position where) {
  using Key = iterator_value_t<Keys>;
  using Value = iterator_value_t<Values>;
  const std::ptrdiff_t count = last - first;
  auto sort_all = [=](auto keys, auto own_values, auto* placed, auto* copies) mutable {
    for (std::ptrdiff_t i = 0; i < count; i++) {
      new (&placed[i]) Placed<Key>{value_of(keys[i]), i};
      new (&copies[i]) Value(value_of(own_values[i]));
    }
    std::sort(placed, placed + count, [=](const Placed<Key>& a, const Placed<Key>& b) mutable {
      return less(a.key, b.key) || (!less(b.key, a.key) && a.place < b.place);
    });
    for (std::ptrdiff_t i = 0; i < count; i++) {
      keys[i] = placed[i].key;
      own_values[i] = copies[placed[i].place];
    }
  };
  if constexpr (std::is_same_v<Policy, HostPolicy>) {
    std::vector<unsigned char> placed(count * sizeof(Placed<Key>)), copies(count * sizeof(Value));
    sort_all(first, values, reinterpret_cast<Placed<Key>*>(placed.data()),
             reinterpret_cast<Value*>(copies.data()));
  } else {
    const Temporary<Placed<Key>> placed(count, where);
    const Temporary<Value> copies(count, where);
    run(policy, name, "keys, values, placed, copies", where, sort_all, first, values,
        device_ptr<Placed<Key>>(placed.get()), device_ptr<Value>(copies.get()));
  }
}
template <APolicy Policy, typename Keys, typename Values, typename Compare = std::less<>>
void sort_by_key(const Policy& policy, Keys first, Keys last, Values values, Compare less = {},
                 EMULATOR_HERE) {
  sort_placed(policy, "thrust::sort_by_key", first, last, values, less, where);
}
template <typename Keys, typename Values, typename Compare = std::less<>>
requires(!APolicy<Keys>) void sort_by_key(Keys first, Keys last, Values values, Compare less = {},
                                          EMULATOR_HERE) {
  sort_by_key(policy_of(first), first, last, values, less, where);
}
template <typename Keys, typename Values, typename Compare = std::less<>>
requires(!APolicy<Keys>) void stable_sort_by_key(Keys first, Keys last, Values values, Compare less = {},
                                                 EMULATOR_HERE) {
  sort_by_key(policy_of(first), first, last, values, less, where);
}
template <APolicy Policy, typename Keys, typename Compare = std::less<>>
void sort(const Policy& policy, Keys first, Keys last, Compare less = {}, EMULATOR_HERE) {
  sort_placed(policy, "thrust::sort", first, last, discard_iterator(), less, where);
}
template <typename Keys, typename Compare = std::less<>>
requires(!APolicy<Keys>) void sort(Keys first, Keys last, Compare less = {}, EMULATOR_HERE) {
  sort(policy_of(first), first, last, less, where);
}
template <APolicy Policy, typename Keys, typename Compare = std::less<>>
void stable_sort(const Policy& policy, Keys first, Keys last, Compare less = {}, EMULATOR_HERE) {
  sort(policy, first, last, less, where);
}
template <typename Keys, typename Compare = std::less<>>
requires(!APolicy<Keys>) void stable_sort(Keys first, Keys last, Compare less = {}, EMULATOR_HERE) {
  sort(policy_of(first), first, last, less, where);
}

// Copies the elements for which the predicate of their stencil holds, in order.
template <APolicy Policy, typename In, typename Stencil, typename Out, typename Predicate>
Out copy_if(const Policy& policy, In first, In last, Stencil stencil, Out result, Predicate p,
            EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return result + compute<std::ptrdiff_t>(
                      policy, "thrust::copy_if", "first, stencil, result", where,
                      [=](auto in, auto at, auto out) mutable {
                        std::ptrdiff_t kept = 0;
                        for (std::ptrdiff_t i = 0; i < count; i++)
                          if (p(value_of(at[i]))) out[kept++] = in[i];
                        return kept;
                      },
                      first, stencil, result);
}
template <typename In, typename Stencil, typename Out, typename Predicate>
requires(!APolicy<In>) Out
    copy_if(In first, In last, Stencil stencil, Out result, Predicate p, EMULATOR_HERE) {
  return copy_if(policy_of(first, stencil, result), first, last, stencil, result, p, where);
}
template <APolicy Policy, typename In, typename Out, typename Predicate>
Out copy_if(const Policy& policy, In first, In last, Out result, Predicate p, EMULATOR_HERE) {
  return copy_if(policy, first, last, first, result, p, where);
}
template <typename In, typename Out, typename Predicate>
requires(!APolicy<In>) Out copy_if(In first, In last, Out result, Predicate p, EMULATOR_HERE) {
  return copy_if(policy_of(first, result), first, last, first, result, p, where);
}
template <APolicy Policy, typename It, typename Predicate>
It remove_if(const Policy& policy, It first, It last, Predicate p, EMULATOR_HERE) {
  return copy_if(policy, first, last, first, first, [=](const auto& x) mutable { return !p(x); }, where);
}
template <typename It, typename Predicate>
requires(!APolicy<It>) It remove_if(It first, It last, Predicate p, EMULATOR_HERE) {
  return remove_if(policy_of(first), first, last, p, where);
}
template <APolicy Policy, typename It, typename T>
It remove(const Policy& policy, It first, It last, const T& value, EMULATOR_HERE) {
  return remove_if(policy, first, last, [=](const auto& x) { return x == value; }, where);
}
template <typename It, typename T>
requires(!APolicy<It>) It remove(It first, It last, const T& value, EMULATOR_HERE) {
  return remove(policy_of(first), first, last, value, where);
}
template <APolicy Policy, typename It, typename Equal = std::equal_to<>>
It unique(const Policy& policy, It first, It last, Equal equal = {}, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return first + compute<std::ptrdiff_t>(
                     policy, "thrust::unique", "first", where,
                     [=](auto it) mutable {
                       std::ptrdiff_t kept = 0;
                       for (std::ptrdiff_t i = 0; i < count; i++)
                         if (i == 0 || !equal(value_of(it[kept - 1]), value_of(it[i])))
                           it[kept++] = value_of(it[i]);
                       return kept;
                     },
                     first);
}
template <typename It, typename Equal = std::equal_to<>>
requires(!APolicy<It>) It unique(It first, It last, Equal equal = {}, EMULATOR_HERE) {
  return unique(policy_of(first), first, last, equal, where);
}
template <APolicy Policy, typename It, typename Predicate>
It partition(const Policy& policy, It first, It last, Predicate p, EMULATOR_HERE) {
  using Value = iterator_value_t<It>;
  const auto held = count_if(policy, first, last, p, where);
  // A sort by the predicate: those for which it holds come first.
  sort(policy, first, last, [=](const Value& a, const Value& b) mutable { return p(a) && !p(b); }, where);
  return first + held;
}
template <typename It, typename Predicate>
requires(!APolicy<It>) It partition(It first, It last, Predicate p, EMULATOR_HERE) {
  return partition(policy_of(first), first, last, p, where);
}
template <typename It, typename Predicate>
requires(!APolicy<It>) It stable_partition(It first, It last, Predicate p, EMULATOR_HERE) {
  return partition(policy_of(first), first, last, p, where);
}
template <APolicy Policy, typename It>
void reverse(const Policy& policy, It first, It last, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  for_each_index(
      policy, "thrust::reverse", "first", count / 2, where,
      [=](std::size_t i, auto it) {
        const iterator_value_t<It> kept = it[i];
        it[i] = value_of(it[count - 1 - std::ptrdiff_t(i)]);
        it[count - 1 - std::ptrdiff_t(i)] = kept;
      },
      first);
}
template <typename It>
requires(!APolicy<It>) void reverse(It first, It last, EMULATOR_HERE) {
  reverse(policy_of(first), first, last, where);
}

template <APolicy Policy, typename Keys, typename Values, typename Compare = std::less<>>
void stable_sort_by_key(const Policy& policy, Keys first, Keys last, Values values, Compare less = {},
                        EMULATOR_HERE) {
  sort_by_key(policy, first, last, values, less, where);
}
template <APolicy Policy, typename It, typename Predicate>
It stable_partition(const Policy& policy, It first, It last, Predicate p, EMULATOR_HERE) {
  return partition(policy, first, last, p, where);
}

// Scans that begin again where the key changes.
template <APolicy Policy, typename Keys, typename Values, typename Out, typename Equal = std::equal_to<>,
          typename Operator = std::plus<>>
Out inclusive_scan_by_key(const Policy& policy, Keys first, Keys last, Values values, Out result,
                          Equal equal = {}, Operator op = {}, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  run(
      policy, "thrust::inclusive_scan_by_key", "keys, values, result", where,
      [=](auto keys, auto given, auto out) mutable {
        iterator_value_t<Values> sum{};
        for (std::ptrdiff_t i = 0; i < count; i++) {
          const bool is_first = i == 0 || !equal(value_of(keys[i - 1]), value_of(keys[i]));
          sum = is_first ? value_of(given[i]) : op(sum, value_of(given[i]));
          out[i] = sum;
        }
      },
      first, values, result);
  return result + count;
}
template <typename Keys, typename Values, typename Out, typename Equal = std::equal_to<>,
          typename Operator = std::plus<>>
requires(!APolicy<Keys>) Out inclusive_scan_by_key(Keys first, Keys last, Values values, Out result,
                                                   Equal equal = {}, Operator op = {}, EMULATOR_HERE) {
  return inclusive_scan_by_key(policy_of(first, result), first, last, values, result, equal, op, where);
}
template <APolicy Policy, typename Keys, typename Values, typename Out>
Out exclusive_scan_by_key(const Policy& policy, Keys first, Keys last, Values values, Out result,
                          EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  run(
      policy, "thrust::exclusive_scan_by_key", "keys, values, result", where,
      [=](auto keys, auto given, auto out) {
        iterator_value_t<Values> sum{};
        for (std::ptrdiff_t i = 0; i < count; i++) {
          if (i > 0 && !(value_of(keys[i - 1]) == value_of(keys[i]))) sum = iterator_value_t<Values>{};
          const iterator_value_t<Values> own = given[i];
          out[i] = sum;
          sum = sum + own;
        }
      },
      first, values, result);
  return result + count;
}
template <typename Keys, typename Values, typename Out>
requires(!APolicy<Keys>) Out
    exclusive_scan_by_key(Keys first, Keys last, Values values, Out result, EMULATOR_HERE) {
  return exclusive_scan_by_key(policy_of(first, result), first, last, values, result, where);
}

// Of adjacent elements with equal keys, the first ones stay.
template <APolicy Policy, typename Keys, typename Values>
std::pair<Keys, Values> unique_by_key(const Policy& policy, Keys first, Keys last, Values values,
                                      EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  const auto kept = compute<std::ptrdiff_t>(
      policy, "thrust::unique_by_key", "keys, values", where,
      [=](auto keys, auto own) {
        std::ptrdiff_t stay = 0;
        for (std::ptrdiff_t i = 0; i < count; i++)
          if (i == 0 || !(value_of(keys[stay - 1]) == value_of(keys[i]))) {
            keys[stay] = value_of(keys[i]);
            own[stay++] = value_of(own[i]);
          }
        return stay;
      },
      first, values);
  return {first + kept, values + kept};
}
template <typename Keys, typename Values>
requires(!APolicy<Keys>) std::pair<Keys, Values> unique_by_key(Keys first, Keys last, Values values,
                                                               EMULATOR_HERE) {
  return unique_by_key(policy_of(first), first, last, values, where);
}

// Two sorted arrays become one.
template <APolicy Policy, typename A, typename B, typename Out, typename Compare = std::less<>>
Out merge(const Policy& policy, A first1, A last1, B first2, B last2, Out result, Compare less = {},
          EMULATOR_HERE) {
  const std::ptrdiff_t count1 = last1 - first1, count2 = last2 - first2;
  run(
      policy, "thrust::merge", "first1, first2, result", where,
      [=](auto a, auto b, auto out) mutable {
        for (std::ptrdiff_t i = 0, j = 0; i + j < count1 + count2;) {
          const std::ptrdiff_t place = i + j;
          if (j == count2 || (i < count1 && !less(value_of(b[j]), value_of(a[i]))))
            out[place] = a[i++];
          else
            out[place] = b[j++];
        }
      },
      first1, first2, result);
  return result + count1 + count2;
}
template <typename A, typename B, typename Out, typename Compare = std::less<>>
requires(!APolicy<A>) Out
    merge(A first1, A last1, B first2, B last2, Out result, Compare less = {}, EMULATOR_HERE) {
  return merge(policy_of(first1, first2, result), first1, last1, first2, last2, result, less, where);
}

// The sums of adjacent values with equal keys.
template <APolicy Policy, typename Keys, typename Values, typename OutKeys, typename OutValues,
          typename Equal = std::equal_to<>, typename Operator = std::plus<>>
std::pair<OutKeys, OutValues> reduce_by_key(const Policy& policy, Keys first, Keys last, Values values,
                                            OutKeys out_keys, OutValues out_values, Equal equal = {},
                                            Operator op = {}, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  const auto groups = compute<std::ptrdiff_t>(
      policy, "thrust::reduce_by_key", "keys, values, out_keys, out_values", where,
      [=](auto keys, auto given, auto to_keys, auto to_values) mutable {
        std::ptrdiff_t group = 0;
        for (std::ptrdiff_t i = 0; i < count; group++) {
          const iterator_value_t<Keys> key = keys[i];
          iterator_value_t<Values> sum = given[i];
          for (i++; i < count && equal(key, value_of(keys[i])); i++) sum = op(sum, value_of(given[i]));
          to_keys[group] = key;
          to_values[group] = sum;
        }
        return group;
      },
      first, values, out_keys, out_values);
  return {out_keys + groups, out_values + groups};
}
template <typename Keys, typename Values, typename OutKeys, typename OutValues,
          typename Equal = std::equal_to<>, typename Operator = std::plus<>>
requires(!APolicy<Keys>) std::pair<OutKeys, OutValues> reduce_by_key(Keys first, Keys last, Values values,
                                                                     OutKeys out_keys, OutValues out_values,
                                                                     Equal equal = {}, Operator op = {},
                                                                     EMULATOR_HERE) {
  return reduce_by_key(policy_of(first), first, last, values, out_keys, out_values, equal, op, where);
}

// For each value, the place in a sorted array where it begins or ends.
template <APolicy Policy, typename In, typename Values, typename Out, typename Compare>
Out search(const Policy& policy, const char* name, In first, In last, Values values_first, Values values_last,
           Out result, Compare is_before, emulator::Position where) {
  const std::ptrdiff_t count = last - first;
  for_each_index(
      policy, name, "first, values, result", values_last - values_first, where,
      [=](std::size_t k, auto in, auto values, auto out) {
        std::ptrdiff_t low = 0, high = count;
        while (low < high) {
          const std::ptrdiff_t middle = (low + high) / 2;
          if (is_before(value_of(in[middle]), value_of(values[k])))
            low = middle + 1;
          else
            high = middle;
        }
        out[k] = low;
      },
      first, values_first, result);
  return result + (values_last - values_first);
}
template <typename In, typename Values, typename Out>
requires(!APolicy<In>) Out
    lower_bound(In first, In last, Values values_first, Values values_last, Out result, EMULATOR_HERE) {
  return search(
      policy_of(first, result), "thrust::lower_bound", first, last, values_first, values_last, result,
      [](const auto& a, const auto& b) { return a < b; }, where);
}
template <typename In, typename Values, typename Out>
requires(!APolicy<In>) Out
    upper_bound(In first, In last, Values values_first, Values values_last, Out result, EMULATOR_HERE) {
  return search(
      policy_of(first, result), "thrust::upper_bound", first, last, values_first, values_last, result,
      [](const auto& a, const auto& b) { return !(b < a); }, where);
}

}  // namespace thrust
