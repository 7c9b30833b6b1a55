# SPDX-License-Identifier: Apache-2.0
"""Compares the transform stage with Pillow, NumPy and, where it is there, torchvision.

    transform_parity.py PATH/TO/transform_dump [number of random cases]

uint8 must be equal bit for bit; floats must be equal to torchvision's arithmetic done in float32.
Pillow 13 is the reference. An older one resizes across before down always; where 13 does not,
the two passes are then asked for one by one.
"""

import random
import subprocess
import sys

try:
    import numpy as np
    import PIL
    from PIL import Image, ImageOps
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

UINT8, FLOAT32, FLOAT16, BFLOAT16 = 4, 1, 2, 3
NCHW, NHWC = 1, 2
CPUS = {"c": 1, "avx2": 2, "avx512": 3}
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
PILLOW_13 = int(PIL.__version__.split(".")[0]) >= 13


def cpus_here():
    try:
        flags = open("/proc/cpuinfo").read()
    except OSError:
        flags = ""
    found = ["c"]
    if " avx2" in flags and " f16c" in flags:
        found.append("avx2")
    if " avx512_vnni" in flags and " avx512vl" in flags:
        found.append("avx512")
    return found


class Tool:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, pixels, ops, dtype=UINT8, layout=NHWC, cpu="c", seed=0):
        h, w, _ = pixels.shape
        text = ops.encode()
        head = f"{w} {h} {dtype} {layout} {CPUS[cpu]} {seed} {len(text)}\n".encode()
        self.process.stdin.write(head + text + pixels.tobytes())
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode().split(" ", 1)
        if line[0] != "ok":
            raise RuntimeError(line)
        x, y, cw, ch, flip_x, flip_y, n = map(int, line[1].split())
        return self.process.stdout.read(n), (x, y, cw, ch), flip_x, flip_y


class Tally:
    def __init__(self):
        self.cases = self.failures = 0

    def check(self, good, words):
        self.cases += 1
        if not good:
            self.failures += 1
            print("FAILED", words)


def noise_image(rng, w, h):
    """Noise over gradients: neither flat nor only noise."""
    y, x = np.mgrid[0:h, 0:w]
    base = np.stack([x * 255 / max(w - 1, 1), y * 255 / max(h - 1, 1), (x + y) % 256], axis=2)
    noise = rng.integers(0, 256, (h, w, 3))
    share = rng.choice([0.0, 0.3, 1.0])
    return np.ascontiguousarray((base * (1 - share) + noise * share).astype(np.uint8))


def resized(image, w, h, name):
    """Pillow 13's result, by two calls in its order of passes when Pillow is older."""
    f = FILTERS[name]
    if PILLOW_13 or name == "nearest":
        return image.resize((w, h), f)
    lost_w, lost_h = image.width - w, image.height - h
    if lost_h > 0 and lost_h > 2 * lost_w:
        return image.resize((image.width, h), f).resize((w, h), f)
    return image.resize((w, h), f)


def sizes(rng, n):
    """Up, down, odd, tiny, long and narrow."""
    fixed = [
        (1, 1, 7, 5),
        (1, 1, 1, 1),
        (2, 3, 224, 224),
        (290, 290, 224, 224),
        (500, 375, 224, 224),
        (640, 480, 33, 17),
        (3, 2000, 10, 10),
        (2000, 3, 10, 10),
        (1, 6000, 4, 4),
        (6000, 1, 4, 4),
        (17, 19, 17, 40),
        (17, 19, 40, 19),
        (100, 900, 90, 100),
        (1000, 1000, 1, 1),
        (5, 5, 301, 2),
        (224, 300, 224, 224),
    ]
    yield from fixed
    for _ in range(n):
        top = rng.choice([8, 60, 400, 900])
        yield tuple(int(v) for v in rng.integers(1, top + 1, 4))


def check_resize(tool, t, rng, n, cpus):
    for w, h, ow, oh in sizes(rng, n):
        px = noise_image(rng, w, h)
        image = Image.fromarray(px)
        for name in FILTERS:
            want = np.asarray(resized(image, ow, oh, name)).tobytes()
            for cpu in cpus:
                got = tool.run(px, f"Resize(({oh}, {ow}), {name})", cpu=cpu)[0]
                t.check(got == want, f"Resize {name} {w}x{h} to {ow}x{oh} on {cpu}")


def center_crop(image, w, h):
    """torchvision's center_crop on a PIL image."""
    left, top = max((w - image.width) // 2, 0), max((h - image.height) // 2, 0)
    right, bottom = max((w - image.width + 1) // 2, 0), max((h - image.height + 1) // 2, 0)
    image = ImageOps.expand(image, (left, top, right, bottom), fill=0)
    y, x = int(round((image.height - h) / 2.0)), int(round((image.width - w) / 2.0))
    return image.crop((x, y, x + w, y + h))


def short_side(image, size, max_size=None):
    w, h = image.size
    short, long = (w, h) if w <= h else (h, w)
    new_short, new_long = size, int(size * long / short)
    if max_size is not None and new_long > max_size:
        new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_short, new_long) if w <= h else (new_long, new_short)


def check_evaluation(tool, t, rng, n, cpus):
    """Resize(short side) | CenterCrop, the crop being only a window of the resize."""
    for _ in range(n):
        w, h = (int(v) for v in rng.integers(1, rng.choice([20, 300, 700]), 2))
        size, crop_w, crop_h = (int(v) for v in rng.integers(1, 260, 3))
        name = rng.choice(list(FILTERS))
        px = noise_image(rng, w, h)
        image = Image.fromarray(px)
        new = short_side(image, size)
        if max(new) > 20000:
            continue
        want = center_crop(resized(image, *new, name), crop_w, crop_h)
        for cpu in cpus:
            got = tool.run(px, f"Resize({size}, {name}) | CenterCrop(({crop_h}, {crop_w}))", cpu=cpu)[0]
            same = got == np.asarray(want).tobytes()
            t.check(same, f"Resize({size}) CenterCrop {w}x{h} {crop_w}x{crop_h} {name} {cpu}")
        grey = np.asarray(want.convert("L"))
        got = tool.run(px, f"Resize({size}, {name}) | CenterCrop(({crop_h}, {crop_w})) | Grayscale", cpu=cpus[-1])[0]
        t.check(got == grey.tobytes(), f"Grayscale after Resize({size}) {w}x{h}")
        grey = np.asarray(center_crop(resized(image.convert("L"), *new, name), crop_w, crop_h))
        for cpu in cpus:
            got = tool.run(px, f"Grayscale | Resize({size}, {name}) | CenterCrop(({crop_h}, {crop_w}))", cpu=cpu)[0]
            t.check(got == grey.tobytes(), f"Grayscale before Resize({size}) {w}x{h} {name} {cpu}")


def check_max_size(tool, t, rng, n):
    for _ in range(n):
        w, h = (int(v) for v in rng.integers(1, 300, 2))
        size = int(rng.integers(1, 60))
        most = size + int(rng.integers(1, 60))
        image = Image.fromarray(noise_image(rng, w, h))
        new = short_side(image, size, most)
        if min(new) < 1:
            continue
        want = center_crop(resized(image, *new, "bilinear"), 70, 70)
        got = tool.run(np.asarray(image), f"Resize({size}, max_size={most}) | CenterCrop(70)")[0]
        t.check(got == np.asarray(want).tobytes(), f"max_size {w}x{h} {size} {most}")


def check_random(tool, t, rng, n, cpus):
    """The drawn crop and flips come from the tool; the rest must be Pillow's."""
    flips = [0, 0]
    for seed in range(n):
        w, h = (int(v) for v in rng.integers(1, 500, 2))
        size = int(rng.integers(1, 240))
        name = rng.choice(list(FILTERS))
        px = noise_image(rng, w, h)
        ops = f"RandomResizedCrop({size}, interpolation={name}) | RandomHorizontalFlip | RandomVerticalFlip"
        for cpu in cpus:
            got, (x, y, cw, ch), flip_x, flip_y = tool.run(px, ops, cpu=cpu, seed=seed)
            want = Image.fromarray(px).crop((x, y, x + cw, y + ch))
            want = resized(want, size, size, name)
            if flip_x:
                want = want.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            if flip_y:
                want = want.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
            t.check(got == np.asarray(want).tobytes(), f"{ops} {w}x{h} seed {seed} on {cpu}")
        flips[0] += flip_x
        flips[1] += flip_y
    t.check(n < 100 or all(0.35 * n < f < 0.65 * n for f in flips), f"flips {flips} of {n}")


def check_pad(tool, t, rng, n, cpus):
    modes = {"constant": {"constant_values": 9}, "edge": {}, "reflect": {}, "symmetric": {}}
    for _ in range(n):
        w, h = (int(v) for v in rng.integers(6, 60, 2))
        left, top, right, bottom = (int(v) for v in rng.integers(0, 6, 4))
        px = noise_image(rng, w, h)
        size = (h + top + bottom, w + left + right)
        for mode, extra in modes.items():
            padded = np.pad(px, ((top, bottom), (left, right), (0, 0)), mode, **extra)
            ops = f"CenterCrop(({h}, {w})) | Pad(({left}, {top}, {right}, {bottom}), fill=9, padding_mode={mode})"
            got = tool.run(px, ops)[0]
            t.check(got == padded.tobytes(), f"Pad {mode} {w}x{h} {left} {top} {right} {bottom}")
            again = f"{ops} | Resize((31, 29))"
            want = resized(Image.fromarray(padded), 29, 31, "bilinear")
            t.check(tool.run(px, again, cpu=cpus[-1])[0] == np.asarray(want).tobytes(), f"{again} {size}")
        for mode in ("edge", "symmetric"):  # more than there is
            padded = np.pad(px, ((70, 70), (70, 70), (0, 0)), mode)
            got = tool.run(px, f"CenterCrop(({h}, {w})) | Pad(70, padding_mode={mode})")[0]
            t.check(got == padded.tobytes(), f"Pad {mode} by 70 {w}x{h}")


def bfloat16_of(x):
    """Bits, rounded to the nearest, ties to even."""
    u = x.astype(np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def expected_floats(px, mean, std, dtype, layout):
    """torchvision: uint8 to float32, div(255), sub(mean), div(std)."""
    x = px.astype(np.float32) / np.float32(255)
    if mean is not None:
        x = (x - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    x = x if layout == NHWC else x.transpose(2, 0, 1)
    x = np.ascontiguousarray(x)
    return {FLOAT32: lambda: x, FLOAT16: lambda: x.astype(np.float16), BFLOAT16: lambda: bfloat16_of(x)}[dtype]()


NORMS = {
    "Normalize": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "Normalize(clip)": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
    "Normalize(half)": ((0.5,) * 3, (0.5,) * 3),
    "Normalize(mean=(0.1, 0.2, 0.7), std=(1e-3, 3, 0.0307))": ((0.1, 0.2, 0.7), (1e-3, 3, 0.0307)),
    "ToTensor": (None, None),
}


def check_floats(tool, t, rng, cpus):
    every = np.arange(256, dtype=np.uint8)
    for w, h in [(256, 3), (224, 224), (37, 5), (16, 16), (1, 1), (65, 2)]:
        px = np.stack([rng.permutation(np.resize(every, w * h)).reshape(h, w) for _ in range(3)], axis=2)
        px = np.ascontiguousarray(px)
        for words, (mean, std) in NORMS.items():
            for dtype in (FLOAT32, FLOAT16, BFLOAT16):
                for layout in (NCHW, NHWC):
                    want = expected_floats(px, mean, std, dtype, layout).tobytes()
                    for cpu in cpus:
                        got = tool.run(px, f"CenterCrop(({h}, {w})) | {words}", dtype, layout, cpu)[0]
                        t.check(got == want, f"{words} {w}x{h} dtype {dtype} layout {layout} {cpu}")
        grey = np.asarray(Image.fromarray(px).convert("L"))
        for cpu in cpus:
            got = tool.run(px, f"CenterCrop(({h}, {w})) | Grayscale | Normalize(half)", FLOAT32, NCHW, cpu)[0]
            x = (grey.astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
            t.check(got == x.tobytes(), f"grey floats {w}x{h} {cpu}")


def torchvision_or_none():
    try:
        import torch

        # A torchvision beside a torch without its compiled ops asks for these at import.
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torchvision_or_none.library = library
    except Exception:
        pass
    try:
        import torch
        from torchvision.transforms import v2

        return torch, v2
    except Exception as missing:
        print(f"without torchvision: {missing}")
        return None


def check_torchvision(tool, t, rng, n, cpu):
    found = torchvision_or_none()
    if not found:
        return
    torch, v2 = found
    mean, std = NORMS["Normalize"]
    for _ in range(n):
        w, h = (int(v) for v in rng.integers(1, 500, 2))
        px = noise_image(rng, w, h)
        image = Image.fromarray(px)
        to_float = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)]
        pipe = v2.Compose([v2.Resize(64), v2.CenterCrop(56), *to_float])
        got = tool.run(
            px, "Resize(64) | CenterCrop(56) | ToImage | ToDtype(float32, scale=True) | Normalize", FLOAT32, NCHW, cpu
        )[0]
        t.check(got == pipe(image).numpy().tobytes() or not PILLOW_13, f"torchvision v2 {w}x{h}")
        half = np.asarray(v2.Pad((5, 3, 8, 1), fill=(3, 4, 5))(image))
        got = tool.run(px, f"CenterCrop(({h}, {w})) | Pad((5, 3, 8, 1), fill=(3, 4, 5))")[0]
        t.check(got == half.tobytes(), f"torchvision Pad {w}x{h}")
        # Without antialias the model is torchvision's resize of uint8 tensors, whose weights have fewer bits.
        ow, oh = (int(v) for v in rng.integers(1, 200, 2))
        tensor = torch.from_numpy(px).permute(2, 0, 1)
        for mode in ("bilinear", "bicubic"):
            want = v2.functional.resize(tensor, [oh, ow], v2.InterpolationMode(mode), antialias=False)
            want = want.permute(1, 2, 0).numpy().astype(int)
            got = tool.run(px, f"Resize(({oh}, {ow}), {mode}, antialias=False)", cpu=cpu)[0]
            far = np.abs(np.frombuffer(got, np.uint8).reshape(oh, ow, 3).astype(int) - want).max()
            t.check(far <= 1, f"{mode} without antialias {w}x{h} to {ow}x{oh}: {far} levels apart")


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    seed = random.randrange(1 << 30) if len(sys.argv) < 4 else int(sys.argv[3])
    print(f"Pillow {PIL.__version__}, seed {seed}")
    rng = np.random.default_rng(seed)
    cpus = cpus_here()
    tool, t = Tool(sys.argv[1]), Tally()
    check_resize(tool, t, rng, n, cpus)
    check_evaluation(tool, t, rng, n, cpus)
    check_max_size(tool, t, rng, n)
    check_random(tool, t, rng, n, cpus)
    check_pad(tool, t, rng, max(n // 4, 4), cpus)
    check_floats(tool, t, rng, cpus)
    check_torchvision(tool, t, rng, n, cpus[-1])
    print(f"{t.cases} cases on {', '.join(cpus)}: {t.failures} failed")
    return 1 if t.failures else 0


if __name__ == "__main__":
    sys.exit(main())
