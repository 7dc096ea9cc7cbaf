"""The page that `python -m lnorm compare --html` writes: one file with plots in SVG, and nothing from elsewhere."""
import html
import math

# Colours that stay apart for colour-blind readers (Okabe and Ito's), and a mark for each: a path around 0, 0.
_LOOKS = {
    "lnorm": ("#0072b2", "M-5 0A5 5 0 1 1 5 0A5 5 0 1 1-5 0Z"),
    "lnorm fast": ("#56b4e9", "M0-6L6 0L0 6L-6 0Z"),
    "NumPy": ("#e69f00", "M-4.5-4.5H4.5V4.5H-4.5Z"),
    "PyTorch": ("#d55e00", "M0-5.5L5.5 4.5H-5.5Z"),
    "ONNX Runtime": ("#009e73", "M0 5.5L5.5-4.5H-5.5Z"),
}
_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --ink: #e6e9ee; --soft: #a3adba; --line: #373e47 } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 2em auto;
       max-width: 960px; padding: 0 1em }
.soft { color: var(--soft) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: 3px 8px; text-align: right; white-space: nowrap }
th:first-child { text-align: left }
td.yes { color: #1a7f37 } td.no { color: #cf222e; font-weight: 600 }
svg { display: block; height: auto; max-width: 100% }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif }
svg .tick { fill: var(--soft); font-size: 12px }
svg .grid { stroke: var(--line) }
svg .row { stroke: var(--line); stroke-dasharray: 1 4 }
svg .mark { stroke: var(--soft); stroke-dasharray: 5 3 }
svg path { stroke: var(--page); stroke-width: 0.7 }
"""
_LEFT, _RIGHT, _ROW, _TOP, _WIDTH = 190, 70, 34, 34, 900
_APART = 5  # the marks of one row, each a little lower than the one before: equal numbers stay visible


def _label(value):
    return f"{value:g}" if 1e-3 <= value < 1e6 else f"{value:.0e}"


def _ticks(low, high):
    """1, 2 and 5 times powers of ten from low to high; over many decades the powers alone, or some of them."""
    decades = math.log10(high / low)
    steps, stride = ((1, 2, 5), 1) if decades < 2.5 else ((1,), math.ceil(decades / 9))
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**e for e in exponents if e % stride == 0 for step in steps if low <= step * 10.0**e <= high]


def plot(title, rows, names, mark):
    """A line for each row (its label, and a number for each name) with a mark for each number on a logarithmic axis; a
    number that is not finite stands at the right edge. `mark`: where a dashed line stands."""
    numbers = [value for _, values in rows for value in values.values() if 0 < value < math.inf]
    low, high = min([*numbers, mark]) / 1.3, max([*numbers, mark]) * 1.3

    def across(value):
        if not value < math.inf:
            return _WIDTH - _RIGHT / 2
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(max(value, low) / low) / math.log(high / low)

    bottom = _TOP + _ROW * len(rows)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {bottom + 26}" width="{_WIDTH}" role="img">'
             f"<title>{html.escape(title)}</title>"]
    for value in _ticks(low, high):
        x = across(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>'
                     f'<text class="tick" text-anchor="middle" x="{x:.1f}" y="{bottom + 17}">{_label(value)}</text>')
    x = across(mark)
    parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>')
    for i, (label, values) in enumerate(rows):
        y = _TOP + _ROW * (i + 0.5)
        parts.append(f'<text x="0" y="{y + 4:.1f}">{html.escape(label)}</text>'
                     f'<line class="row" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts += [_mark(name, across(values[name]), y + _APART * (k - (len(names) - 1) / 2),
                        f"{name}: {values[name]:.4g}") for k, name in enumerate(names) if name in values]
    parts += [_mark(name, _LEFT + 10 + 130 * i, 12, name) + f'<text x="{_LEFT + 21 + 130 * i}" y="16">{name}</text>'
              for i, name in enumerate(names)]
    return "".join([*parts, "</svg>"])


def _mark(name, x, y, title):
    colour, path = _LOOKS[name]
    return (f'<path fill="{colour}" transform="translate({x:.1f} {y})" d="{path}">'
            f"<title>{html.escape(title)}</title></path>")


def _cell(text):
    kind = text.split()[0] if text else ""
    return f'<td class="{kind}">{text}</td>' if kind in ("yes", "no") else f"<td>{html.escape(text)}</td>"


def _table(names, rows):
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *names))
    body = "".join(f"<tr><th>{html.escape(label)}</th>{''.join(_cell(cells.get(name, '-')) for name in names)}</tr>\n"
                   for label, cells in rows)
    return f'<div class="wide"><table><tr>{head}</tr>\n{body}</table></div>'


def page(result, heading, sections):
    """The whole document; heading: lines, sections: (title, explanation, rows of a table)."""
    names = list(result["libraries"])
    ratios = [(r["case"], r["ratio"]) for r in result["speed"]]
    errors = [(r["data"], r["worst"]) for r in result["accuracy"]]
    plots = {"Speed": plot("time of a call over that of lnorm", ratios, names, 1),
             "Accuracy": plot("largest error in ulp", errors, names, 0.5)}
    under = {"Speed": "Time of a call over that of lnorm (dashed: the same), logarithmic.",
             "Accuracy": "Largest error in ulp of f32 (dashed: 0.5, correct rounding), logarithmic; at the right edge: "
                         "a NaN or an infinity came out."}
    parts = [f"<p>{'<br>'.join(map(html.escape, heading))}<br>{html.escape(result['date'])}</p>"]
    for title, what, rows in sections:
        parts.append(f'<h2>{title}</h2>\n<p>{html.escape(what)}</p>\n{_table(names, rows)}')
        if title in plots:
            parts.append(f'<div class="wide">{plots[title]}</div>\n<p class="soft">{under[title]}</p>')
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>lnorm beside other libraries</title>\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<style>{_STYLE}</style></head>\n<body><h1>lnorm beside other libraries</h1>\n"
            + "\n".join(parts) + "\n</body></html>\n")
