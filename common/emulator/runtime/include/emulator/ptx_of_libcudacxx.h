// The functions of cuda::ptx. Each is one instruction; its semantics, scope and space are arguments that only select
// an overload. Here, each access to a barrier is as strong as an acquisition or a release.
#pragma once

#include <cstdint>
#include <type_traits>

#include "emulator/barrier_object.h"
#include "emulator/bulk_copies.h"
#include "emulator/groups.h"
#include "emulator/ptx.h"

EMULATOR_BEGIN
namespace cuda::ptx {

enum class dot_sem { acq_rel, acquire, relaxed, release, sc, weak };
enum class dot_scope { cta, cluster, gpu, sys };
enum class dot_space { global, cluster, shared };
template <dot_sem sem>
using sem_t = ::std::integral_constant<dot_sem, sem>;
template <dot_scope scope>
using scope_t = ::std::integral_constant<dot_scope, scope>;
template <dot_space space>
using space_t = ::std::integral_constant<dot_space, space>;
template <int n>
using n32_t = ::std::integral_constant<int, n>;
template <int n>
constexpr n32_t<n> n32() {
  return {};
}

// clang-format off
#define EMULATOR_TAG(kind, name) using kind##_##name##_t = kind##_t<dot_##kind::name>; inline constexpr kind##_##name##_t kind##_##name{};
EMULATOR_TAG(sem, acq_rel) EMULATOR_TAG(sem, acquire) EMULATOR_TAG(sem, relaxed)
EMULATOR_TAG(sem, release) EMULATOR_TAG(sem, sc) EMULATOR_TAG(sem, weak)
EMULATOR_TAG(scope, cta) EMULATOR_TAG(scope, cluster) EMULATOR_TAG(scope, gpu) EMULATOR_TAG(scope, sys)
EMULATOR_TAG(space, global) EMULATOR_TAG(space, cluster) EMULATOR_TAG(space, shared)
#undef EMULATOR_TAG
    // clang-format on

    inline ::emulator::AsyncBarrier* barrier_of(::std::uint64_t* address) {
  return reinterpret_cast<::emulator::AsyncBarrier*>(address);
}

// ---- mbarrier

inline void mbarrier_init(::std::uint64_t* barrier, ::std::uint32_t count, EMULATOR_HERE) {
  ::emulator::init_barrier(barrier_of(barrier), count, where);
}
inline void mbarrier_inval(::std::uint64_t* barrier) { ::emulator::drop_barrier(barrier_of(barrier)); }

inline ::std::uint64_t mbarrier_arrive(::std::uint64_t* barrier, ::std::uint32_t count = 1, EMULATOR_HERE) {
  return ::emulator::arrive_at_barrier(barrier_of(barrier), count, false, where);
}
// A barrier of another block of the cluster returns no state.
template <dot_sem sem, dot_scope scope, dot_space space>
auto mbarrier_arrive(sem_t<sem>, scope_t<scope>, space_t<space>, ::std::uint64_t* barrier,
                     ::std::uint32_t count = 1, EMULATOR_HERE) {
  const ::std::uint64_t state = mbarrier_arrive(barrier, count, where);
  if constexpr (space == dot_space::shared) return state;
}
template <dot_sem sem, dot_scope scope, dot_space space>
auto mbarrier_arrive_expect_tx(sem_t<sem>, scope_t<scope>, space_t<space>, ::std::uint64_t* barrier,
                               ::std::uint32_t bytes, EMULATOR_HERE) {
  ::emulator::expect_bytes(barrier_of(barrier), bytes, where);
  const ::std::uint64_t state = mbarrier_arrive(barrier, 1, where);
  if constexpr (space == dot_space::shared) return state;
}
template <dot_scope scope, dot_space space>
void mbarrier_expect_tx(sem_relaxed_t, scope_t<scope>, space_t<space>, ::std::uint64_t* barrier,
                        ::std::uint32_t bytes, EMULATOR_HERE) {
  ::emulator::expect_bytes(barrier_of(barrier), bytes, where);
}

inline bool mbarrier_test_wait(::std::uint64_t* barrier, ::std::uint64_t state, EMULATOR_HERE) {
  return ::emulator::is_phase_complete(barrier_of(barrier), ::std::uint32_t(state), where);
}
inline bool mbarrier_test_wait_parity(::std::uint64_t* barrier, ::std::uint32_t parity, EMULATOR_HERE) {
  const auto phase = ::emulator::phase_with_parity(barrier_of(barrier), parity & 1, where);
  return ::emulator::is_phase_complete(barrier_of(barrier), phase, where);
}
// A time that is given as well is ignored, and so is the order of memory.
#define EMULATOR_WAITS(name, test, Phase)                                                   \
  inline bool name(::std::uint64_t* barrier, Phase phase, EMULATOR_HERE) {                  \
    return test(barrier, phase, where);                                                     \
  }                                                                                         \
  inline bool name(::std::uint64_t* barrier, Phase phase, ::std::uint32_t, EMULATOR_HERE) { \
    return test(barrier, phase, where);                                                     \
  }
#define EMULATOR_WAITS_WITH_ORDER(name, test, Phase)                                            \
  template <dot_sem sem, dot_scope scope>                                                       \
  bool name(sem_t<sem>, scope_t<scope>, ::std::uint64_t* barrier, Phase phase, EMULATOR_HERE) { \
    return test(barrier, phase, where);                                                         \
  }                                                                                             \
  template <dot_sem sem, dot_scope scope>                                                       \
  bool name(sem_t<sem>, scope_t<scope>, ::std::uint64_t* barrier, Phase phase, ::std::uint32_t, \
            EMULATOR_HERE) {                                                                    \
    return test(barrier, phase, where);                                                         \
  }
EMULATOR_WAITS(mbarrier_try_wait, mbarrier_test_wait, ::std::uint64_t)
EMULATOR_WAITS(mbarrier_try_wait_parity, mbarrier_test_wait_parity, ::std::uint32_t)
EMULATOR_WAITS_WITH_ORDER(mbarrier_try_wait, mbarrier_test_wait, ::std::uint64_t)
EMULATOR_WAITS_WITH_ORDER(mbarrier_try_wait_parity, mbarrier_test_wait_parity, ::std::uint32_t)
EMULATOR_WAITS_WITH_ORDER(mbarrier_test_wait, mbarrier_test_wait, ::std::uint64_t)
EMULATOR_WAITS_WITH_ORDER(mbarrier_test_wait_parity, mbarrier_test_wait_parity, ::std::uint32_t)
#undef EMULATOR_WAITS_WITH_ORDER
#undef EMULATOR_WAITS

inline void cp_async_mbarrier_arrive(::std::uint64_t* barrier, EMULATOR_HERE) {
  ::emulator::ptx::cp_async_mbarrier_arrive(reinterpret_cast<::std::byte*>(barrier), 0, where);
}
inline void cp_async_mbarrier_arrive_noinc(::std::uint64_t* barrier, EMULATOR_HERE) {
  ::emulator::ptx::cp_async_mbarrier_arrive(reinterpret_cast<::std::byte*>(barrier), 1, where);
}

// ---- bulk copies

template <dot_space to_space, dot_space from_space>
void cp_async_bulk(space_t<to_space>, space_t<from_space>, void* to, const void* from, ::std::uint32_t bytes,
                   ::std::uint64_t* barrier, EMULATOR_HERE) {
  static_assert(to_space != dot_space::global, "a copy to global memory has no barrier");
  ::emulator::begin_bulk_copy(to, from, bytes, barrier_of(barrier), where);
}
inline void cp_async_bulk(space_global_t, space_shared_t, void* to, const void* from, ::std::uint32_t bytes) {
  ::emulator::begin_bulk_copy(to, from, bytes);
}
inline void cp_async_bulk_commit_group() { ::emulator::commit_copies(); }
template <int pending>
void cp_async_bulk_wait_group(n32_t<pending>) {
  ::emulator::wait_for_copies(pending);
}
template <int pending>
void cp_async_bulk_wait_group_read(n32_t<pending>) {
  ::emulator::wait_for_copies(pending);
}
template <typename... Arguments>
void cp_async_bulk_tensor(Arguments...) {
  static_assert(!sizeof...(Arguments), "the emulator does not support cuda::ptx::cp_async_bulk_tensor");
}

// ---- fences, clusters

template <typename... Kinds>
void fence(Kinds...) {
  ::emulator::fence();
}
template <typename... Kinds>
void fence_proxy_async(Kinds...) {
  ::emulator::fence();
}
template <typename... Kinds>
void fence_mbarrier_init(Kinds...) {
  ::emulator::fence();
}
inline void barrier_cluster_arrive(EMULATOR_HERE) {
  ::emulator::arrive_at_group(::emulator::Scope::cluster, where);
}
template <dot_sem sem>
void barrier_cluster_arrive(sem_t<sem>, EMULATOR_HERE) {
  barrier_cluster_arrive(where);
}
inline void barrier_cluster_wait(EMULATOR_HERE) {
  ::emulator::wait_at_group(::emulator::Scope::cluster, where);
}
template <dot_sem sem>
void barrier_cluster_wait(sem_t<sem>, EMULATOR_HERE) {
  barrier_cluster_wait(where);
}
template <typename T>
T* mapa(space_cluster_t, T* address, ::std::uint32_t rank) {
  return static_cast<T*>(::__cluster_map_shared_rank(address, rank));
}

// clang-format off
#define EMULATOR_REGISTER(name, value) inline ::std::uint32_t get_sreg_##name() { return value; }
EMULATOR_REGISTER(tid_x, threadIdx.x) EMULATOR_REGISTER(tid_y, threadIdx.y) EMULATOR_REGISTER(tid_z, threadIdx.z)
EMULATOR_REGISTER(ntid_x, blockDim.x) EMULATOR_REGISTER(ntid_y, blockDim.y) EMULATOR_REGISTER(ntid_z, blockDim.z)
EMULATOR_REGISTER(ctaid_x, blockIdx.x) EMULATOR_REGISTER(ctaid_y, blockIdx.y) EMULATOR_REGISTER(ctaid_z, blockIdx.z)
EMULATOR_REGISTER(nctaid_x, gridDim.x) EMULATOR_REGISTER(nctaid_y, gridDim.y) EMULATOR_REGISTER(nctaid_z, gridDim.z)
EMULATOR_REGISTER(cluster_ctarank, ::emulator::rank_in_cluster())
EMULATOR_REGISTER(laneid, ::emulator::current_lane())
#undef EMULATOR_REGISTER
// clang-format on

}  // namespace cuda::ptx
EMULATOR_END
