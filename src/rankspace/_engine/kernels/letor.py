"""Parser for LETOR (svmlight) text: lines, query ids, feature indices and decimal numbers.

Text is a C-contiguous uint8 array that ends in a newline, so that no loop over it needs a bound.
"""

import numpy as np

from ..compiled import kernel

# Status of a number or a block. The caller words the errors.
FINE, HARD, BAD_NUMBER, NO_QID, BAD_QID, BAD_INDEX, UNORDERED, TOO_WIDE, GARBAGE = (
    range(9)
)

NEWLINE, TAB, RETURN, SPACE, HASH = 10, 9, 13, 32, 35
PLUS, MINUS, POINT, COLON, LETTER_E = 43, 45, 46, 58, 101
ZERO, NINE = 48, 57

# 10**22 is the largest power of ten that is a float64.
POWERS = 10.0 ** np.arange(23)
SPLITTER = 2.0**27 + 1.0
MAX_DIGITS = 18


@kernel
def halves(x):
    """Split a float64 into two of 26 bits each, whose products are exact."""
    scaled = SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


@kernel
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
    # This is quotient * power - product, exactly.
    error = ((a * c - product) + a * d + b * c) + b * d
    gap = high - product
    correction = ((gap - error) + low) / power
    # Three roundings of at most 2**-53 each went into the correction; allow for sixteen.
    slack = (abs(gap) + abs(error) + low) / power * 2.0**-49
    value = quotient + (correction - slack)
    return value, value == quotient + (correction + slack)


@kernel
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


@kernel
def is_digit(byte):
    """Whether a byte is an ASCII digit."""
    return ZERO <= byte <= NINE


@kernel
def read_sign(text, at):
    """Read an optional sign: whether it is a minus, and the next position."""
    negative = text[at] == MINUS
    if negative or text[at] == PLUS:
        at += 1
    return negative, at


@kernel
def read_exponent(text, at):
    """Read the signed digits after an "e": the exponent, the next position, if there are any."""
    negative, at = read_sign(text, at)
    start = at
    exponent = 0
    while is_digit(text[at]):
        if exponent < 100_000:
            exponent = exponent * 10 + (text[at] - ZERO)
        at += 1
    if negative:
        exponent = -exponent
    return exponent, at, at > start


@kernel
def read_digits(text, at, mantissa, n_significant):
    """Append digits to a mantissa: the mantissa, its significant digits, the next position.

    Digits beyond MAX_DIGITS are counted, not stored.
    """
    while is_digit(text[at]):
        if n_significant < MAX_DIGITS:
            mantissa = mantissa * 10 + (text[at] - ZERO)
        n_significant += mantissa > 0
        at += 1
    return mantissa, n_significant, at


@kernel
def read_number(text, at):
    """Read a decimal number: its value, the next position, and FINE, HARD or BAD_NUMBER.

    HARD numbers are well-formed, but this kernel cannot be sure of their nearest float64.
    """
    negative, start = read_sign(text, at)
    mantissa, n_significant, at = read_digits(text, start, 0, 0)
    n_digits = at - start
    exponent = 0
    if text[at] == POINT:
        start = at + 1
        mantissa, n_significant, at = read_digits(text, start, mantissa, n_significant)
        exponent = start - at
        n_digits += at - start
    if n_digits == 0:
        return 0.0, at, BAD_NUMBER
    if text[at] | 32 == LETTER_E:
        shift, at, has_digits = read_exponent(text, at + 1)
        if not has_digits:
            return 0.0, at, BAD_NUMBER
        exponent += shift
    if n_significant > MAX_DIGITS:
        return 0.0, at, HARD
    value, certain = decimal(mantissa, exponent)
    if not certain:
        return value, at, HARD
    if negative:
        value = -value
    return value, at, FINE


@kernel
def read_whole(text, at):
    """Read up to 18 digits: the number, or -1, and the next position."""
    start = at
    number = 0
    while is_digit(text[at]) and at - start < MAX_DIGITS:
        number = number * 10 + (text[at] - ZERO)
        at += 1
    if at == start or is_digit(text[at]):
        return -1, at
    return number, at


@kernel
def skip_blanks(text, at):
    """Position of the next byte that is not a space, tab or carriage return."""
    while text[at] == SPACE or text[at] == TAB or text[at] == RETURN:
        at += 1
    return at


@kernel
def end_of_line(text, at):
    """Position of the next newline."""
    while text[at] != NEWLINE:
        at += 1
    return at


@kernel
def ends_word(byte):
    """Whether a byte may follow a number."""
    return byte in (SPACE, NEWLINE, TAB, RETURN, HASH)


@kernel
def note_hard(hard, n_hard, row, column, start, end):
    """Store the position of a HARD number, if there is room."""
    if n_hard < hard.shape[0]:
        hard[n_hard, 0] = row
        hard[n_hard, 1] = column
        hard[n_hard, 2] = start
        hard[n_hard, 3] = end


@kernel
def read_qid(text, at):
    """Read "qid:7": the number, the next position, and FINE, NO_QID or BAD_QID."""
    # The bytes of "qid:". A line that ends too soon differs before its newline is passed.
    for i, byte in enumerate((113, 105, 100, COLON)):
        if text[at + i] != byte:
            return 0, at, NO_QID
    number, after = read_whole(text, at + 4)
    if number < 0 or not ends_word(text[after]):
        return 0, at, BAD_QID
    return number, after, FINE


@kernel
def read_features(text, at, row, limit, X, hard, n_hard):
    """Read "index:value" pairs up to a comment or the end of the line into row `row` of X.

    Returns the status, the position (of the error, if there is one), and n_hard.
    """
    index = 0
    while True:
        at = skip_blanks(text, at)
        if text[at] == NEWLINE or text[at] == HASH:
            return FINE, at, n_hard
        last = index
        index, after = read_whole(text, at)
        if index < 0 or text[after] != COLON:
            return GARBAGE, at, n_hard
        if index <= last:
            status = UNORDERED
            if index == 0:
                status = BAD_INDEX
            return status, at, n_hard
        if index > limit:
            return TOO_WIDE, at, n_hard
        value, end, status = read_number(text, after + 1)
        if status == BAD_NUMBER or not ends_word(text[end]):
            return BAD_NUMBER, at, n_hard
        if status == HARD:
            note_hard(hard, n_hard, row, index - 1, after + 1, end)
            n_hard += 1
        elif index <= X.shape[1]:
            # Beyond are only lines that do not ascend, which end in an error.
            X[row, index - 1] = value
        at = end


@kernel
def read_head(text, at, row, with_qid, grades, qid, hard, n_hard):
    """Read grade and query of a line: the status, the position (of the error, if any), n_hard."""
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


@kernel
def last_index(text, start, end, limit):
    """The number before the last colon of text[start:end], at most `limit`; 0 for none.

    Indices ascend, so that it is the largest of a line; `read_block` checks this.
    """
    at = end - 1
    while at >= start and text[at] != COLON:
        at -= 1
    index, power = 0, 1
    at -= 1
    while at >= start and ZERO <= text[at] <= NINE:
        if text[at] > ZERO and power > limit:
            return limit
        index += power * (text[at] - ZERO)
        power = min(10 * power, limit + 1)
        at -= 1
    return min(index, limit)


@kernel
def survey_block(text, ends, limit):
    """Count the rows of a block, and find its largest index, before room is made for them.

    Parameters
    ----------
    text : uint8 array that ends in a newline
    ends : int64 array, positions of all newlines and "#"
    limit : int, the largest index allowed

    Returns
    -------
    n_rows, width, widest
        `width` is the largest index, at most `limit`; `widest` is the number of its line.
    """
    n_rows = width = widest = start = 0
    n_lines = 1
    in_comment = False
    for end in ends:
        if not in_comment:
            n_rows += skip_blanks(text, start) < end
            index = last_index(text, start, end, limit)
            if index > width:
                width, widest = index, n_lines
        in_comment = text[end] == HASH
        if not in_comment:
            n_lines += 1
            start = end + 1
    return n_rows, width, widest


@kernel
def read_block(text, with_qid, limit, X, grades, qid, comments, hard):
    """Parse a block of whole lines.

    Parameters
    ----------
    text : uint8 array that ends in a newline
    with_qid : bool, whether each line names its query
    limit : int, the largest index allowed
    X : float array of zeros, with as many rows and columns as `survey_block` says, or more
    grades, qid : float64 and int64 arrays, as many entries as X has rows
    comments : int64 array of shape (n_rows, 2), gets start and end of the text after "#"
    hard : int64 array of shape (capacity, 4), gets row, column (-1: the grade), start and end

    Returns
    -------
    status, n_lines, at, n_hard
        `at` is the position of the error in line number `n_lines`. Parse again with more room if
        `n_hard` is beyond `hard`.
    """
    at = row = n_lines = n_hard = 0
    while at < text.size:
        n_lines += 1
        at = skip_blanks(text, at)
        if text[at] != NEWLINE and text[at] != HASH:
            status, at, n_hard = read_head(
                text, at, row, with_qid, grades, qid, hard, n_hard
            )
            if status == FINE:
                status, at, n_hard = read_features(
                    text, at, row, limit, X, hard, n_hard
                )
            if status != FINE:
                return status, n_lines, at, n_hard
            comments[row, 0] = at + (text[at] == HASH)
            at = end_of_line(text, at)
            comments[row, 1] = at
            row += 1
        at = end_of_line(text, at) + 1
    return FINE, n_lines, at, n_hard
