// Thrust's algorithms with one thread for each element. In the overloads without a policy, the iterators say
// where.
#pragma once

#include <algorithm>
#include <vector>

#include "emulator/thrust/policy.h"

namespace thrust {

template <APolicy Policy, typename In, typename Function>
In for_each(const Policy& policy, In first, In last, Function f, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::for_each", "first", last - first, where,
      [=](std::size_t i, auto in) mutable { f(in[i]); }, first);
  return last;
}
template <typename In, typename Function>
requires(!APolicy<In>) In for_each(In first, In last, Function f, EMULATOR_HERE) {
  return for_each(policy_of(first), first, last, f, where);
}
template <APolicy Policy, typename In, typename Size, typename Function>
In for_each_n(const Policy& policy, In first, Size count, Function f, EMULATOR_HERE) {
  return for_each(policy, first, first + count, f, where);
}
template <typename In, typename Size, typename Function>
requires(!APolicy<In>) In for_each_n(In first, Size count, Function f, EMULATOR_HERE) {
  return for_each(policy_of(first), first, first + count, f, where);
}

template <APolicy Policy, typename In, typename Out, typename Function>
Out transform(const Policy& policy, In first, In last, Out result, Function f, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::transform", "first, result", last - first, where,
      [=](std::size_t i, auto in, auto out) mutable { out[i] = f(in[i]); }, first, result);
  return result + (last - first);
}
template <typename In, typename Out, typename Function>
requires(!APolicy<In>) Out transform(In first, In last, Out result, Function f, EMULATOR_HERE) {
  return transform(policy_of(first, result), first, last, result, f, where);
}
template <APolicy Policy, typename A, typename B, typename Out, typename Function>
Out transform(const Policy& policy, A first1, A last1, B first2, Out result, Function f, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::transform", "first1, first2, result", last1 - first1, where,
      [=](std::size_t i, auto a, auto b, auto out) mutable { out[i] = f(a[i], b[i]); }, first1, first2,
      result);
  return result + (last1 - first1);
}
template <typename A, typename B, typename Out, typename Function>
requires(!APolicy<A>) Out transform(A first1, A last1, B first2, Out result, Function f, EMULATOR_HERE) {
  return transform(policy_of(first1, first2, result), first1, last1, first2, result, f, where);
}
template <APolicy Policy, typename In, typename Stencil, typename Out, typename Function, typename Predicate>
Out transform_if(const Policy& policy, In first, In last, Stencil stencil, Out result, Function f,
                 Predicate p, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::transform_if", "first, stencil, result", last - first, where,
      [=](std::size_t i, auto in, auto at, auto out) mutable {
        if (p(at[i])) out[i] = f(in[i]);
      },
      first, stencil, result);
  return result + (last - first);
}
template <typename In, typename Stencil, typename Out, typename Function, typename Predicate>
requires(!APolicy<In>) Out
    transform_if(In first, In last, Stencil stencil, Out result, Function f, Predicate p, EMULATOR_HERE) {
  return transform_if(policy_of(first, stencil, result), first, last, stencil, result, f, p, where);
}

template <APolicy Policy, typename Out, typename T>
void fill(const Policy& policy, Out first, Out last, const T& value, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::fill", "first", last - first, where, [=](std::size_t i, auto out) { out[i] = value; },
      first);
}
template <typename Out, typename T>
requires(!APolicy<Out>) void fill(Out first, Out last, const T& value, EMULATOR_HERE) {
  fill(policy_of(first), first, last, value, where);
}
template <APolicy Policy, typename Out, typename Size, typename T>
Out fill_n(const Policy& policy, Out first, Size count, const T& value, EMULATOR_HERE) {
  fill(policy, first, first + count, value, where);
  return first + count;
}
template <typename Out, typename Size, typename T>
requires(!APolicy<Out>) Out fill_n(Out first, Size count, const T& value, EMULATOR_HERE) {
  return fill_n(policy_of(first), first, count, value, where);
}

template <APolicy Policy, typename Out, typename T, typename Step>
void sequence(const Policy& policy, Out first, Out last, T initial, Step step, EMULATOR_HERE) {
  using Value = iterator_value_t<Out>;
  for_each_index(
      policy, "thrust::sequence", "first", last - first, where,
      [=](std::size_t i, auto out) { out[i] = Value(initial + Value(i) * step); }, first);
}
template <APolicy Policy, typename Out, typename T>
void sequence(const Policy& policy, Out first, Out last, T initial, EMULATOR_HERE) {
  sequence(policy, first, last, initial, T(1), where);
}
template <APolicy Policy, typename Out>
void sequence(const Policy& policy, Out first, Out last, EMULATOR_HERE) {
  using Value = iterator_value_t<Out>;
  sequence(policy, first, last, Value(0), Value(1), where);
}
template <typename Out>
requires(!APolicy<Out>) void sequence(Out first, Out last, EMULATOR_HERE) {
  sequence(policy_of(first), first, last, where);
}
template <typename Out, typename T>
requires(!APolicy<Out>) void sequence(Out first, Out last, T initial, EMULATOR_HERE) {
  sequence(policy_of(first), first, last, initial, T(1), where);
}
template <typename Out, typename T, typename Step>
requires(!APolicy<Out>) void sequence(Out first, Out last, T initial, Step step, EMULATOR_HERE) {
  sequence(policy_of(first), first, last, initial, step, where);
}

template <APolicy Policy, typename Out, typename Function>
void tabulate(const Policy& policy, Out first, Out last, Function f, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::tabulate", "first", last - first, where,
      [=](std::size_t i, auto out) mutable { out[i] = f(std::ptrdiff_t(i)); }, first);
}
template <typename Out, typename Function>
requires(!APolicy<Out>) void tabulate(Out first, Out last, Function f, EMULATOR_HERE) {
  tabulate(policy_of(first), first, last, f, where);
}

// Each thread calls a copy of the function. On the host it is one function, as with rand().
template <APolicy Policy, typename Out, typename Function>
void generate(const Policy& policy, Out first, Out last, Function f, EMULATOR_HERE) {
  if constexpr (std::is_same_v<Policy, HostPolicy>)
    std::generate(first, last, f);
  else
    for_each_index(
        policy, "thrust::generate", "first", last - first, where,
        [=](std::size_t i, auto out) mutable { out[i] = f(); }, first);
}
template <typename Out, typename Function>
requires(!APolicy<Out>) void generate(Out first, Out last, Function f, EMULATOR_HERE) {
  generate(policy_of(first), first, last, f, where);
}

template <APolicy Policy, typename Map, typename In, typename Out>
Out gather(const Policy& policy, Map first, Map last, In input, Out result, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::gather", "map, input, result", last - first, where,
      [=](std::size_t i, auto map, auto in, auto out) { out[i] = in[map[i]]; }, first, input, result);
  return result + (last - first);
}
template <typename Map, typename In, typename Out>
requires(!APolicy<Map>) Out gather(Map first, Map last, In input, Out result, EMULATOR_HERE) {
  return gather(policy_of(first, input, result), first, last, input, result, where);
}
template <APolicy Policy, typename In, typename Map, typename Out>
void scatter(const Policy& policy, In first, In last, Map map, Out result, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::scatter", "first, map, result", last - first, where,
      [=](std::size_t i, auto in, auto place, auto out) { out[place[i]] = in[i]; }, first, map, result);
}
template <typename In, typename Map, typename Out>
requires(!APolicy<In>) void scatter(In first, In last, Map map, Out result, EMULATOR_HERE) {
  scatter(policy_of(first, map, result), first, last, map, result, where);
}

template <APolicy Policy, typename It, typename Predicate, typename T>
void replace_if(const Policy& policy, It first, It last, Predicate p, const T& value, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::replace_if", "first", last - first, where,
      [=](std::size_t i, auto it) mutable {
        if (p(it[i])) it[i] = value;
      },
      first);
}
template <typename It, typename Predicate, typename T>
requires(!APolicy<It>) void replace_if(It first, It last, Predicate p, const T& value, EMULATOR_HERE) {
  replace_if(policy_of(first), first, last, p, value, where);
}
template <APolicy Policy, typename It, typename T>
void replace(const Policy& policy, It first, It last, const T& old, const T& value, EMULATOR_HERE) {
  replace_if(policy, first, last, [=](const T& x) { return x == old; }, value, where);
}
template <typename It, typename T>
requires(!APolicy<It>) void replace(It first, It last, const T& old, const T& value, EMULATOR_HERE) {
  replace(policy_of(first), first, last, old, value, where);
}

// Copies within the device run there; others go through the host.
template <APolicy Policy, typename In, typename Out>
Out copy(const Policy& policy, In first, In last, Out result, EMULATOR_HERE) {
  const auto count = std::distance(first, last);
  using Value = iterator_value_t<In>;
  if constexpr (std::is_same_v<Policy, HostPolicy>) {
    return std::copy(first, last, result);
  } else if constexpr (is_on_device<In> && !is_on_device<Out>) {
    if (count == 0) return result;
    const Temporary<Value> packed(count, where);
    for_each_index(
        policy, "thrust::copy", "first, result", count, where,
        [=](std::size_t i, auto in, auto out) { out[i] = in[i]; }, first, device_ptr<Value>(packed.get()));
    std::vector<unsigned char> bytes(count * sizeof(Value));
    check(cudaMemcpy(bytes.data(), packed.get(), bytes.size(), cudaMemcpyDeviceToHost), "thrust::copy");
    const auto* values = reinterpret_cast<const Value*>(bytes.data());
    return std::copy(values, values + count, result);
  } else if constexpr (!is_on_device<In> && is_on_device<Out>) {
    using Target = iterator_value_t<Out>;
    if (count == 0) return result;
    std::vector<unsigned char> bytes(count * sizeof(Target));
    std::copy(first, last, reinterpret_cast<Target*>(bytes.data()));
    const Temporary<Target> packed(count, where);
    check(cudaMemcpy(packed.get(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "thrust::copy");
    return copy(policy, device_ptr<Target>(packed.get()), device_ptr<Target>(packed.get() + count), result,
                where);
  } else {
    for_each_index(
        policy, "thrust::copy", "first, result", count, where,
        [=](std::size_t i, auto in, auto out) { out[i] = in[i]; }, first, result);
    return result + count;
  }
}
template <typename In, typename Out>
requires(!APolicy<In>) Out copy(In first, In last, Out result, EMULATOR_HERE) {
  return copy(policy_of(first, result), first, last, result, where);
}
template <APolicy Policy, typename In, typename Size, typename Out>
Out copy_n(const Policy& policy, In first, Size count, Out result, EMULATOR_HERE) {
  return copy(policy, first, std::next(first, count), result, where);
}
template <typename In, typename Size, typename Out>
requires(!APolicy<In>) Out copy_n(In first, Size count, Out result, EMULATOR_HERE) {
  return copy(policy_of(first, result), first, std::next(first, count), result, where);
}

template <APolicy Policy, typename In, typename Out, typename Function>
Out adjacent_difference(const Policy& policy, In first, In last, Out result, Function f, EMULATOR_HERE) {
  for_each_index(
      policy, "thrust::adjacent_difference", "first, result", last - first, where,
      [=](std::size_t i, auto in, auto out) mutable {
        if (i == 0)
          out[i] = in[i];
        else
          out[i] = f(in[i], in[i - 1]);
      },
      first, result);
  return result + (last - first);
}
template <typename In, typename Out, typename Function>
requires(!APolicy<In>) Out adjacent_difference(In first, In last, Out result, Function f, EMULATOR_HERE) {
  return adjacent_difference(policy_of(first, result), first, last, result, f, where);
}
template <typename In, typename Out>
requires(!APolicy<In>) Out adjacent_difference(In first, In last, Out result, EMULATOR_HERE) {
  return adjacent_difference(policy_of(first, result), first, last, result, std::minus<>(), where);
}

}  // namespace thrust
