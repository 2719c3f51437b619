// Thrust's algorithms that compute one value. They run in one thread, in the order of the elements.
#pragma once

#include <functional>

#include "emulator/thrust/policy.h"

namespace thrust {

template <APolicy Policy, typename In, typename Function, typename T, typename Operator>
T transform_reduce(const Policy& policy, In first, In last, Function f, T initial, Operator op,
                   EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return compute<T>(
      policy, "thrust::transform_reduce", "first", where,
      [=](auto in) mutable {
        T sum = initial;
        for (std::ptrdiff_t i = 0; i < count; i++) sum = op(sum, f(value_of(in[i])));
        return sum;
      },
      first);
}
template <typename In, typename Function, typename T, typename Operator>
requires(!APolicy<In>) T
    transform_reduce(In first, In last, Function f, T initial, Operator op, EMULATOR_HERE) {
  return transform_reduce(policy_of(first), first, last, f, initial, op, where);
}

template <APolicy Policy, typename In, typename T, typename Operator>
T reduce(const Policy& policy, In first, In last, T initial, Operator op, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return compute<T>(
      policy, "thrust::reduce", "first", where,
      [=](auto in) mutable {
        T sum = initial;
        for (std::ptrdiff_t i = 0; i < count; i++) sum = op(sum, value_of(in[i]));
        return sum;
      },
      first);
}
template <APolicy Policy, typename In, typename T>
T reduce(const Policy& policy, In first, In last, T initial, EMULATOR_HERE) {
  return reduce(policy, first, last, initial, std::plus<>(), where);
}
template <APolicy Policy, typename In>
iterator_value_t<In> reduce(const Policy& policy, In first, In last, EMULATOR_HERE) {
  return reduce(policy, first, last, iterator_value_t<In>(), std::plus<>(), where);
}
template <typename In, typename T, typename Operator>
requires(!APolicy<In>) T reduce(In first, In last, T initial, Operator op, EMULATOR_HERE) {
  return reduce(policy_of(first), first, last, initial, op, where);
}
template <typename In, typename T>
requires(!APolicy<In>) T reduce(In first, In last, T initial, EMULATOR_HERE) {
  return reduce(policy_of(first), first, last, initial, std::plus<>(), where);
}
template <typename In>
requires(!APolicy<In>) iterator_value_t<In> reduce(In first, In last, EMULATOR_HERE) {
  return reduce(policy_of(first), first, last, where);
}

template <APolicy Policy, typename A, typename B, typename T, typename Plus, typename Times>
T inner_product(const Policy& policy, A first1, A last1, B first2, T initial, Plus plus, Times times,
                EMULATOR_HERE) {
  const std::ptrdiff_t count = last1 - first1;
  return compute<T>(
      policy, "thrust::inner_product", "first1, first2", where,
      [=](auto a, auto b) mutable {
        T sum = initial;
        for (std::ptrdiff_t i = 0; i < count; i++) sum = plus(sum, times(value_of(a[i]), value_of(b[i])));
        return sum;
      },
      first1, first2);
}
template <typename A, typename B, typename T, typename Plus, typename Times>
requires(!APolicy<A>) T
    inner_product(A first1, A last1, B first2, T initial, Plus plus, Times times, EMULATOR_HERE) {
  return inner_product(policy_of(first1, first2), first1, last1, first2, initial, plus, times, where);
}
template <APolicy Policy, typename A, typename B, typename T>
T inner_product(const Policy& policy, A first1, A last1, B first2, T initial, EMULATOR_HERE) {
  return inner_product(policy, first1, last1, first2, initial, std::plus<>(), std::multiplies<>(), where);
}
template <typename A, typename B, typename T>
requires(!APolicy<A>) T inner_product(A first1, A last1, B first2, T initial, EMULATOR_HERE) {
  return inner_product(policy_of(first1, first2), first1, last1, first2, initial, where);
}

template <APolicy Policy, typename In, typename Predicate>
std::ptrdiff_t count_if(const Policy& policy, In first, In last, Predicate p, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return compute<std::ptrdiff_t>(
      policy, "thrust::count_if", "first", where,
      [=](auto in) mutable {
        std::ptrdiff_t found = 0;
        for (std::ptrdiff_t i = 0; i < count; i++) found += p(value_of(in[i])) ? 1 : 0;
        return found;
      },
      first);
}
template <typename In, typename Predicate>
requires(!APolicy<In>) std::ptrdiff_t count_if(In first, In last, Predicate p, EMULATOR_HERE) {
  return count_if(policy_of(first), first, last, p, where);
}
template <APolicy Policy, typename In, typename T>
std::ptrdiff_t count(const Policy& policy, In first, In last, const T& value, EMULATOR_HERE) {
  return count_if(policy, first, last, [=](const auto& x) { return x == value; }, where);
}
template <typename In, typename T>
requires(!APolicy<In>) std::ptrdiff_t count(In first, In last, const T& value, EMULATOR_HERE) {
  return count(policy_of(first), first, last, value, where);
}

// The first element that no other one comes before.
template <APolicy Policy, typename In, typename Compare>
In find_first(const Policy& policy, const char* name, In first, In last, Compare comes_before,
              emulator::Position where) {
  const std::ptrdiff_t count = last - first;
  return first + compute<std::ptrdiff_t>(
                     policy, name, "first", where,
                     [=](auto in) mutable {
                       std::ptrdiff_t best = 0;
                       for (std::ptrdiff_t i = 1; i < count; i++)
                         if (comes_before(value_of(in[i]), value_of(in[best]))) best = i;
                       return best;
                     },
                     first);
}
template <APolicy Policy, typename In, typename Compare = std::less<>>
In min_element(const Policy& policy, In first, In last, Compare less = {}, EMULATOR_HERE) {
  return find_first(policy, "thrust::min_element", first, last, less, where);
}
template <typename In, typename Compare = std::less<>>
requires(!APolicy<In>) In min_element(In first, In last, Compare less = {}, EMULATOR_HERE) {
  return min_element(policy_of(first), first, last, less, where);
}
template <APolicy Policy, typename In, typename Compare = std::less<>>
In max_element(const Policy& policy, In first, In last, Compare less = {}, EMULATOR_HERE) {
  return find_first(
      policy, "thrust::max_element", first, last, [=](const auto& a, const auto& b) { return less(b, a); },
      where);
}
template <typename In, typename Compare = std::less<>>
requires(!APolicy<In>) In max_element(In first, In last, Compare less = {}, EMULATOR_HERE) {
  return max_element(policy_of(first), first, last, less, where);
}
template <typename In, typename Compare = std::less<>>
requires(!APolicy<In>) std::pair<In, In> minmax_element(In first, In last, Compare less = {}, EMULATOR_HERE) {
  return {min_element(policy_of(first), first, last, less, where),
          max_element(policy_of(first), first, last, less, where)};
}

template <APolicy Policy, typename In, typename Predicate>
In find_if(const Policy& policy, In first, In last, Predicate p, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return first + compute<std::ptrdiff_t>(
                     policy, "thrust::find_if", "first", where,
                     [=](auto in) mutable {
                       std::ptrdiff_t i = 0;
                       while (i < count && !p(value_of(in[i]))) i++;
                       return i;
                     },
                     first);
}
template <typename In, typename Predicate>
requires(!APolicy<In>) In find_if(In first, In last, Predicate p, EMULATOR_HERE) {
  return find_if(policy_of(first), first, last, p, where);
}
template <APolicy Policy, typename In, typename T>
In find(const Policy& policy, In first, In last, const T& value, EMULATOR_HERE) {
  return find_if(policy, first, last, [=](const auto& x) { return x == value; }, where);
}
template <typename In, typename T>
requires(!APolicy<In>) In find(In first, In last, const T& value, EMULATOR_HERE) {
  return find(policy_of(first), first, last, value, where);
}

template <APolicy Policy, typename In, typename Predicate>
bool all_of(const Policy& policy, In first, In last, Predicate p, EMULATOR_HERE) {
  return count_if(policy, first, last, p, where) == last - first;
}
template <typename In, typename Predicate>
requires(!APolicy<In>) bool all_of(In first, In last, Predicate p, EMULATOR_HERE) {
  return all_of(policy_of(first), first, last, p, where);
}
template <APolicy Policy, typename In, typename Predicate>
bool any_of(const Policy& policy, In first, In last, Predicate p, EMULATOR_HERE) {
  return count_if(policy, first, last, p, where) > 0;
}
template <typename In, typename Predicate>
requires(!APolicy<In>) bool any_of(In first, In last, Predicate p, EMULATOR_HERE) {
  return any_of(policy_of(first), first, last, p, where);
}
template <typename In, typename Predicate>
requires(!APolicy<In>) bool none_of(In first, In last, Predicate p, EMULATOR_HERE) {
  return !any_of(policy_of(first), first, last, p, where);
}

template <APolicy Policy, typename A, typename B>
bool equal(const Policy& policy, A first1, A last1, B first2, EMULATOR_HERE) {
  const std::ptrdiff_t count = last1 - first1;
  return compute<bool>(
      policy, "thrust::equal", "first1, first2", where,
      [=](auto a, auto b) {
        for (std::ptrdiff_t i = 0; i < count; i++)
          if (!(value_of(a[i]) == value_of(b[i]))) return false;
        return true;
      },
      first1, first2);
}
template <typename A, typename B>
requires(!APolicy<A>) bool equal(A first1, A last1, B first2, EMULATOR_HERE) {
  return equal(policy_of(first1, first2), first1, last1, first2, where);
}
template <APolicy Policy, typename In, typename Compare = std::less<>>
bool is_sorted(const Policy& policy, In first, In last, Compare less = {}, EMULATOR_HERE) {
  const std::ptrdiff_t count = last - first;
  return compute<bool>(
      policy, "thrust::is_sorted", "first", where,
      [=](auto in) mutable {
        for (std::ptrdiff_t i = 1; i < count; i++)
          if (less(value_of(in[i]), value_of(in[i - 1]))) return false;
        return true;
      },
      first);
}
template <typename In, typename Compare = std::less<>>
requires(!APolicy<In>) bool is_sorted(In first, In last, Compare less = {}, EMULATOR_HERE) {
  return is_sorted(policy_of(first), first, last, less, where);
}

}  // namespace thrust
