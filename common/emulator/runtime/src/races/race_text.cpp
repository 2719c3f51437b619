#include "race_text.h"

#include <bit>

#include "../memory/shared_memory.h"
#include "../state/launch_tree.h"

namespace emulator {
namespace {

const SharedVariable* shared_variable_of(const Access& access) {
  return variable_at(*access.owner, access.arena, access.address);
}

const TracedLaunch& launch_of(Epoch epoch) { return launch_of_block(epoch.block()); }
bool is_same_launch(const Conflict& conflict) {
  return &launch_of(conflict.now) == &launch_of(conflict.earlier);
}

// "kernel sum, block (0, 0, 0), thread (3, 0, 0)", with as much as is needed to tell the threads apart.
std::string thread_text(const Conflict& conflict, Epoch epoch) {
  const TracedLaunch& launch = launch_of(epoch);
  std::string text = "thread " + text_of(index_at(launch.block, epoch.rank()));
  if (!conflict.now.same_block(conflict.earlier))
    text = "block " + text_of(index_at(launch.grid, epoch.block() - launch.first_block)) + ", " + text;
  return is_same_launch(conflict) ? text : std::string("kernel ") + launch.kernel + ", " + text;
}

const char* verb_of(AccessKind kind, bool writes, bool before) {
  if (is_atomic(kind)) return before ? " updated it atomically" : " updates it atomically";
  if (writes) return before ? " wrote it" : " writes it";
  return before ? " read it" : " reads it";
}

// If two threads store to one element of global memory, a wrong index is more likely than intended sharing.
const char* of_two_stores(bool is_one_line, bool same_block) {
  if (is_one_line)
    return "if both threads should store to it, use an atomic; if each has its own elements, check the index "
           "and its guard";
  if (same_block)
    return "if each thread should store only its own elements, check the index and its guard in both lines;\n"
           "if not, there is no __syncthreads between the two";
  return "each block should store only its own elements: check the index and its guard in both lines";
}

const char* between_blocks(const Access& access, bool is_one_line) {
  if (access.arena)
    return "there is no cluster_group::sync between the two, which all threads of both blocks reach";
  if (running.launch->configuration.is_cooperative)
    return "there is no grid_group::sync between the two; if each block should use only its own elements,\n"
           "check the index and its guard";
  if (is_one_line)
    return "blocks run in any order: update it with one atomic function, or write to another array";
  return "if each block should use only its own elements, check the index and its guard; if not,\n"
         "only an atomic after a __threadfence, or a separate launch, orders two blocks";
}

const char* between_launches(const Conflict& conflict) {
  if (launch_of(conflict.now).parent == launch_of(conflict.earlier).first_block)
    return "a kernel sees what the thread that launched it did before, and what that thread knew of by a "
           "barrier;"
           "\nno kernel can wait for one that it launches: use cudaStreamTailLaunch for what comes after "
           "both";
  return "kernels that are launched by different blocks, or in different streams, run in any order";
}

std::string what_is_missing(const Conflict& conflict) {
  const AccessKind now = conflict.access->kind, before = info_of(conflict.earlier_site).kind;
  const bool is_one_line = line_of(conflict.site) == line_of(conflict.earlier_site);
  const bool both_write = conflict.access->is_write && conflict.earlier_writes;
  if (!is_same_launch(conflict)) return between_launches(conflict);
  if (are_two_stores(conflict)) return of_two_stores(is_one_line, conflict.now.same_block(conflict.earlier));
  if (!conflict.now.same_block(conflict.earlier)) return between_blocks(*conflict.access, is_one_line);
  if (now == AccessKind::is_volatile && before == AccessKind::is_volatile)
    return "there is no __syncwarp between the two: volatile does not keep the lanes of a warp in step";
  const std::string barrier =
      conflict.now.same_warp(conflict.earlier) ? "__syncwarp or __syncthreads" : "__syncthreads";
  if (is_one_line && !both_write)
    return "there is no " + barrier + " between the two: read into a variable, wait at a barrier, then write";
  return "there is no " + barrier + " between the two";
}

}  // namespace

bool are_two_stores(const Conflict& conflict) {
  return conflict.access->allocation && conflict.access->is_write && conflict.earlier_writes &&
         conflict.access->kind == AccessKind::plain &&
         info_of(conflict.earlier_site).kind == AccessKind::plain;
}

const void* memory_of(const Access& access) {
  if (access.allocation) return identity_of(*access.allocation);
  const SharedVariable* variable = shared_variable_of(access);
  return variable ? reinterpret_cast<const void*>(variable->key) : nullptr;
}

std::string element_at(const Access& access, const std::byte* address) {
  if (access.size <= 8) address = access.address;
  if (const Allocation* allocation = access.allocation)
    return element_of(*allocation, address, access.size) + " of " + name_of(*allocation);
  const SharedVariable* variable = shared_variable_of(access);
  const std::string memory = access.owner == running.thread->block
                                 ? "shared memory"
                                 : "shared memory of block " + text_of(access.owner->index);
  if (!variable) return memory;
  return element_of(*variable, address - access.arena - std::ptrdiff_t(variable->offset)) + ", " + memory;
}

Finding finding_of(const Conflict& conflict) {
  const Access& access = *conflict.access;
  const auto first = conflict.word + std::countr_zero(conflict.bytes);
  const std::string& earlier_line = info_of(conflict.earlier_site).text;
  std::string detail = thread_text(conflict, conflict.now) + verb_of(access.kind, access.is_write, false) +
                       ", " + thread_text(conflict, conflict.earlier) +
                       verb_of(info_of(conflict.earlier_site).kind, conflict.earlier_writes, true) +
                       (earlier_line.empty() ? "" : " in " + earlier_line) + ";\n" +
                       what_is_missing(conflict);
  if (access.allocation) detail += "\n" + describe(*access.allocation);
  return {false, "race on " + element_at(access, first), info_of(conflict.site).text, detail};
}

}  // namespace emulator
