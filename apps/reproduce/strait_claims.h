// What Strait's paper claims of its figures against our data.
#pragma once

#include <array>
#include <vector>

#include "reproduce/figure.h"

namespace tactus {

// The names of the series.
inline constexpr const char* kStrait = "Strait";
inline constexpr const char* kTemporal = "temporal";
inline constexpr const char* kStatic = "static spatial";
inline constexpr const char* kReactive = "reactive spatial";
inline constexpr const char* kPreemptive = "preemptive";
inline constexpr const char* kXSched = "preemptive (XSched)";  // the same without batches
inline constexpr std::array kStraitRivals = {kTemporal, kStatic, kReactive, kPreemptive};
// The workloads of Section 5.2, in the order of their bars.
inline constexpr std::array kStraitWorkloads = {"high", "low", "balanced", "uniform"};
// Of Figure 10, in the order of its bars.
inline constexpr const char* kAlone = "without this part";
inline constexpr const char* kInTurn = "without it and those before";
// What is new to the predictor in Figure 7b.
inline constexpr std::array kShifts = {"bursts", "other models", "A10G", "H100"};

std::vector<Claim> RequestLevelClaims(const FigureData& data);  // Figure 5
std::vector<Claim> LoadClaims(const FigureData& data);          // Figure 5 by load
std::vector<Claim> KernelLevelClaims(const FigureData& data);   // Figure 6
std::vector<Claim> ErrorClaims(const FigureData& data);         // Figure 7a
std::vector<Claim> ShiftClaims(const FigureData& data);         // Figure 7b
std::vector<Claim> TraceClaims(const FigureData& data);         // Figure 7c
std::vector<Claim> ThrottleClaims(const FigureData& data);      // Figure 8
std::vector<Claim> DriftClaims(const FigureData& data);         // Figure 9
std::vector<Claim> AblationClaims(const FigureData& data);      // Figure 10

}  // namespace tactus
