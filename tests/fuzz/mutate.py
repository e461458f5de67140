"""Deterministic mutations: of bytes, of text, and of what lies behind headers and archives."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fuzz.seeds import JSON_VALUES
from rankspace.learners.solvers.checkpoint import SEALED, _seal

Random = np.random.Generator
Mutator = Callable[[bytes, Random], bytes]

TOKENS = (
    *(b"", b"0", b"-1", b"nan", b"inf", b"-inf", b"1e999", b"1e-999", b"9" * 30, b"0x1"),
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b"\t", b" ", b"#", b":", b'"', b","),
    *(b"2147483648", b"9223372036854775808", b"\xc2\xb2", b"'", b"{", b"[" * 2000, b"qid:"),
)  # fmt: skip


def mutated(
    seeds: Sequence[bytes], mutators: Sequence[Mutator], random: Random
) -> bytes:
    """A seed after a few mutations, mostly one, as more are seldom read beyond the first."""
    content = seeds[random.integers(len(seeds))]
    for _ in range(random.geometric(0.7)):
        mutate = mutators[random.integers(len(mutators))]
        content = mutate(content, random)
    return content


# ---------------------------------------------------------------------- bytes


def flip_bits(content: bytes, random: Random) -> bytes:
    """Change a few bits, mostly one."""
    changed = bytearray(content)
    for _ in range(random.geometric(0.7)):
        if changed:
            changed[random.integers(len(changed))] ^= 1 << random.integers(8)
    return bytes(changed)


def overwrite(content: bytes, random: Random) -> bytes:
    """Replace up to eight bytes by an extreme number."""
    width = int(random.choice([1, 2, 4, 8]))
    number = random.choice([0, 1, 127, 128, 255, 2**15, 2**31 - 1, 2**63 - 1])
    start = _place(content, random)
    new = int(number).to_bytes(8, "little")[:width]
    return content[:start] + new + content[start + width :]


def cut(content: bytes, random: Random) -> bytes:
    """Remove a part, or all after it."""
    start, end = sorted(_place(content, random) for _ in range(2))
    if random.random() < 0.3:
        return content[:start]
    return content[:start] + content[end:]


def repeat(content: bytes, random: Random) -> bytes:
    """Repeat a part."""
    start, end = sorted(_place(content, random) for _ in range(2))
    return content[:end] + content[start:end] + content[end:]


def _place(content: bytes, random: Random) -> int:
    return int(random.integers(len(content) + 1))


BYTES: tuple[Mutator, ...] = (flip_bits, overwrite, cut, repeat)


# ---------------------------------------------------------------------- text


def insert_token(content: bytes, random: Random) -> bytes:
    """Insert what parsers stumble over."""
    start = _place(content, random)
    return content[:start] + TOKENS[random.integers(len(TOKENS))] + content[start:]


def replace_field(content: bytes, random: Random) -> bytes:
    """Replace one field of a line."""
    fields = content.split(b" ")
    fields[random.integers(len(fields))] = TOKENS[random.integers(len(TOKENS))]
    return b" ".join(fields)


def shuffle_lines(content: bytes, random: Random) -> bytes:
    """Lines in another order, some of them more than once."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    return b"".join(lines[i] for i in random.integers(len(lines), size=len(lines) + 1))


TEXT: tuple[Mutator, ...] = (insert_token, replace_field, shuffle_lines, flip_bits, cut)


# ---------------------------------------------------------------------- behind headers


def change_safetensors(content: bytes, random: Random) -> bytes:
    """A header that is JSON still, with one value changed, and its right length before it."""
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        _change_value(header, random)
        text = json.dumps(header).encode()
    except (ValueError, RecursionError):
        return flip_bits(content, random)
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def change_numbers(content: bytes, random: Random) -> bytes:
    """Arrays of a safetensors file changed behind a whole header."""
    start = 8 + int.from_bytes(content[:8], "little")
    mutate = (flip_bits, overwrite)[random.integers(2)]
    return content[:start] + mutate(content[start:], random)


def change_checkpoint(content: bytes, random: Random) -> bytes:
    """A checkpoint changed behind its checksum, which is made right again."""
    mutate = (change_safetensors, change_numbers)[random.integers(2)]
    changed = mutate(content, random)
    return _seal(changed) if SEALED in changed else changed


def _change_value(tree: Any, random: Random) -> None:
    """Change or remove a value somewhere in nested mappings and lists, also those kept as text."""
    if not isinstance(tree, dict | list) or not tree:
        return
    key = (list(tree) if isinstance(tree, dict) else range(len(tree)))[
        random.integers(len(tree))
    ]
    value = tree[key]
    if isinstance(value, str) and value.startswith(("{", "[")):
        inner = json.loads(value)
        _change_value(inner, random)
        tree[key] = json.dumps(inner)
    elif isinstance(value, dict | list) and random.random() < 0.9:
        _change_value(value, random)
    elif random.random() < 0.1:
        del tree[key]
    else:
        tree[key] = JSON_VALUES[random.integers(len(JSON_VALUES))]


def change_npy_header(content: bytes, random: Random) -> bytes:
    """A .npy file with another token in its header."""
    end = content.find(b"\n") + 1
    header = content[10:end]
    changed = (insert_token, replace_field, flip_bits)[random.integers(3)](
        header, random
    )
    size = min(len(changed), 2**16 - 1).to_bytes(2, "little")
    return content[:8] + size + changed + content[end:]


def change_member(content: bytes, random: Random) -> bytes:
    """A zip archive with right checksums, around a member that is mutated."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        # Damaged before.
        return flip_bits(content, random)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, member in members.items():
            mutate = (change_npy_header, flip_bits, overwrite, cut)[random.integers(4)]
            archive.writestr(name, mutate(member, random))
    return stream.getvalue()


def change_gzipped(content: bytes, random: Random) -> bytes:
    """A whole gzip file around mutated text, or the same around other bytes."""
    try:
        text = gzip.decompress(content)
    except Exception:
        # No gzip, or damaged before.
        return insert_token(content, random)
    return gzip.compress(insert_token(text, random), mtime=0)
