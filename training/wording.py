"""Wordings: the ways in which a person may ask for what a task does, and for other things that its table allows.

A wording is a text and the steps of the script that it asks for, by number. The benchmark's own text is always among them. What
asks for less or more than the film shows serves the Orienter, which sees the first frame alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from compass_edge.sim.script import Script

Dice = np.random.Generator
Picks = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    text: str
    picks: Picks  # steps of the script, in the order in which they are asked for


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


_PATTERNS = {
    "S1": r"Move the (?P<p>\w+) block onto the white mat, press the (?P<c>\w+) button",
    "S2": r"Move each (?P<p>\w+) block onto the (?P<g>\w+) mat",
    "S3": r"Cover the three blocks with the (?P<l>\w+) covers .* order (?P<o>.+) of the blocks",
    "S4": r"The lamp",
    "S5": r".*press the (?P<c>\w+) button",
    "S6": r"Swap the two (?P<p>\w+) blocks",
    "S7": r"Put the (?P<a>\w+) block into one box and the (?P<b>\w+) block into the other, then the (?P<c>\w+) block",
    "S8": r".*place the (?P<m>\w+) block in front of the cover that hides the (?P<w>\w+) block",
    "Q1": r"Press the buttons in the order (?P<o>.+)\.",
    "Q2": r".*in the order (?P<o>.+), from",
    "Q3": r"Move the tube with the (?P<c>\w+) cap",
    "Q4": r".*in the order (?P<o>.+)\.",
    "Q5": r"Swap the (?P<a>\w+) block and the (?P<b>\w+) block .*press the (?P<c>\w+) button;",
    "Q6": r"Stack the (?P<m>\w+) block on the (?P<b>\w+) block and the (?P<t>\w+) block",
    "Q7": r"Turn the lamp on with the (?P<c>\w+) button, carry the (?P<p>\w+) block to the (?P<t>\w+) mat",
    "Q8": r"The lamp",
    "R1": r"Press the (?P<c>\w+) button",
    "R2": r"Press",
    "R3": r"Carry the (?P<p>\w+) block from the (?P<h>\w+) mat to the (?P<t>\w+) mat",
    "R4": r"Lift the (?P<p>\w+) block and put it back on the (?P<g>\w+) mat",
    "R5": r"Lift the (?P<p>\w+) block and put it back on the (?P<g>\w+) mat",
    "R6": r"Take the tube with the (?P<c>\w+) cap",
    "R7": r"Lift the (?P<a>\w+) block and the (?P<b>\w+) block",
    "R8": r"Lift the (?P<l>\w+) cover .* onto the (?P<g>\w+) mat",
}
# The same in other words.
_SAME: dict[str, tuple[str, ...]] = {
    "S1": ("Put the {p} block on the white mat, press the {c} button, and return the block to the mat where it was.",
           "Carry the {p} block onto the white mat, then press the {c} button once, then bring the block back to its own mat."),
    "S2": ("From left to right, carry each {p} block to the {g} mat and back to where it was.",
           "One after the other, from left to right, move each {p} block onto the {g} mat and back to its place."),
    "S3": ("Put the {l} covers over the three blocks from left to right, then lift and replace each cover in the order {o} of the blocks under them.",
           "From left to right cover the blocks with the {l} covers. Then look under the covers in the order {o}, putting each back."),
    "S4": ("Watch the lamp: press the button of the colour it shows, take the block to the mat of that colour, then bring it back to the white mat.",
           "The lamp shows a colour. Press the button of that colour, move the block to the mat of that colour and back to the white mat."),
    "S5": ("Press the {c} button as many times as the lamp blinks.", "The lamp blinks. Press the {c} button as often as it blinked."),
    "S6": ("Let the two {p} blocks change places by way of the empty middle mat, the left block first, then change them back the same way.",
           "Swap the two {p} blocks over the empty middle mat, starting with the left block, and swap them back in the same way."),
    "S7": ("The {a} block goes into one box and the {b} block into the other; then put the {c} block into the box with the {a} block.",
           "Put the {a} block into a box, the {b} block into the other box, and the {c} block into the box that holds the {a} block."),
    "S8": ("Lift the three covers from left to right and back to the left one, putting each back, then put the {m} block in front of the cover that hides the {w} block.",
           "Look under the covers from left to right and back again, then place the {m} block in front of the cover with the {w} block under it."),
    "Q1": ("Press {o}, in this order.", "Press the buttons one after the other: {o}."),
    "Q2": ("Put the three tubes into the black rack from left to right in the order {o}.", "In the order {o}, insert the tubes into the black rack, from the left slot to the right slot."),
    "Q3": ("Take the tube with the {c} cap from the left slot to the middle slot, to the right slot, to the middle slot and back to the left slot.",
           "Move the tube with the {c} cap through the slots: left, middle, right, middle, left."),
    "Q4": ("Tap the mats in this order: {o}.", "Touch the four mats one after the other, in the order {o}."),
    "Q5": ("Let the {a} block and the {b} block change places over the empty mat, the {a} block first, then press the {c} button; change them back the same way and press it again.",
           "Swap the {a} and the {b} block using the empty mat, the {a} one first, press the {c} button, swap them back in the same way and press the button again."),
    "Q6": ("Put the {m} block on the {b} block and the {t} block on top of it, then take them down again to the mats they came from.",
           "Build a tower of the {b} block, the {m} block and the {t} block, then unstack it back onto the mats."),
    "Q7": ("Press the {c} button to turn the lamp on, move the {p} block to the {t} mat, turn the lamp off, bring the block back, turn the lamp on.",
           "Turn on the lamp with the {c} button, take the {p} block to the {t} mat, turn off the lamp, return the block, and turn on the lamp again."),
    "Q8": ("Watch the three colours of the lamp, then lift the blocks of these colours in that order and put each back.",
           "Lift the blocks in the order of the three colours that the lamp shows, putting each back."),
    "R8": ("Lift the {l} cover and put it back, 4 times, then put it on the {g} mat.", "Raise the {l} cover and put it down again 4 times, then move it to the {g} mat."),
}  # fmt: skip
# Something else: a text, and which steps it asks for.
_OTHER: dict[str, tuple[tuple[str, Picks], ...]] = {
    "S1": (("Move the {p} block onto the white mat.", (0,)), ("Press the {c} button once.", (1,)),
           ("Move the {p} block onto the white mat and back to the mat it came from.", (0, 2)),
           ("Press the {c} button, then move the {p} block onto the white mat.", (1, 0)),
           ("Move the {p} block onto the white mat and press the {c} button.", (0, 1)), ("Press the {c} button twice.", (1, 1))),
    "S2": (("Move the leftmost {p} block onto the {g} mat and back to its original position.", (0, 1)),
           ("Move the middle {p} block onto the {g} mat and back to its original position.", (2, 3)),
           ("Move the rightmost {p} block onto the {g} mat and back to its original position.", (4, 5)),
           ("Move the leftmost {p} block onto the {g} mat.", (0,)), ("Move the middle {p} block onto the {g} mat.", (2,)),
           ("Move each {p} block onto the {g} mat and back, one at a time, from right to left.", (4, 5, 2, 3, 0, 1)),
           ("Move the leftmost and then the middle {p} block onto the {g} mat and back.", (0, 1, 2, 3))),
    "S3": (("Cover the three blocks with the {l} covers from left to right.", (0, 1, 2)),),
    "S6": (("Swap the two {p} blocks using the empty middle mat, moving the left block first.", (0, 1, 2)),
           ("Move the left {p} block onto the middle mat.", (0,))),
    "S8": (("Look under the three covers from left to right, putting each back.", (0, 1, 2)),
           ("Look under the three covers from left to right and back to the left one, putting each back.", (0, 1, 2, 3, 4)),
           ("Lift the leftmost cover and put it back.", (0,)), ("Lift the middle cover twice, putting it back each time.", (1, 3))),
    "Q3": (("Move the tube with the {c} cap from the left slot to the middle slot.", (0,)),
           ("Move the tube with the {c} cap from the left slot to the middle and to the right slot.", (0, 1)),
           ("Move the tube with the {c} cap from the left slot to the middle, to the right, and to the middle again.", (0, 1, 2))),
    "Q5": (("Swap the {a} block and the {b} block using the empty mat, starting with the {a} block.", (0, 1, 2)),
           ("Swap the {a} block and the {b} block using the empty mat, starting with the {a} block, and press the {c} button.", (0, 1, 2, 3)),
           ("Press the {c} button once.", (3,)), ("Move the {a} block onto the empty mat.", (0,))),
    "Q6": (("Stack the {m} block on the {b} block and the {t} block on top.", (0, 1)), ("Stack the {m} block on the {b} block.", (0,)),
           ("Put the {m} block on the {b} block, then the {t} block on top of it.", (0, 1)),
           ("Stack the {m} block on the {b} block, then put it back onto the mat it came from.", (0, 3))),
    "Q7": (("Turn the lamp on with the {c} button.", (0,)), ("Carry the {p} block to the {t} mat.", (1,)),
           ("Turn the lamp on with the {c} button, carry the {p} block to the {t} mat, and turn the lamp off.", (0, 1, 2)),
           ("Carry the {p} block to the {t} mat and bring it back.", (1, 3)), ("Press the {c} button 3 times.", (0, 2, 4))),
    "R8": (("Move the {l} cover onto the {g} mat.", (4,)),),
}  # fmt: skip


def wordings(script: Script, dice: Dice) -> Wording:
    """One at random: the benchmark's own, the same in other words, or something else."""
    everything = tuple(range(len(script.steps)))
    found = re.match(_PATTERNS[script.task], script.instruction)
    assert found is not None, script.instruction
    fields = found.groupdict()
    luck = dice.random()
    if luck < 0.4:
        return Wording(script.instruction, everything)
    counted = _COUNTED.get(script.task)
    if counted is not None:
        return counted(script, fields, dice)
    others = _OTHER.get(script.task, ())
    if luck < 0.7 or not others:
        same = _SAME[script.task]
        return Wording(same[dice.integers(len(same))].format(**fields), everything)
    text, picks = others[dice.integers(len(others))]
    return Wording(text.format(**fields), picks)


def _count(dice: Dice, most: int) -> int:
    return int(dice.integers(1, most + 1))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _presses(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 10)
    text = ("Press the {c} button {n}.", "Press {n} on the {c} button.", "Push the {c} button {n}.")[dice.integers(3)]
    return Wording(text.format(n=times(n), **f), (0,) * n)


def _three(_script: Script, _f: dict[str, str], dice: Dice) -> Wording:
    counts = [int(one) for one in dice.integers(1, 5, 3)]
    names, firsts = ("leftmost", "middle", "rightmost"), (0, 3, 7)
    kept = sorted(dice.permutation(3)[: dice.integers(1, 4)].tolist()) if dice.random() < 0.5 else [0, 1, 2]
    parts = [f"the {names[at]} button {times(counts[at])}" for at in kept]
    return Wording(
        "Press " + ", then ".join(parts) + ".", tuple(first for at in kept for first in [firsts[at]] * counts[at])
    )


def _shuttle(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 5)
    if dice.random() < 0.2:
        return Wording("Carry the {p} block from the {h} mat to the {t} mat.".format(**f), (0,))
    text = ("Carry the {p} block from the {h} mat to the {t} mat and back, {n}.", "Move the {p} block to the {t} mat and back to the {h} mat {n}.",
            "{N}, take the {p} block from the {h} mat to the {t} mat and back.")[dice.integers(3)]  # fmt: skip
    return Wording(text.format(n=times(n), N=times(n).capitalize(), **f), (0, 1) * n)


def _lifts(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 9)
    text = ("Lift the {p} block and put it back on the {g} mat, {n}.", "Raise the {p} block and put it down on the {g} mat again, {n}.",
            "{N}, lift the {p} block and put it back.")[dice.integers(3)]  # fmt: skip
    return Wording(text.format(n=times(n), N=times(n).capitalize(), **f), (0,) * n)


def _dips(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 7)
    text = ("Take the tube with the {c} cap out of its slot and put it back, {n}.", "Lift the tube with the {c} cap out of its slot {n}, putting it back each time.",
            "Pull the tube with the {c} cap out and put it back {n}.")[dice.integers(3)]  # fmt: skip
    return Wording(text.format(n=times(n), **f), (0,) * n)


def _turns(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 4)
    if dice.random() < 0.5:
        text = ("Lift the {a} block and the {b} block in turn, starting with the {a} one, {n} each.",
                "Lift the {a} block, then the {b} block, {n} each, in turn.")[dice.integers(2)]  # fmt: skip
        return Wording(text.format(n=times(n), **f), (0, 1) * n)
    text = "Lift the {b} block and the {a} block in turn, starting with the {b} one, {n} each."
    return Wording(text.format(n=times(n), **f), (1, 0) * n)


def _colour_order(kind: str) -> Callable[[Script, dict[str, str], Dice], Wording]:
    def made(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
        names = list(dict.fromkeys(f["o"].split(", ")))
        if kind == "buttons":
            order = [int(one) for one in dice.integers(0, len(names), int(dice.integers(1, 7)))]
        else:
            order = [int(one) for one in dice.permutation(len(names))][: int(dice.integers(1, len(names) + 1))]
        first = {name: at for at, name in reversed(list(enumerate(f["o"].split(", "))))}
        listed = _listed([names[at] for at in order])
        texts = {"buttons": ("Press the buttons in the order {o}.", *_SAME["Q1"]),
                 "taps": ("Tap the mats in the order {o}.", "Tap the four mats in the order {o}." if len(order) == 4 else "Tap {o}, in this order.", *_SAME["Q4"][:1])}[kind]  # fmt: skip
        return Wording(texts[dice.integers(len(texts))].format(o=listed), tuple(first[names[at]] for at in order))

    return made


def _cover_lifts(_script: Script, f: dict[str, str], dice: Dice) -> Wording:
    n = _count(dice, 5)
    if dice.random() < 0.3:
        return Wording(f"Lift the {f['l']} cover and put it back {times(n)}.", (0,) * n)
    text = (
        ("Lift the {l} cover and put it back {n}, then move it onto the {g} mat.", *_SAME["R8"])[dice.integers(3)]
    ).replace("4 times", "{n}")
    return Wording(text.format(n=times(n), **f), (0,) * n + (4,))


_COUNTED: dict[str, Callable[[Script, dict[str, str], Dice], Wording]] = {
    "R1": _presses, "R2": _three, "R3": _shuttle, "R4": _lifts, "R5": _lifts, "R6": _dips, "R7": _turns, "R8": _cover_lifts,
    "Q1": _colour_order("buttons"), "Q4": _colour_order("taps"),
}  # fmt: skip

_VERBS = ("Open", "Close", "Wash", "Fold", "Cut", "Peel", "Stir", "Fill", "Empty", "Clean", "Dry", "Paint", "Read", "Throw", "Catch", "Roll", "Sweep",
          "Hang", "Iron", "Sew", "Water", "Feed", "Charge", "Unlock", "Zip", "Wrap", "Pack", "Cook", "Fry", "Bake", "Pour", "Wipe", "Plug in", "Drop",
          "Grab", "Pick up", "Push", "Pull", "Slide", "Turn", "Place", "Put", "Move", "Lift", "Press", "Carry", "Take", "Insert", "Stack", "Cover")  # fmt: skip
_NOUNS = ("apple", "banana", "bottle", "bowl", "book", "bread", "brush", "bucket", "cable", "candle", "can", "carrot", "chair", "cheese", "clock", "cloth",
          "coat", "coin", "cookie", "cork", "door", "egg", "envelope", "fan", "faucet", "fish", "flower", "fork", "fridge", "glass", "glove", "hammer",
          "hat", "jar", "jacket", "kettle", "key", "keyboard", "knife", "ladle", "laptop", "leaf", "lemon", "lid", "lock", "milk", "mirror", "nail",
          "napkin", "onion", "oven", "paper", "pan", "pear", "pen", "pencil", "phone", "pillow", "plant", "plate", "pot", "potato", "printer", "radio",
          "ribbon", "rope", "sandwich", "scissors", "screw", "shelf", "shirt", "shoe", "sink", "soap", "sock", "spoon", "sponge", "stove", "suitcase",
          "teapot", "ticket", "toaster", "tomato", "toothbrush", "toy car", "trash", "tray", "umbrella", "vase", "wallet", "window", "wrench", "zip")  # fmt: skip
_PLACES = ("on the shelf", "into the sink", "into the bag", "on the plate", "under the chair", "next to the window", "into the bin", "on the stove",
           "into the pan", "on the hook", "into the basket", "on top of the fridge", "behind the door", "into the pocket")  # fmt: skip
_TAILS = ("", "", "", " twice", " three times", " from left to right", ", one at a time", " and put it back", " again")


def unrelated(dice: Dice) -> str:
    """An instruction about things that no table of the simulator has."""

    def one() -> str:
        noun, verb = _NOUNS[dice.integers(len(_NOUNS))], _VERBS[dice.integers(len(_VERBS))]
        many = (
            "the {}",
            "the {}",
            "the two {}s",
            "the three {}s",
            "each {}",
            "the red {}",
            "the blue {}",
            "the white {}",
        )[dice.integers(8)]
        where = f" {_PLACES[dice.integers(len(_PLACES))]}" if dice.random() < 0.5 else ""
        return f"{verb} {many.format(noun)}{where}"

    parts = [one() for _ in range(int(dice.integers(1, 4)))]
    text = parts[0] + "".join(
        (", ", ", then ", " and ")[dice.integers(3)] + part[0].lower() + part[1:] for part in parts[1:]
    )
    return text + _TAILS[dice.integers(len(_TAILS))] + "."
