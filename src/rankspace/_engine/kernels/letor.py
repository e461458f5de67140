"""Numbers and lines of LETOR text, out of bytes.

Text is uint8, C-contiguous and ends in a newline, so that no loop over it needs a bound.
"""

import numpy as np
from numba import njit

# What a number or a block turned out to be. The caller words the errors.
FINE, HARD, BAD_NUMBER, NO_QID, BAD_QID, BAD_INDEX, UNORDERED, TOO_WIDE, GARBAGE = (
    range(9)
)

NEWLINE, TAB, RETURN, SPACE, HASH = 10, 9, 13, 32, 35
PLUS, MINUS, POINT, COLON, LETTER_E = 43, 45, 46, 58, 101

# 10**22 is the largest power of ten that is a float64.
POWERS = 10.0 ** np.arange(23)
SPLITTER = 2.0**27 + 1.0
MAX_DIGITS = 18


@njit(cache=True, nogil=True)
def halves(x):
    """Split a float64 into two of 26 bits each, whose products are exact."""
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


@njit(cache=True, nogil=True)
def divide_wide(mantissa, power):
    """Divide an int64 of more than 53 bits by an exact power of ten.

    Returns the quotient and whether it is certain to be the nearest float64.
    """
    low_bits = mantissa & 2047
    high, low = float(mantissa - low_bits), float(low_bits)
    quotient = (high + low) / power
    product = quotient * power
    a, b = halves(quotient)
    c, d = halves(power)
    error = (
        (a * c - product) + a * d + b * c
    ) + b * d  # quotient * power - product, exactly
    gap = high - product
    correction = ((gap - error) + low) / power
    # Three roundings of at most 2**-53 each went into the correction; allow for sixteen.
    slack = (abs(gap) + abs(error) + low) / power * 2.0**-49
    value = quotient + (correction - slack)
    return value, value == quotient + (correction + slack)


@njit(cache=True, nogil=True)
def decimal(mantissa, exponent):
    """Nearest float64 of mantissa * 10**exponent, and whether it is certain."""
    if mantissa == 0:
        return 0.0, True
    if mantissa < 1 << 53:
        # One operation on two exact numbers is rounded once.
        if 0 <= exponent <= 22:
            return mantissa * POWERS[exponent], True
        if -22 <= exponent < 0:
            return mantissa / POWERS[-exponent], True
    elif -22 <= exponent <= 0:
        return divide_wide(mantissa, POWERS[-exponent])
    return 0.0, False


@njit(cache=True, nogil=True)
def read_exponent(text, at):
    """Read the signed digits after an "e": the exponent, the next position, if there are any."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    start = at
    exponent = 0
    while 48 <= text[at] <= 57:
        if exponent < 100_000:
            exponent = exponent * 10 + (text[at] - 48)
        at += 1
    return -exponent if negative else exponent, at, at > start


@njit(cache=True, nogil=True)
def read_number(text, at):
    """Read a decimal number: its value, the next position, and FINE, HARD or BAD_NUMBER.

    HARD numbers are well-formed, but their nearest float64 takes more than this.
    """
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    mantissa = 0
    n_significant = 0
    start = at
    while 48 <= text[at] <= 57:
        if n_significant < MAX_DIGITS:
            mantissa = mantissa * 10 + (text[at] - 48)
        n_significant += mantissa > 0
        at += 1
    n_digits = at - start
    exponent = 0
    if text[at] == POINT:
        at += 1
        start = at
        while 48 <= text[at] <= 57:
            if n_significant < MAX_DIGITS:
                mantissa = mantissa * 10 + (text[at] - 48)
            n_significant += mantissa > 0
            at += 1
        exponent = start - at
        n_digits += at - start
    if n_digits == 0:
        return 0.0, at, BAD_NUMBER
    if text[at] | 32 == LETTER_E:
        shift, at, found = read_exponent(text, at + 1)
        if not found:
            return 0.0, at, BAD_NUMBER
        exponent += shift
    if n_significant > MAX_DIGITS:
        return 0.0, at, HARD
    value, certain = decimal(mantissa, exponent)
    return -value if negative else value, at, FINE if certain else HARD


@njit(cache=True, nogil=True)
def read_whole(text, at):
    """Read up to 18 digits: the number, or -1, and the next position."""
    start = at
    number = 0
    while 48 <= text[at] <= 57 and at - start < MAX_DIGITS:
        number = number * 10 + (text[at] - 48)
        at += 1
    return number if at > start and not 48 <= text[at] <= 57 else -1, at


@njit(cache=True, nogil=True)
def skip_blanks(text, at):
    """Position of the next byte that is no space, tab or carriage return."""
    while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@njit(cache=True, nogil=True)
def ends_word(byte):
    """Whether a byte may follow a number."""
    return byte in (SPACE, NEWLINE, TAB, RETURN, HASH)


@njit(cache=True, nogil=True)
def note_hard(hard, n_hard, row, column, start, end):
    """Remember where a HARD number stands, while there is room."""
    if n_hard < hard.shape[0]:
        hard[n_hard, 0] = row
        hard[n_hard, 1] = column
        hard[n_hard, 2] = start
        hard[n_hard, 3] = end


@njit(cache=True, nogil=True)
def read_qid(text, at):
    """Read "qid:7": the number, the next position, and FINE, NO_QID or BAD_QID."""
    if not (
        text[at] == 113
        and text[at + 1] == 105
        and text[at + 2] == 100
        and text[at + 3] == COLON
    ):
        return 0, at, NO_QID
    number, after = read_whole(text, at + 4)
    fine = number >= 0 and ends_word(text[after])
    return number, after if fine else at, FINE if fine else BAD_QID


@njit(cache=True, nogil=True)
def read_features(text, at, row, limit, X, hard, n_hard):
    """Read "index:value" pairs up to a comment or the end of the line into row `row` of X.

    Returns the status, the position (of the fault, if there is one), the largest index, and
    n_hard. Indices beyond the width of X are counted, not stored.
    """
    index = 0
    while True:
        at = skip_blanks(text, at)
        if text[at] == NEWLINE or text[at] == HASH:
            return FINE, at, index, n_hard
        last = index
        index, after = read_whole(text, at)
        if index < 0 or text[after] != COLON:
            return GARBAGE, at, last, n_hard
        if index <= last:
            return BAD_INDEX if index == 0 else UNORDERED, at, last, n_hard
        if index > limit:
            return TOO_WIDE, at, last, n_hard
        value, end, status = read_number(text, after + 1)
        if status == BAD_NUMBER or not ends_word(text[end]):
            return BAD_NUMBER, at, last, n_hard
        if status == HARD:
            note_hard(hard, n_hard, row, index - 1, after + 1, end)
            n_hard += 1
        elif index <= X.shape[1]:
            X[row, index - 1] = value
        at = end


@njit(cache=True, nogil=True)
def read_head(text, at, row, with_qid, grades, qid, hard, n_hard):
    """Read grade and query of a line: the status, the next position (or the fault's), n_hard."""
    value, after, status = read_number(text, at)
    if status == BAD_NUMBER or not ends_word(text[after]):
        return BAD_NUMBER, at, n_hard
    if status == HARD:
        note_hard(hard, n_hard, row, -1, at, after)
        n_hard += 1
    grades[row] = value
    if not with_qid:
        return FINE, after, n_hard
    qid[row], at, status = read_qid(text, skip_blanks(text, after))
    return status, at, n_hard


@njit(cache=True, nogil=True)
def read_block(text, with_qid, limit, X, grades, qid, comments, hard):
    """Parse whole lines.

    Parameters
    ----------
    text : uint8 array that ends in a newline
    with_qid : bool, whether each line names its query
    limit : int, the largest index allowed
    X : float array of zeros, at least as many rows as lines
    grades, qid : float64 and int64 arrays, as many entries as X has rows
    comments : int64 array of shape (n_rows, 2), gets start and end of the text after "#"
    hard : int64 array of shape (capacity, 4), gets row, column (-1: the grade), start and end

    Returns
    -------
    status, n_rows, n_lines, at, width, n_hard
        `at` is where the fault stands in line number `n_lines`. Parse again with more room if
        `width` is beyond X or `n_hard` beyond `hard`.
    """
    at = row = n_lines = width = n_hard = 0
    while at < text.size:
        n_lines += 1
        at = skip_blanks(text, at)
        if text[at] != NEWLINE and text[at] != HASH:
            status, at, n_hard = read_head(
                text, at, row, with_qid, grades, qid, hard, n_hard
            )
            if status != FINE:
                return status, row, n_lines, at, width, n_hard
            status, at, index, n_hard = read_features(
                text, at, row, limit, X, hard, n_hard
            )
            if status != FINE:
                return status, row, n_lines, at, width, n_hard
            width = max(width, index)
            comments[row, 0] = at + (text[at] == HASH)
            while text[at] != NEWLINE:
                at += 1
            comments[row, 1] = at
            row += 1
        while text[at] != NEWLINE:
            at += 1
        at += 1
    return FINE, row, n_lines, at, width, n_hard
