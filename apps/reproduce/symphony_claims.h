// What Symphony's paper claims of its figures, and our own bars, against our data.
#pragma once

#include <vector>

#include "reproduce/figure.h"

namespace tactus {

// The names of the series.
inline constexpr const char* kOurs = "Symphony (ours)";
inline constexpr const char* kPublished = "Symphony (published)";
inline constexpr const char* kClockwork = "Clockwork";
inline constexpr const char* kCostlyClockwork = "Clockwork 0.5 us a candidate";
inline constexpr const char* kNexus = "Nexus";
inline constexpr const char* kNexus8 = "Nexus 8 front ends";
inline constexpr const char* kShepherd = "Shepherd";
inline constexpr const char* kTimeout = "timeout batching";
inline constexpr const char* kEager = "eager";
inline constexpr const char* kAllThere = "512 GPUs all the time";
inline constexpr const char* kFollowed = "GPUs as advised";

std::vector<Claim> Table2Claims(const FigureData& data);
std::vector<Claim> BatchSizeClaims(const FigureData& data);        // Figure 1
std::vector<Claim> FlatTopClaims(const FigureData& data);          // Figure 2
std::vector<Claim> CaseStudyClaims(const FigureData& data);        // Figure 6
std::vector<Claim> GridClaims(const FigureData& data);             // Figure 7
std::vector<Claim> ZooClaims(const FigureData& data);              // Figure 9
std::vector<Claim> LeastLanesClaims(const FigureData& data);       // Figure 10
std::vector<Claim> CharacteristicsClaims(const FigureData& data);  // Figure 11
std::vector<Claim> QueueingClaims(const FigureData& data);         // Figure 12
std::vector<Claim> ScalingClaims(const FigureData& data);          // Figure 13
std::vector<Claim> NetworkClaims(const FigureData& data);          // Figure 14
std::vector<Claim> TimelineClaims(const FigureData& data);         // Figure 15

}  // namespace tactus
