// A suspendable stack. Created with ucontext, switched with the
// compiler's own setjmp and longjmp, which save three registers.
#pragma once

#include <cstddef>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

using JumpBuffer = void* [5];  // of __builtin_setjmp

class Fiber {
 public:
  static Fiber& take();                  // a new or reused fiber, which waits at the start of `work`
  static void set_work(void (*work)());  // what every fiber runs; it never returns
  static Fiber* running();               // null on the scheduler's own stack
  static void suspend();                 // back to where this fiber was resumed, until it is resumed again
  static void switch_to(Fiber& next);    // the same, but to another suspended fiber, not to the scheduler
  [[noreturn]] static void leave();      // the same, never to be resumed
  static void abandon_all();             // all taken fibers restart when they are taken again
  static std::size_t count();            // created so far; never more than the threads resident at once

  void resume();                           // from the scheduler: runs until it suspends
  void give_back();                        // it waits at the start of `work` again, or soon will
  bool guards(const void* address) const;  // whether it is in the guard, which a stack overflow hits
  bool holds(const void* address) const { return address >= bottom_ && address < top_; }
  const char* stack_end() const { return top_; }
  [[noreturn]] static void drop();  // leaves the running fiber, which restarts when taken again

 private:
  Fiber();
  static void enter();

  char *bottom_, *top_;
  bool started_ = false, taken_ = false;
  JumpBuffer context_;
};

}  // namespace emulator
EMULATOR_END
