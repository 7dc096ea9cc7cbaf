"""Sections 3 and 9: the tree and the sums over outer indices, for any kind of number.

`add` and `zero` say what is summed: floats here, pairs in the wide arithmetic.
"""
from operator import add as plain

BLOCK, LANES, OUTER = 256, 16, 64


def lanes_of(block, add, zero):
    lanes = [zero] * LANES
    for at in range(0, len(block), LANES):
        row = block[at:at + LANES]
        lanes[:len(row)] = map(add, lanes, row)
    return lanes


def fold(lanes, add):
    width = LANES // 2
    while width:
        lanes = [add(lanes[k], lanes[k + width]) for k in range(width)]
        width //= 2
    return lanes[0]


def combine(sums, add=plain, zero=0.0):
    """Step 4: the binary tree over blocks."""
    if not sums:
        return zero
    if len(sums) == 1:
        return sums[0]
    left = 1 << ((len(sums) - 1).bit_length() - 1)  # the largest power of two less than their number
    return add(combine(sums[:left], add, zero), combine(sums[left:], add, zero))


def tree(terms, add=plain, zero=0.0):
    blocks = range(0, len(terms), BLOCK)
    return combine([fold(lanes_of(terms[b:b + BLOCK], add, zero), add) for b in blocks], add, zero)


def outer(partials, add=plain, zero=0.0):
    """Section 9, steps 2 and 3."""
    blocks = []
    for begin in range(0, len(partials), OUTER):
        block = zero
        for partial in partials[begin:begin + OUTER]:
            block = add(block, partial)
        blocks.append(block)
    return combine(blocks, add, zero)
