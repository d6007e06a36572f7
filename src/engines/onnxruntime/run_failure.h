// What ONNX Runtime says of a run or a load that failed, as people need it.
#pragma once

#include <string>
#include <string_view>

namespace tactus {

// "Gather '/embed/Gather': indices element out of data bounds, idx=9 ..." of the library's text,
// which names its own source file, line and function in C++ before it comes to the cause. What has
// another form stays as it is, in one line.
std::string RunFailure(std::string_view said);

// Whether it failed because it was given no memory.
bool LacksMemory(std::string_view said);

}  // namespace tactus
