"""The alphabet of byte-level tokenizers: each of the 256 bytes as one printable character.

Bytes that print stand for themselves; the others take the code points from 256 on, in order. tokenizer.json spells its
vocabulary in these characters.
"""

from __future__ import annotations

from typing import Final

_PRINTED = (*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1))
_OTHERS = tuple(byte for byte in range(256) if byte not in _PRINTED)

CHARACTERS: Final = {byte: chr(byte) for byte in _PRINTED} | {
    byte: chr(256 + order) for order, byte in enumerate(_OTHERS)
}
_BYTES: Final = {character: byte for byte, character in CHARACTERS.items()}


def spelled_bytes(token: str) -> bytes | None:
    """The bytes that the token stands for; None if a character is none of the alphabet."""
    values = [_BYTES.get(character) for character in token]
    return None if None in values else bytes(value for value in values if value is not None)
