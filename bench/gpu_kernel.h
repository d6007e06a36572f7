// The kernel of `./run bench gpu`, in PTX, which the driver compiles: each block holds an SM for a
// time and notes where it ran and when. Its first thread does, the others only make the block as
// large as blocks are.
#pragma once

#include <cstdint>

namespace tactus {

// What a block notes. Times are of the device's own clock, in ns.
struct BlockNote {
  std::uint64_t sm = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// hold(BlockNote* notes, u64 nanoseconds): block i notes in notes[i].
inline constexpr const char* kHoldKernel = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry hold(.param .u64 notes, .param .u64 nanoseconds)
{
  .reg .pred %p<3>;
  .reg .u32 %r<4>;
  .reg .u64 %rd<8>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  mov.u64 %rd1, %globaltimer;
  ld.param.u64 %rd2, [nanoseconds];
  add.u64 %rd3, %rd1, %rd2;
LOOP:
  mov.u64 %rd4, %globaltimer;
  setp.lt.u64 %p2, %rd4, %rd3;
  @%p2 bra LOOP;
  mov.u32 %r2, %smid;
  cvt.u64.u32 %rd5, %r2;
  mov.u32 %r3, %ctaid.x;
  ld.param.u64 %rd6, [notes];
  cvta.to.global.u64 %rd6, %rd6;
  mul.wide.u32 %rd7, %r3, 24;
  add.u64 %rd6, %rd6, %rd7;
  st.global.u64 [%rd6], %rd5;
  st.global.u64 [%rd6+8], %rd1;
  st.global.u64 [%rd6+16], %rd4;
DONE:
  ret;
}
)";

}  // namespace tactus
