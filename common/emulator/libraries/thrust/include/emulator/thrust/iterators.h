// Thrust's iterators, and the form that a kernel gets of each: with plain pointers in place of those to the
// device.
#pragma once

#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/thrust/memory.h"

namespace thrust {

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;

template <typename Iterator>
using iterator_value_t = typename std::iterator_traits<Iterator>::value_type;
template <typename Iterator>
using iterator_difference_t = typename std::iterator_traits<Iterator>::difference_type;
using std::advance;
using std::distance;
using std::next;
using std::prev;

// The arithmetic of iterators that hold a position: Own has `Own moved(n) const` and `n - other` as
// `distance_to`.
template <typename Own, typename Value, typename Reference>
class iterator_arithmetic {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using reference = Reference;
  using pointer = void;

  Reference operator[](difference_type n) const { return *own().moved(n); }
  Own& operator+=(difference_type n) { return own() = own().moved(n); }
  Own& operator-=(difference_type n) { return own() = own().moved(-n); }
  Own& operator++() { return *this += 1; }
  Own& operator--() { return *this -= 1; }
  Own operator++(int) { return std::exchange(own(), own().moved(1)); }
  Own operator--(int) { return std::exchange(own(), own().moved(-1)); }
  friend Own operator+(const Own& a, difference_type n) { return a.moved(n); }
  friend Own operator+(difference_type n, const Own& a) { return a.moved(n); }
  friend Own operator-(const Own& a, difference_type n) { return a.moved(-n); }
  friend difference_type operator-(const Own& a, const Own& b) { return b.distance_to(a); }
  friend bool operator==(const Own& a, const Own& b) { return b.distance_to(a) == 0; }
  friend bool operator!=(const Own& a, const Own& b) { return b.distance_to(a) != 0; }
  friend bool operator<(const Own& a, const Own& b) { return b.distance_to(a) < 0; }

 private:
  Own& own() { return static_cast<Own&>(*this); }
  const Own& own() const { return static_cast<const Own&>(*this); }
};

// n, n + 1, n + 2, ...
template <typename T>
class counting_iterator : public iterator_arithmetic<counting_iterator<T>, T, T> {
 public:
  explicit counting_iterator(T value = T()) : value_(value) {}
  T operator*() const { return value_; }
  counting_iterator moved(std::ptrdiff_t n) const { return counting_iterator(T(value_ + n)); }
  std::ptrdiff_t distance_to(const counting_iterator& other) const { return other.value_ - value_; }

 private:
  T value_;
};
template <typename T>
counting_iterator<T> make_counting_iterator(T value) {
  return counting_iterator<T>(value);
}

// The same value again and again.
template <typename T>
class constant_iterator : public iterator_arithmetic<constant_iterator<T>, T, T> {
 public:
  explicit constant_iterator(T value = T(), std::ptrdiff_t place = 0) : value_(value), place_(place) {}
  T operator*() const { return value_; }
  constant_iterator moved(std::ptrdiff_t n) const { return constant_iterator(value_, place_ + n); }
  std::ptrdiff_t distance_to(const constant_iterator& other) const { return other.place_ - place_; }

 private:
  T value_;
  std::ptrdiff_t place_;
};
template <typename T>
constant_iterator<T> make_constant_iterator(T value, std::ptrdiff_t place = 0) {
  return constant_iterator<T>(value, place);
}

// Takes any value and keeps none.
struct Discarded {
  template <typename T>
  const Discarded& operator=(const T&) const {
    return *this;
  }
};
class discard_iterator : public iterator_arithmetic<discard_iterator, Discarded, Discarded> {
 public:
  explicit discard_iterator(std::ptrdiff_t place = 0) : place_(place) {}
  Discarded operator*() const { return {}; }
  discard_iterator moved(std::ptrdiff_t n) const { return discard_iterator(place_ + n); }
  std::ptrdiff_t distance_to(const discard_iterator& other) const { return other.place_ - place_; }

 private:
  std::ptrdiff_t place_;
};
inline discard_iterator make_discard_iterator(std::ptrdiff_t place = 0) { return discard_iterator(place); }

// A value that a pointer or a reference to the device stands for.
template <typename T>
const T& value_of(const T& value) {
  return value;
}
template <typename T>
std::remove_const_t<T> value_of(const device_reference<T>& reference) {
  return reference;
}

// function(*base)
template <typename Function, typename Base>
using transformed_t = std::decay_t<std::invoke_result_t<const Function&, const iterator_value_t<Base>&>>;
template <typename Function, typename Base, typename = void, typename = void>
class transform_iterator
    : public iterator_arithmetic<transform_iterator<Function, Base>, transformed_t<Function, Base>,
                                 transformed_t<Function, Base>> {
 public:
  transform_iterator(Base base, Function function) : base_(base), function_(function) {}
  transformed_t<Function, Base> operator*() const { return function_(value_of(*base_)); }
  const Base& base() const { return base_; }
  const Function& functor() const { return function_; }
  transform_iterator moved(std::ptrdiff_t n) const { return {base_ + n, function_}; }
  std::ptrdiff_t distance_to(const transform_iterator& other) const { return other.base_ - base_; }
  transform_iterator& operator=(
      const transform_iterator& other) {  // also of functions that cannot be assigned
    if (this != &other) {
      this->~transform_iterator();
      new (this) transform_iterator(other);
    }
    return *this;
  }
  transform_iterator(const transform_iterator&) = default;

 private:
  Base base_;
  Function function_;
};
template <typename Function, typename Base>
transform_iterator<Function, Base> make_transform_iterator(Base base, Function function) {
  return {base, function};
}

// base[*index]
template <typename Base, typename Index>
class permutation_iterator
    : public iterator_arithmetic<permutation_iterator<Base, Index>, iterator_value_t<Base>,
                                 decltype(std::declval<Base>()[0])> {
 public:
  permutation_iterator(Base base, Index index) : base_(base), index_(index) {}
  decltype(auto) operator*() const { return base_[std::ptrdiff_t(value_of(*index_))]; }
  const Base& base() const { return base_; }
  const Index& index() const { return index_; }
  permutation_iterator moved(std::ptrdiff_t n) const { return {base_, index_ + n}; }
  std::ptrdiff_t distance_to(const permutation_iterator& other) const { return other.index_ - index_; }

 private:
  Base base_;
  Index index_;
};
template <typename Base, typename Index>
permutation_iterator<Base, Index> make_permutation_iterator(Base base, Index index) {
  return {base, index};
}

// Tuples of the elements of several iterators.
template <typename Tuple>
class zip_iterator;
template <typename... Its>
class zip_iterator<std::tuple<Its...>>
    : public iterator_arithmetic<zip_iterator<std::tuple<Its...>>, std::tuple<iterator_value_t<Its>...>,
                                 std::tuple<decltype(*std::declval<Its>())...>> {
 public:
  zip_iterator(std::tuple<Its...> iterators) : iterators_(iterators) {}
  auto operator*() const {
    return std::apply([](const auto&... each) { return std::tuple<decltype(*each)...>(*each...); },
                      iterators_);
  }
  const std::tuple<Its...>& get_iterator_tuple() const { return iterators_; }
  zip_iterator moved(std::ptrdiff_t n) const {
    return std::apply([=](const auto&... each) { return zip_iterator(std::tuple<Its...>(each + n...)); },
                      iterators_);
  }
  std::ptrdiff_t distance_to(const zip_iterator& other) const {
    return std::get<0>(other.iterators_) - std::get<0>(iterators_);
  }

 private:
  std::tuple<Its...> iterators_;
};
template <typename... Its>
zip_iterator<std::tuple<Its...>> make_zip_iterator(std::tuple<Its...> iterators) {
  return {iterators};
}
template <typename... Its>
zip_iterator<std::tuple<Its...>> make_zip_iterator(Its... iterators) {
  return {std::tuple<Its...>(iterators...)};
}

// Calls a function of several arguments with the elements of a tuple.
template <typename Function>
class zip_function {
 public:
  explicit zip_function(Function function) : function_(function) {}
  template <typename Tuple>
  decltype(auto) operator()(Tuple&& tuple) const {
    return std::apply(function_, std::forward<Tuple>(tuple));
  }

 private:
  Function function_;
};
template <typename Function>
zip_function<Function> make_zip_function(Function function) {
  return zip_function<Function>(function);
}

using std::make_reverse_iterator;
using std::reverse_iterator;

// Whether an iterator accesses memory of the device.
template <typename Iterator>
constexpr bool is_on_device = false;
template <typename T>
constexpr bool is_on_device<device_ptr<T>> = true;
template <typename Function, typename Base>
constexpr bool is_on_device<transform_iterator<Function, Base>> = is_on_device<Base>;
template <typename Base, typename Index>
constexpr bool is_on_device<permutation_iterator<Base, Index>> = is_on_device<Base> || is_on_device<Index>;
template <typename... Its>
constexpr bool is_on_device<zip_iterator<std::tuple<Its...>>> = (is_on_device<Its> || ...);
template <typename Base>
constexpr bool is_on_device<std::reverse_iterator<Base>> = is_on_device<Base>;

// The iterator that a kernel gets.
template <typename Iterator>
Iterator raw(Iterator iterator) {
  return iterator;
}
template <typename T>
T* raw(device_ptr<T> pointer) {
  return pointer.get();
}
template <typename Base>
auto raw(std::reverse_iterator<Base> iterator);
template <typename Base, typename Index>
auto raw(permutation_iterator<Base, Index> iterator);
template <typename... Its>
auto raw(zip_iterator<std::tuple<Its...>> iterator);
template <typename Function, typename Base>
auto raw(transform_iterator<Function, Base> iterator) {
  return make_transform_iterator(raw(iterator.base()), iterator.functor());
}
template <typename Base, typename Index>
auto raw(permutation_iterator<Base, Index> iterator) {
  return make_permutation_iterator(raw(iterator.base()), raw(iterator.index()));
}
template <typename... Its>
auto raw(zip_iterator<std::tuple<Its...>> iterator) {
  return std::apply([](const auto&... each) { return make_zip_iterator(raw(each)...); },
                    iterator.get_iterator_tuple());
}
template <typename Base>
auto raw(std::reverse_iterator<Base> iterator) {
  return std::make_reverse_iterator(raw(iterator.base()));
}

}  // namespace thrust
