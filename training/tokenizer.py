"""The tokenizer of compass-tiny: byte-level BPE, so that any text can be typed, in which what the loop always says is one token.

A fixed paragraph of a prompt, a phrase of a sentence and a field's name in a reply are whole entries of the vocabulary
(`ignore_merges`): a prompt of 600 words of rules costs a small model a handful of tokens. Everything else is words and bytes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from compass_edge.engines.tokenizer import Tokenizer as EngineTokenizer
from compass_edge.export.robometer import TOKENS as ROBOMETER_TOKENS
from compass_edge.models import Question
from compass_edge.prms import robometer

SPECIAL = (
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    *ROBOMETER_TOKENS,
)
_PHRASES = (
    " and put it back where it was", " once and release it", " with the closed gripper", " slot of the black rack", " slot of the brown rack",
    " up and down again", " down and up again", " of the colour that the lamp showed", " block that the lamp showed", "Wait until the lamp",
    " table in front of the", " back of the table,", " front of the table", " under it", "; hand:", " over it", " that holds the", " that hides the",
    ", seen by", "- when step", " was completed:", " tube with the", "tube with the",
)  # fmt: skip
_GLUE = r'(?:, |\[)?(?:\{|, )?"[a-z_]+": (?:"|\[)?'
_LONGEST = 200  # characters: the trie of constrained decoding has no room for longer tokens
_OFTEN = 25  # occurrences that make a word an entry of its own
_WORD = r" ?[A-Za-z]+(?:_[a-z]+)*| ?[0-9]| ?[^\sA-Za-z0-9]|\s"
TEMPLATE = (
    "{%- for message in messages -%}<|im_start|>{{ message.role + '\\n' }}"
    "{%- if message.content is string -%}{{ message.content }}{%- else -%}"
    "{%- for item in message.content -%}"
    "{%- if item.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ item.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}<|im_end|>\n"
    "{% endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{% endif -%}"
)


def fixed_texts(questions: Sequence[Question]) -> list[str]:
    """What the prompts of these questions have in common: whole lines that many of them share."""
    texts = ["".join(part if isinstance(part, str) else "\0" for part in question.parts) for question in questions]
    counts: dict[str, int] = {}
    for text in texts:
        for line in set(re.findall(r"[^\n\0]*\n", text)):
            counts[line] = counts.get(line, 0) + 1
    shared = {
        line
        for line, count in counts.items()
        if count >= max(len(texts) // 40, 3) and len(line) > 1 and '"\n' not in line[-2:]
    }
    before, after = robometer._PROMPT.split("{task}")
    pieces = {piece for line in {*shared, before, after} for piece in _pieces(line)}
    return sorted({*pieces, "user\n", "assistant\n"}, key=len, reverse=True)


def _pieces(line: str) -> list[str]:
    """A line, cut between words where it is longer than a token may be."""
    if len(line) <= _LONGEST:
        return [line]
    cut = line.rindex(" ", 0, _LONGEST)
    return [line[:cut], *_pieces(line[cut:])]


def build(
    questions: Sequence[Question], replies: Sequence[str], sentences: Iterable[str], size: int = 640
) -> Tokenizer:
    literals = fixed_texts(questions)
    fields = sorted({found for reply in replies for found in re.findall(_GLUE, reply)}, key=len, reverse=True)
    pattern = "|".join(
        [*map(re.escape, literals), *map(re.escape, sorted(_PHRASES, key=len, reverse=True)), _GLUE, _WORD]
    )
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [*sentences, *(re.sub(_GLUE, "\n", reply) for reply in replies)]
    corpus += [
        re.sub("|".join(map(re.escape, literals)), "\n", "".join(part for part in one.parts if isinstance(part, str)))
        for one in questions
    ]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=8,
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    described = json.loads(tokenizer.to_str())
    vocabulary: dict[str, int] = described["model"]["vocab"]
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    counts = Counter(piece for text in corpus for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    for piece, count in sorted(counts.items()):
        if count >= _OFTEN:
            vocabulary.setdefault(piece, len(vocabulary))
    for text in [*_PHRASES, *fields, *literals]:
        entry = spell.pre_tokenize_str(text)[0][0]
        vocabulary.setdefault(entry, len(vocabulary))
    described["model"]["ignore_merges"] = True
    made = Tokenizer.from_str(json.dumps(described))
    made.add_special_tokens(list(SPECIAL))
    return made


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """With what a checkpoint has beside it: the chat template, and which token ends a reply."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|im_end|>", "model_max_length": 8192}, indent=2)
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def ids_of(tokenizer: EngineTokenizer) -> dict[str, int]:
    names = {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>", "vision_start_token_id": "<|vision_start|>",
             "vision_end_token_id": "<|vision_end|>", "eos_token_id": "<|im_end|>"}  # fmt: skip
    return {name: tokenizer.id_of(token) for name, token in names.items()}
