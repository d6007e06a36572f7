// Symphony's Figure 7: from the grid's peaks to curves.
#pragma once

#include "reproduce/figure.h"

namespace tactus {

// What the curves compare: "deferred/eager" is the peak of one over that of the other.
inline constexpr const char* kLikeForLike = "published / eager (window)";
inline constexpr const char* kPublishedBest = "published / best eager";
inline constexpr const char* kOursBest = "ours / best eager";
inline constexpr const char* kOursLike = "ours / eager (window)";

Figure GridFigure();

}  // namespace tactus
