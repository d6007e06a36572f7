// The kernel that a device's peaks are measured with (device_peaks.h), and that nets of `./run
// bench gpu` are made of, in PTX, which the driver compiles: each block reads its part of some data
// and then computes for a while, so that it asks as much of the memory and of the arithmetic units
// as it is to.
#pragma once

namespace tactus {

inline constexpr unsigned kWorkThreads = 256;  // of a block
inline constexpr int kFmasPerStep = 16;        // of each thread

// work(float* data, u64 total, u32 bytes, u32 steps): block i reads `bytes` from data, behind those
// of the blocks before it and from the beginning again at `total`; then each thread does `steps`
// times kFmasPerStep multiply-adds, of which each needs the one before. `bytes` is a multiple of
// 4096, `total` one of `bytes`. Nothing is written but where a sum is a number that none is.
inline constexpr const char* kWorkKernel = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry work(.param .u64 data, .param .u64 total, .param .u32 bytes, .param .u32 steps)
{
  .reg .pred %p<4>;
  .reg .b32 %r<9>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [total];
  ld.param.u32 %r1, [bytes];
  ld.param.u32 %r2, [steps];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ntid.x;
  mov.f32 %f1, 0f3F800000;
  mov.f32 %f6, 0f3F7FFF00;
  mov.f32 %f7, 0f33D6BF95;
  mul.wide.u32 %rd3, %r4, %r1;
  rem.u64 %rd3, %rd3, %rd2;
  add.u64 %rd4, %rd1, %rd3;
  shl.b32 %r6, %r3, 4;
  shl.b32 %r7, %r5, 4;
READ:
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra COMPUTE;
  cvt.u64.u32 %rd5, %r6;
  add.u64 %rd6, %rd4, %rd5;
  ld.global.v4.f32 {%f2, %f3, %f4, %f5}, [%rd6];
  add.f32 %f2, %f2, %f3;
  add.f32 %f4, %f4, %f5;
  add.f32 %f2, %f2, %f4;
  add.f32 %f1, %f1, %f2;
  add.u32 %r6, %r6, %r7;
  bra READ;
COMPUTE:
  mov.u32 %r8, 0;
LOOP:
  setp.ge.u32 %p2, %r8, %r2;
  @%p2 bra STORE;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  fma.rn.f32 %f1, %f1, %f6, %f7;
  add.u32 %r8, %r8, 1;
  bra LOOP;
STORE:
  setp.neu.f32 %p3, %f1, 0fC2F6E979;
  @%p3 bra DONE;
  st.global.f32 [%rd1], %f1;
DONE:
  ret;
}
)";

}  // namespace tactus
