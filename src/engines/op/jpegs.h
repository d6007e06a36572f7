// Several pictures of one size as JPEGs and back: what a network of items is fed crosses a link as
// a few kilobytes an item instead of its pixels. Lossy, like every JPEG, so a pipeline has to ask
// for it. Compressed by libturbojpeg with 4:2:0 chroma; decoded as decode_jpeg.h does.
#pragma once

#include "engines/op/operator.h"

namespace tactus::op {

// `crops` UINT8 [n, h, w, 3] to `jpegs` STRING [n, 1]; argument `quality` (85).
Operator MakeEncodeJpegs(Arguments& arguments);

// `jpegs` STRING [n, 1] to `pictures` UINT8 [n, height, width, 3]; arguments `height`, `width`, and
// `most` (64) pictures. kInvalidArgument for a JPEG of another size.
Operator MakeDecodeJpegs(Arguments& arguments);

}  // namespace tactus::op
