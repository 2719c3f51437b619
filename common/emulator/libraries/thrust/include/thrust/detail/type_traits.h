// Stands for Thrust's header of this name: those of its traits that C++ has, too.
#pragma once

#include <type_traits>

namespace thrust::detail {

using std::add_const;
using std::add_lvalue_reference;
using std::add_pointer;
using std::conditional;
using std::false_type;
using std::integral_constant;
using std::is_arithmetic;
using std::is_const;
using std::is_convertible;
using std::is_floating_point;
using std::is_integral;
using std::is_pointer;
using std::is_reference;
using std::is_same;
using std::is_void;
using std::is_volatile;
using std::make_unsigned;
using std::remove_const;
using std::remove_cv;
using std::remove_pointer;
using std::remove_reference;
using std::true_type;

template <bool condition, typename T = void>
using enable_if = std::enable_if<condition, T>;
template <bool condition, typename T = void>
using disable_if = std::enable_if<!condition, T>;

}  // namespace thrust::detail
