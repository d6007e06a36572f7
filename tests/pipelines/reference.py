"""What the host operators compute, written a second time in numpy, and both pipelines with
onnxruntime. tests/data/operators and tests/data/pipelines are made from it (make_golden.py).

Images are uint8 [height, width, 3] in RGB. A frame is (left, top, scale_x, scale_y): a point of the
source lies at ((x - left) * scale_x, (y - top) * scale_y) in what was made of it.
"""

import numpy as np

ONE = 2048  # weights of neighbouring pixels are whole numbers of 1/2048, so that all machines agree


def positions(size, target):
    """Left neighbour, right neighbour and the right one's weight for each target pixel."""
    at = (np.arange(target, dtype=np.float64) + 0.5) * (size / target) - 0.5
    at = np.clip(at, 0, size - 1)
    left = np.floor(at).astype(np.int64)
    weight = np.floor((at - left) * ONE + 0.5).astype(np.int64)
    return left, np.minimum(left + 1, size - 1), weight


def resize(image, height, width):
    x0, x1, wx = positions(image.shape[1], width)
    y0, y1, wy = positions(image.shape[0], height)
    rows = image.astype(np.int64)
    wide = rows[:, x0] * (ONE - wx)[None, :, None] + rows[:, x1] * wx[None, :, None]
    tall = wide[y0] * (ONE - wy)[:, None, None] + wide[y1] * wy[:, None, None]
    return ((tall + ONE * ONE // 2) // (ONE * ONE)).astype(np.uint8)


def resize_frame(image, height, width):
    return np.array([0, 0, width / image.shape[1], height / image.shape[0]], np.float32)


def letterbox(image, height, width, fill=114):
    scale = min(width / image.shape[1], height / image.shape[0])
    w = max(1, int(np.floor(image.shape[1] * scale + 0.5)))
    h = max(1, int(np.floor(image.shape[0] * scale + 0.5)))
    left, top = (width - w) // 2, (height - h) // 2
    out = np.full((height, width, 3), fill, np.uint8)
    out[top:top + h, left:left + w] = resize(image, h, w)
    sx, sy = w / image.shape[1], h / image.shape[0]
    return out, np.array([-left / sx, -top / sy, sx, sy], np.float32)


def normalize(images, mean, std, channels="rgb", layout="nchw"):
    """[n, h, w, 3] or [h, w, 3] to FP32 [n, 3, h, w]; mean and std in the order of `channels`."""
    images = images if images.ndim == 4 else images[None]
    planes = images[..., ::-1] if channels == "bgr" else images
    table = (np.arange(256)[:, None] / 255.0 - np.array(mean)) / np.array(std)
    table = table.astype(np.float32)
    out = np.stack([table[planes[..., c], c] for c in range(3)], axis=-1)
    return np.ascontiguousarray(out if layout == "nhwc" else out.transpose(0, 3, 1, 2))


def nms(boxes, scores, classes, iou):
    keep = []
    for i in np.lexsort((np.arange(len(scores)), -scores)):
        a = boxes[i]
        for k in keep:
            if classes[k] != classes[i]:
                continue
            b = boxes[k]
            w = min(a[2], b[2]) - max(a[0], b[0])
            h = min(a[3], b[3]) - max(a[1], b[1])
            shared = max(w, 0) * max(h, 0)
            area = lambda r: (r[2] - r[0]) * (r[3] - r[1])
            if shared > iou * (area(a) + area(b) - shared):
                break
        else:
            keep.append(i)
    return np.array(keep, int)


def nanodet(maps, frame, threshold=0.4, iou=0.5, most=100, keep=None, size=416):
    """maps: FP32 [1, classes + 4 bins, s, s], logits. Boxes x1 y1 x2 y2 in pixels of the source."""
    boxes, scores, classes = [], [], []
    for one in maps:
        one = one[0].astype(np.float64)
        side, count = one.shape[1], 80
        bins = (one.shape[0] - count) // 4
        stride = size / side
        scored = one[:count].reshape(count, -1)
        best = scored.argmax(0)
        score = 1 / (1 + np.exp(-scored.max(0)))
        wanted = score > threshold
        if keep is not None:
            wanted &= np.isin(best, keep)
        cells = np.nonzero(wanted)[0]
        spread = one[count:].reshape(4, bins, -1)[:, :, cells]
        spread = np.exp(spread - spread.max(1, keepdims=True))
        away = (spread * np.arange(bins)[None, :, None]).sum(1) / spread.sum(1) * stride
        cx, cy = (cells % side + 0.5) * stride, (cells // side + 0.5) * stride
        edges = np.stack([cx - away[0], cy - away[1], cx + away[2], cy + away[3]], -1)
        boxes.append(np.clip(edges, 0, size))
        scores.append(score[cells])
        classes.append(best[cells])
    boxes, scores, classes = map(np.concatenate, (boxes, scores, classes))
    kept = nms(boxes, scores, classes, iou)[:most]
    left, top, sx, sy = frame
    boxes = boxes[kept] / [sx, sy, sx, sy] + [left, top, left, top]
    return (boxes.astype(np.float32), scores[kept].astype(np.float32),
            classes[kept].astype(np.int32))


def crop(image, boxes, height, width, margin=0.0, extend=False, most=64):
    """Each box, with a margin, as an image of one size. With `extend` the box grows to the target's
    aspect about its centre. What lies outside of the picture is left out."""
    crops, frames = [], []
    for x1, y1, x2, y2 in boxes.astype(np.float64)[:most]:
        w, h = (x2 - x1) * (1 + 2 * margin), (y2 - y1) * (1 + 2 * margin)
        if extend:
            w, h = max(w, h * width / height), max(h, w * height / width)
        cx, cy = (x1 + x2) / 2, (y1 + y2) / 2
        left = int(np.clip(np.floor(cx - w / 2), 0, image.shape[1] - 1))
        top = int(np.clip(np.floor(cy - h / 2), 0, image.shape[0] - 1))
        right = int(np.clip(np.ceil(cx + w / 2), left + 1, image.shape[1]))
        bottom = int(np.clip(np.ceil(cy + h / 2), top + 1, image.shape[0]))
        crops.append(resize(image[top:bottom, left:right], height, width))
        frames.append([left, top, width / (right - left), height / (bottom - top)])
    if not crops:
        return np.zeros((0, height, width, 3), np.uint8), np.zeros((0, 4), np.float32)
    return np.stack(crops), np.array(frames, np.float32)


def pose(heatmap, offsets, frames, stride=16):
    """FP32 [n, h, w, k] and [n, h, w, 2 k]: points [n, k, 3] as x, y in the source, and score."""
    n, h, w, k = heatmap.shape
    points = np.zeros((n, k, 3), np.float32)
    for i in range(n):
        best = heatmap[i].reshape(-1, k).argmax(0)
        for j in range(k):
            y, x = divmod(int(best[j]), w)
            py = y * stride + float(offsets[i, y, x, j])
            px = x * stride + float(offsets[i, y, x, k + j])
            left, top, sx, sy = frames[i].astype(np.float64)
            points[i, j] = [px / sx + left, py / sy + top,
                            1 / (1 + np.exp(-float(heatmap[i, y, x, j])))]
    return points


def hull(points):
    """Corners of the convex hull, in order; each point (x, y) of whole numbers."""
    points = sorted(set(points))
    if len(points) < 3:
        return points

    def half(run):
        out = []
        for p in run:
            while len(out) > 1 and ((out[-1][0] - out[-2][0]) * (p[1] - out[-2][1])
                                    - (out[-1][1] - out[-2][1]) * (p[0] - out[-2][0])) <= 0:
                out.pop()
            out.append(p)
        return out[:-1]
    return half(points) + half(points[::-1])


def least_rectangle(points):
    """Corners of the rectangle of least area about the points, with its two sides' lengths."""
    corners = np.array(hull(points), np.float64)
    best = None
    for i in range(len(corners)):
        edge = corners[(i + 1) % len(corners)] - corners[i]
        length = np.hypot(*edge)
        u = edge / length if length > 0 else np.array([1.0, 0.0])
        v = np.array([-u[1], u[0]])
        a, b = corners @ u, corners @ v
        area = (a.max() - a.min()) * (b.max() - b.min())
        if best is None or area < best[0] - 1e-9:
            best = (area, u, v, a.min(), a.max(), b.min(), b.max())
    return best[1:]


def components(mask):
    """Lists of (x, y) of pixels that touch, also at corners; in the order of their first pixel."""
    mask = mask.copy()
    found = []
    for y, x in zip(*np.nonzero(mask)):
        if not mask[y, x]:
            continue
        mask[y, x] = False
        stack, points = [(x, y)], []
        while stack:
            px, py = stack.pop()
            points.append((int(px), int(py)))
            for ny in range(max(0, py - 1), min(mask.shape[0], py + 2)):
                for nx in range(max(0, px - 1), min(mask.shape[1], px + 2)):
                    if mask[ny, nx]:
                        mask[ny, nx] = False
                        stack.append((nx, ny))
        found.append(points)
    return found


def in_order(corners):
    """Clockwise from the top left."""
    by_x = sorted(corners, key=lambda p: (p[0], p[1]))
    left = sorted(by_x[:2], key=lambda p: p[1])
    right = sorted(by_x[2:], key=lambda p: p[1])
    return np.array([left[0], right[0], right[1], left[1]])


def db_boxes(map_, frame, threshold=0.3, box_threshold=0.6, unclip=1.5, least=3.0, most=64):
    """FP32 [1, 1, h, w], probabilities: quads [n, 4, 2] in pixels of the source, and scores."""
    prob = map_[0, 0].astype(np.float64)
    quads, scores = [], []
    for points in components(map_[0, 0] > np.float32(threshold)):
        u, v, a0, a1, b0, b1 = least_rectangle(points)
        if min(a1 - a0, b1 - b0) < least:
            continue
        # Whatever lies in the rectangle counts, as in the published post-processing.
        corners = np.array([a0 * u + b0 * v, a1 * u + b0 * v, a1 * u + b1 * v, a0 * u + b1 * v])
        x0, y0 = np.floor(corners.min(0)).astype(int)
        x1, y1 = np.ceil(corners.max(0)).astype(int)
        ys, xs = np.mgrid[max(y0, 0):min(y1, prob.shape[0] - 1) + 1,
                          max(x0, 0):min(x1, prob.shape[1] - 1) + 1]
        a, b = xs * u[0] + ys * u[1], xs * v[0] + ys * v[1]
        inside = (a >= a0 - 1e-6) & (a <= a1 + 1e-6) & (b >= b0 - 1e-6) & (b <= b1 + 1e-6)
        score = prob[ys[inside], xs[inside]].mean()
        if score < box_threshold:
            continue
        grow = (a1 - a0) * (b1 - b0) * unclip / (2 * (a1 - a0 + b1 - b0))
        a0, a1, b0, b1 = a0 - grow, a1 + grow, b0 - grow, b1 + grow
        if min(a1 - a0, b1 - b0) < least + 2:
            continue
        corners = np.array([a0 * u + b0 * v, a1 * u + b0 * v, a1 * u + b1 * v, a0 * u + b1 * v])
        corners = np.clip(corners + 0.5, 0, [prob.shape[1], prob.shape[0]])
        left, top, sx, sy = frame
        quads.append(in_order(corners / [sx, sy] + [left, top]))
        scores.append(score)
    best = np.lexsort((np.arange(len(scores)), -np.array(scores)))[:most]
    order = sorted(best, key=lambda i: (quads[i][0][1], quads[i][0][0]))
    for i in range(len(order) - 1):  # one line of text: from left to right
        for j in range(i, -1, -1):
            one, next_ = quads[order[j]][0], quads[order[j + 1]][0]
            if abs(next_[1] - one[1]) >= 10 or next_[0] >= one[0]:
                break
            order[j], order[j + 1] = order[j + 1], order[j]
    return (np.array([quads[i] for i in order], np.float32).reshape(-1, 4, 2),
            np.array([scores[i] for i in order], np.float32))


def text_crop(image, quads, height, width, most=64):
    """Lines of text, upright, `height` high and at most `width` wide; black (uint8 0) to the right,
    and how wide each is."""
    crops, widths = [], []
    for quad in quads[:most].astype(np.float64):
        w = max(np.hypot(*(quad[1] - quad[0])), np.hypot(*(quad[2] - quad[3])))
        h = max(np.hypot(*(quad[3] - quad[0])), np.hypot(*(quad[2] - quad[1])))
        if h >= 1.5 * w:  # upright letters on a vertical line: turned by a quarter
            quad, w, h = quad[[1, 2, 3, 0]], h, w
        across = int(np.clip(np.ceil(height * w / max(h, 1e-9)), 1, width))
        u = (np.arange(across) + 0.5) / across
        v = (np.arange(height) + 0.5) / height
        at = (quad[0] + u[None, :, None] * (quad[1] - quad[0])
              + v[:, None, None] * (quad[3] - quad[0])) - 0.5
        at = np.clip(at, 0, [image.shape[1] - 1, image.shape[0] - 1])
        base = np.floor(at).astype(np.int64)
        weight = np.floor((at - base) * ONE + 0.5).astype(np.int64)
        x0, y0 = base[..., 0], base[..., 1]
        x1, y1 = np.minimum(x0 + 1, image.shape[1] - 1), np.minimum(y0 + 1, image.shape[0] - 1)
        wx, wy = weight[..., 0][..., None], weight[..., 1][..., None]
        pixels = image.astype(np.int64)
        top = pixels[y0, x0] * (ONE - wx) + pixels[y0, x1] * wx
        bottom = pixels[y1, x0] * (ONE - wx) + pixels[y1, x1] * wx
        out = np.zeros((height, width, 3), np.uint8)
        out[:, :across] = (top * (ONE - wy) + bottom * wy + ONE * ONE // 2) // (ONE * ONE)
        crops.append(out)
        widths.append(across)
    if not crops:
        return np.zeros((0, height, width, 3), np.uint8), np.zeros((0, 1), np.int32)
    return np.stack(crops), np.array(widths, np.int32)[:, None]


def normalize_lines(crops, widths):
    """As PP-OCR wants them: BGR in [-1, 1], and 0 where there is no line any more."""
    out = normalize(crops, [0.5] * 3, [0.5] * 3, "bgr")
    for i, across in enumerate(widths[:, 0]):
        out[i, :, :, across:] = 0
    return out


def turn_upright(lines, widths, directions, threshold=0.9):
    out = lines.copy()
    for i in range(len(lines)):
        if directions[i, 1] > threshold:
            w = widths[i, 0]
            out[i, :, :, :w] = lines[i, :, ::-1, :w][:, :, ::-1]
    return out


def ctc(steps, alphabet):
    """FP32 [n, t, c], probabilities, class 0 the blank: texts, and the mean of what was kept."""
    texts, scores = [], []
    for row in steps:
        best = row.argmax(1)
        kept = [t for t in range(len(best))
                if best[t] != 0 and (t == 0 or best[t] != best[t - 1])]
        texts.append("".join(alphabet[best[t] - 1] for t in kept))
        scores.append(np.float32(np.mean([float(row[t, best[t]]) for t in kept]) if kept else 0))
    return texts, np.array(scores, np.float32)


def top_k(scores, k):
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order.astype(np.int32), np.take_along_axis(scores, order, 1)


def read_alphabet(path):
    with open(path, encoding="utf-8") as file:
        return file.read().removesuffix("\n").split("\n") + [" "]


def read_text(image, det, cls, rec, alphabet, size=480, line_width=320):
    """The pipeline read_text: quads, texts and scores. det, cls, rec: onnxruntime sessions."""
    def run(session, x):
        return session.run(None, {session.get_inputs()[0].name: x})[0]
    small = resize(image, size, size)
    tensor = normalize(small, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225], "bgr")
    quads, _ = db_boxes(run(det, tensor), resize_frame(image, size, size))
    if len(quads) == 0:
        return quads, [], np.zeros(0, np.float32)
    # Each line by itself, as the pipeline asks: batches of another size round otherwise.
    texts, scores = [], []
    for quad in quads:
        line = normalize_lines(*text_crop(image, quad[None], 48, line_width))
        widths = text_crop(image, quad[None], 48, line_width)[1]
        small_line = normalize_lines(*text_crop(image, quad[None], 48, 192))
        text, score = ctc(run(rec, turn_upright(line, widths, run(cls, small_line))), alphabet)
        texts += text
        scores.append(score[0])
    return quads, texts, np.array(scores, np.float32)


def street(image, detector, poser, threshold=0.4, size=416):
    """The pipeline street: boxes, scores and points of persons."""
    tensor = normalize(resize(image, size, size), [0] * 3, [1] * 3)
    maps = detector.run(None, {"input_1": tensor})
    boxes, scores, _ = nanodet(maps, resize_frame(image, size, size), threshold, keep=[0], most=32)
    crops, frames = crop(image, boxes, 193, 129, margin=0.1, extend=True, most=32)
    people = normalize(crops, [0.5] * 3, [0.5] * 3, layout="nhwc")
    points = np.zeros((len(boxes), 17, 3), np.float32)
    for i in range(len(boxes)):
        heat, offsets = poser.run(["out_MobilenetV1_heatmap_2_BiasAdd",
                                   "out_MobilenetV1_offset_2_BiasAdd"], {"image": people[i:i + 1]})
        points[i] = pose(heat, offsets, frames[i:i + 1])[0]
    return boxes, scores, points
