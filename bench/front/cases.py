"""The cases: bench/cases.toml, checked, one Case per line of the table; and the sweep over N for the plot."""
import dataclasses
import re
import tomllib

ITEM_SIZE = {"f32": 4, "f64": 8, "f16": 2, "bf16": 2}
CHOICES = {"op": ("layer", "rms", "columns", "group"), "pass": ("forward", "backward"), "layout": ("first", "last"),
           "unit": ("GB/s", "ns"), "threads": ("one", "any")}
TARGET = re.compile(r"(?:(?P<when>1 thread|threads): )?(?P<who>lnorm|fast|plan) >= (?P<factor>[0-9.]+) x "
                    r"(?P<whom>[a-z0-9-]+)(?P<alone>@1)?(?: \((?P<isa>[a-z0-9]+): (?P<other>[0-9.]+)\))?")
TIME_TARGET = re.compile(r"(?P<who>lnorm|fast|plan) <= (?P<whom>[a-z]+) \+ (?P<more>[0-9]+) ns")


@dataclasses.dataclass(frozen=True)
class Case:
    regime: str
    shape: tuple
    dtype: str
    op: str = "layer"
    direction: str = "forward"
    stride: int = 0
    groups: int = 0
    layout: str = "first"
    unit: str = "GB/s"
    threads: str = "any"
    dram: bool = False
    net: bool = False
    plan: bool = False
    only: tuple = ()
    targets: tuple = ()

    @property
    def label(self):
        words = [self.shape_text]
        if self.op != "layer":
            words.append({"rms": "rms", "columns": "axis 0", "group": "group"}[self.op])
        if self.op == "group":
            words.append("NHWC" if self.layout == "last" else "NCHW")
        if self.stride:
            words.append(f"stride {self.stride}")
        return " ".join(words)

    @property
    def shape_text(self):
        return "x".join(map(str, self.shape))

    @property
    def key(self):
        """The same case in another run."""
        return f"{self.label} {self.dtype} {self.direction}"

    @property
    def elements(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def traffic(self):
        """Bytes that must move: x and y; of a backward pass x, dy and dx."""
        return self.elements * ITEM_SIZE[self.dtype] * (3 if self.direction == "backward" else 2)

    @property
    def footprint(self):
        """Bytes of the large arrays as they lie in memory."""
        gap = (self.stride - self.shape[1]) * self.shape[0] if self.stride else 0
        read = 2 if self.direction == "backward" else 1
        return self.traffic + gap * read * ITEM_SIZE[self.dtype]

    def line(self, sets, net):
        """What a worker is told."""
        words = [f"op={self.op}", f"pass={self.direction}", f"dtype={self.dtype}", f"shape={self.shape_text}",
                 f"sets={sets}"]
        if self.stride:
            words.append(f"stride={self.stride}")
        if self.op == "group":
            words += [f"groups={self.groups}", f"layout={self.layout}"]
        if net:
            words.append("net=1")
        return "case " + " ".join(words)


def wrong(path, number, message):
    raise SystemExit(f"lnorm-bench: {path}: case {number}: {message}")


def parse_entry(path, number, entry):
    known = {field.name for field in dataclasses.fields(Case)} - {"dtype", "direction"} | {"dtypes", "pass"}
    for key in entry:
        if key not in known:
            wrong(path, number, f"unknown key {key!r}; known are {', '.join(sorted(known))}")
    for key in ("regime", "shape", "dtypes"):
        if key not in entry:
            wrong(path, number, f"{key} is missing")
    for key, choices in CHOICES.items():
        if entry.get(key, choices[0]) not in choices:
            wrong(path, number, f"{key}: expected one of {', '.join(choices)}, got {entry[key]!r}")
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)+", entry["shape"]):
        wrong(path, number, f"shape: expected extents such as 64x768, got {entry['shape']!r}")
    for text in entry.get("targets", ()):
        if not TARGET.fullmatch(text) and not TIME_TARGET.fullmatch(text):
            wrong(path, number, f"targets: not understood: {text!r}")
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()
              if key not in ("dtypes", "pass", "shape")}
    for dtype in entry["dtypes"]:
        if dtype not in ITEM_SIZE:
            wrong(path, number, f"dtypes: expected some of {', '.join(ITEM_SIZE)}, got {dtype!r}")
        yield Case(shape=tuple(map(int, entry["shape"].split("x"))), dtype=dtype,
                   direction=entry.get("pass", "forward"), **fields)


def read(path):
    with open(path, "rb") as file:
        try:
            entries = tomllib.load(file).get("case", [])
        except tomllib.TOMLDecodeError as error:
            raise SystemExit(f"lnorm-bench: {path}: {error}") from error
    return [case for number, entry in enumerate(entries, 1) for case in parse_entry(path, number, entry)]


def select(cases, words):
    """Cases of which a word is the regime, the element type, the direction or part of the shape's label."""
    chosen = []
    for word in words:
        found = [case for case in cases if word in (case.regime, case.dtype, case.direction) or word in case.label]
        if not found:
            regimes = ", ".join(dict.fromkeys(case.regime for case in cases))
            raise SystemExit(f"lnorm-bench: --cases: expected regimes ({regimes}), element types, directions or parts "
                             f"of a shape, got {word!r}")
        chosen += found
    return [case for case in cases if case in chosen]


def sweep(elements, step):
    """Rows of every N from 1 to `elements`, a power of two, at constant total size."""
    columns = 1
    while columns <= elements:
        yield Case("sweep", (elements // columns, columns), "f32")
        columns *= step
