// What gpu-lets' paper claims of its figures against our data.
#pragma once

#include <array>
#include <vector>

#include "reproduce/figure.h"

namespace tactus {

// The mixes of Figures 12 and 16, in the order of their bars: files of scenarios/gpulets.
inline constexpr std::array kGpuletMixes = {"game", "traffic", "equal", "long-only", "short-skew"};
// The first of them are applications: what arrives is frames.
inline constexpr std::size_t kGpuletApplications = 2;
inline constexpr std::array kGpuletModels = {"LeNet", "GoogLeNet", "ResNet50", "SSD-MobileNet",
                                             "VGG-16"};
// Series of Figures 6 and 9.
inline constexpr const char* kOverhead = "lanes beside each other";
inline constexpr const char* kHeldOutPairs = "pairs held out";
inline constexpr const char* kHeldOutSides = "sides held out";
inline constexpr const char* kNoModel = "no model";  // of the pairs

// Series of Figure 5.
inline constexpr const char* kTemporalSharing = "temporal sharing";
inline constexpr const char* kUnsplit = "both on the whole device";
inline constexpr const char* kSplit20 = "20:80";
inline constexpr const char* kSplit40 = "40:60";

std::vector<Claim> HalvesClaims(const FigureData& data);           // Figure 4
std::vector<Claim> SharingClaims(const FigureData& data);          // Figure 5
std::vector<Claim> OverheadClaims(const FigureData& data);         // Figure 6
std::vector<Claim> KneeClaims(const FigureData& data);             // Figure 8
std::vector<Claim> FitClaims(const FigureData& data);              // Figure 9
std::vector<Claim> MostRateClaims(const FigureData& data);         // Figure 12
std::vector<Claim> RateExponentClaims(const FigureData& data);     // Figure 12 by exponent
std::vector<Claim> ViolationClaims(const FigureData& data);        // Figure 13
std::vector<Claim> FrameClaims(const FigureData& data);            // Figure 13 as frames
std::vector<Claim> HeadroomClaims(const FigureData& data);         // Figure 13 by headroom
std::vector<Claim> RunLoadClaims(const FigureData& data);          // Figure 13 on loads
std::vector<Claim> WaveClaims(const FigureData& data);             // Figure 14
std::vector<Claim> SchedulableClaims(const FigureData& data);      // Figure 15
std::vector<Claim> CheckClaims(const FigureData& data);            // Figure 15 by checks
std::vector<Claim> ExponentClaims(const FigureData& data);         // Figure 15 by exponent
std::vector<Claim> MostRateOfIdealClaims(const FigureData& data);  // Figure 16

}  // namespace tactus
