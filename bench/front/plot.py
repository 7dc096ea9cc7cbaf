"""The plot: GB/s against N at constant total size, as SVG, written here so that it needs nothing to be installed."""
import math
from html import escape

WIDTH, HEIGHT = 960, 560
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 60, 60

# Okabe and Ito's colours, which differ for all kinds of sight: (colour, width, dashes) of each line.
STYLES = {
    "lnorm": ("#000000", 3, ""), "fast": ("#000000", 2, "7 3"),
    "memcpy": ("#888888", 1.5, "2 3"), "stream": ("#888888", 1.5, "7 3"),
    "loop": ("#e69f00", 1.8, ""), "onednn": ("#0072b2", 1.8, ""), "torch": ("#d55e00", 1.8, "5 3"),
    "torch-kept": ("#d55e00", 1.8, ""), "onnxruntime": ("#009e73", 1.8, ""), "numpy": ("#cc79a7", 1.8, ""),
}


class Scale:
    """From a value to a place, by the logarithm."""

    def __init__(self, low, high, begin, end):
        self.low, self.high, self.begin, self.end = math.log2(low), math.log2(high), begin, end

    def __call__(self, value):
        return self.begin + (math.log2(value) - self.low) / (self.high - self.low or 1) * (self.end - self.begin)


def text(x, y, content, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(content)}</text>'


def line(x1, y1, x2, y2, style):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def points(results, name):
    found = [(result["columns"], result["traffic"] / result["times"][name]["best"] / 1e9) for result in results
             if name in result["times"] and result["times"][name]["comparable"]]
    return sorted(found)


def axes(across, up, columns, speeds):
    grid = 'stroke="#dddddd"'
    parts = []
    for exponent in range(int(math.log2(columns[0])), int(math.log2(columns[1])) + 1):
        x = across(2 ** exponent)
        parts.append(line(x, TOP, x, HEIGHT - BOTTOM, grid))
        if exponent % 5 == 0:
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">2'
                         f'<tspan dy="-5" font-size="9">{exponent}</tspan></text>')
    value = 2.0 ** math.ceil(math.log2(speeds[0]))
    while value <= speeds[1]:
        parts += [line(LEFT, up(value), WIDTH - RIGHT, up(value), grid),
                  text(LEFT - 8, up(value) + 4, f"{value:g}", "end")]
        value *= 2
    return parts


def cache_marks(across, caches, columns):
    """Where a row of x no longer fits into a cache."""
    parts = []
    for level, size in sorted(caches.items()):
        if columns[0] < size / 4 < columns[1]:
            x = across(size / 4)
            parts += [line(x, TOP, x, HEIGHT - BOTTOM, 'stroke="#555555" stroke-dasharray="3 4"'),
                      text(x, TOP - 6, f"row of L{level}", more='fill="#555555"')]
    return parts


def legend(entries):
    """Names at the right ends of their lines, moved apart where they would overlap."""
    parts, last = [], -1e9
    for y, name, x in sorted(entries):
        colour, width, dashes = STYLES[name]
        place = last = max(y, last + 15)
        parts += [line(x + 2, y, WIDTH - RIGHT + 20, place, f'stroke="{colour}" stroke-width="0.6"'),
                  line(WIDTH - RIGHT + 20, place, WIDTH - RIGHT + 42, place,
                       f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"'),
                  text(WIDTH - RIGHT + 47, place + 4, name, "start")]
    return parts


def draw(results, title, caches):
    """The SVG of a sweep's results."""
    curves = {name: points(results, name) for name in STYLES}
    curves = {name: curve for name, curve in curves.items() if curve}
    every = [point for curve in curves.values() for point in curve]
    columns = min(x for x, _ in every), max(x for x, _ in every)
    speeds = min(y for _, y in every) / 1.1, max(y for _, y in every) * 1.1
    across = Scale(*columns, LEFT, WIDTH - RIGHT)
    up = Scale(*speeds, HEIGHT - BOTTOM, TOP)
    parts = axes(across, up, columns, speeds) + cache_marks(across, caches, columns)
    entries = []
    for name, curve in reversed(curves.items()):
        colour, width, dashes = STYLES[name]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
                     f'stroke-dasharray="{dashes}" stroke-linejoin="round"/>')
        entries.append((up(curve[-1][1]), name, across(curve[-1][0])))
    parts += legend(entries)
    parts += [text(LEFT, 24, title, "start", 'font-size="15"'),
              text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "columns N (elements in a row)"),
              f'<text transform="translate(20 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">GB/s of x and y</text>']
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12">\n<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n' + "\n".join(parts)
            + "\n</svg>\n")
