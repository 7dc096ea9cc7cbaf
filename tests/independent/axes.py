"""Section 2: which elements form a group, and which terms an entry of weight or bias sums."""


def numbering(shape, axes):
    """Offsets of all indices of a set of axes, in logical row-major order of these axes."""
    steps, step = [0] * len(shape), 1
    for axis in reversed(range(len(shape))):
        steps[axis] = step
        step *= shape[axis]
    offsets = [0]
    for axis in sorted(axes):
        offsets = [base + i * steps[axis] for base in offsets for i in range(shape[axis])]
    return offsets


def product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def reduced(kind, shape, axes=None, groups=0):
    """x's shape as the operation sees it, R, and the default A (None: the same as R)."""
    ndim = len(shape)
    if kind in ("layer", "rms"):
        chosen = axes if axes is not None else [-1]
        return shape, {axis % ndim for axis in chosen}, None
    if kind == "group":
        split = [shape[0], groups, shape[1] // groups] + shape[2:]
        return split, set(range(2, ndim + 1)), {1, 2}
    if kind == "instance":
        return shape, set(range(2, ndim)), {1}
    return shape, set(range(ndim)) - {1}, {1}


def broadcast(kind, shape, affine):
    """A of a weight or bias that is aligned with x at its last axis."""
    ndim = len(shape)
    aligned = [1] * (ndim - len(affine)) + list(affine)
    matching = {axis for axis in range(ndim) if aligned[axis] == shape[axis] and shape[axis] != 1}
    if kind != "group":
        return matching
    # seen as [N, G, C/G, *]: what has C has both of its halves
    return {axis + (axis > 1) for axis in matching} | ({2} if 1 in matching else set())


class Entries:
    """The entries of a weight or bias: for each the elements it is applied to, outer index by outer index."""

    def __init__(self, shape, r, a):
        rest = set(range(len(shape))) - a
        self.count = product(shape[axis] for axis in a)
        inner, outer = numbering(shape, rest & r), numbering(shape, rest - r)
        self.inner = len(inner)
        self.outers = [[[entry + o + i for i in inner] for o in outer] for entry in numbering(shape, a)]

    def spread(self, values):
        """One value per entry to one per element."""
        elements = {}
        for value, entry in zip(values, self.outers):
            for indices in entry:
                for index in indices:
                    elements[index] = value
        return elements
