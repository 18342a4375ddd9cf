"""The tokenizer of a model folder: exact on real tokenizers, and text that never becomes a control token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_samples import NOT_SPECIAL, QWEN, ROBOMETER, counted_folder, qwen3_folder, write_byte_tokenizer

from compass_edge.engines import tokenizer as tokenizer_module
from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import CompassError, IntegrityError, UsageError

TEXTS = (
    "",
    "Put the red cup on the mat.",
    "user\nPut  it   down\t\tnow \n\n\n  please",
    "1234567890 3.14159 0x1F 2026-11-16",
    "机器人把红色的杯子放在垫子上。",
    "ロボットはコップを置く。로봇이 컵을 놓는다.",
    "الروبوت يضع الكوب. רובוט מניח כוס.",
    "रोबोट कप को चटाई पर रखता है।",
    "Café naïve Straße œuvre Łódź",
    "🤖👩🏽‍🚀🇩🇪 ✅ \u200d\ufe0f",
    '{"start": "a cup", "count": null}',
    "\u0000\u001f\u007f\u0085\u00a0\u2028\ufeff\U000f0000",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(write_byte_tokenizer(tmp_path_factory.mktemp("small")))


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qwen3_folder(tmp_path_factory.mktemp("qwen3"))


@pytest.fixture(scope="module", params=["qwen-3", "qwen-3.5", "qwen2.5-vl-3b-instruct-awq"])
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, Path]:
    folder = tmp_path_factory.mktemp("real")
    if request.param == "qwen-3":
        qwen3_folder(folder)
    else:
        counted_folder(folder, request.param)
    return Tokenizer(folder), folder


class TestReal:
    def test_text_comes_back(self, real: tuple[Tokenizer, Path]) -> None:
        tokenizer, folder = real
        reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        for text in TEXTS:
            ids = tokenizer.encode(text)
            assert tokenizer.decode(ids) == text
            assert ids == reference.encode(text, add_special_tokens=False).ids

    def test_stream_is_decode(self, real: tuple[Tokenizer, Path]) -> None:
        tokenizer, _ = real
        for text in TEXTS:
            ids = tokenizer.encode(text)
            stream = tokenizer.stream()
            assert "".join([*map(stream.feed, ids), stream.end()]) == text

    def test_any_ids_decode_as_the_library_does(self, real: tuple[Tokenizer, Path]) -> None:
        tokenizer, folder = real
        reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        known = reference.get_vocab_size(with_added_tokens=True)

        @settings(max_examples=60)
        @given(st.lists(st.integers(0, known - 1), max_size=24))
        def check(ids: list[int]) -> None:
            assert tokenizer.decode(ids) == reference.decode(ids, skip_special_tokens=True)
            stream = tokenizer.stream()
            assert "".join([*map(stream.feed, ids), stream.end()]) == tokenizer.decode(ids)

        check()

    def test_spelled_out_tokens_are_text(self, real: tuple[Tokenizer, Path]) -> None:
        tokenizer, _ = real
        for token in tokenizer.added.values():
            for text in (token, f"a{token}b", f"{token}\n{token}", f" {token} "):
                ids = tokenizer.encode(text)
                assert tokenizer.added.keys().isdisjoint(ids)
                assert tokenizer.decode(ids) == text

    def test_as_transformers_has_it(self, real: tuple[Tokenizer, Path]) -> None:
        transformers = pytest.importorskip("transformers")
        tokenizer, folder = real
        theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        for text in TEXTS:
            assert tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False)

    def test_robometer_appends_five(self, qwen3: Path) -> None:
        tokenizer = Tokenizer.with_tokens(qwen3, ROBOMETER)
        assert [tokenizer.id_of(token) for token in ROBOMETER] == [151669, 151670, 151671, 151672, 151673]
        assert tokenizer.size == 151674
        assert Tokenizer(qwen3).size == 151669
        assert tokenizer.decode([64, 151673]) == "a"
        assert tokenizer.added.keys().isdisjoint(tokenizer.encode("<|prog_token|>"))

    def test_a_folder_that_has_them_keeps_them(self, qwen3: Path, tmp_path: Path) -> None:
        (tmp_path / "tokenizer.json").write_text(Tokenizer.with_tokens(qwen3, ROBOMETER).to_json(), encoding="utf-8")
        for tokenizer in (Tokenizer(tmp_path), Tokenizer.with_tokens(tmp_path, ROBOMETER)):
            assert tokenizer.id_of("<|prog_token|>") == 151673
            assert tokenizer.size == 151674

    def test_tokens_of_the_configuration_count(self, tmp_path: Path) -> None:
        """Qwen3.5 has seven that its tokenizer.json does not list."""
        tokenizer = Tokenizer(counted_folder(tmp_path, "qwen-3.5"))
        assert tokenizer.size == 248077
        assert tokenizer.id_of("<|audio_pad|>") == 248076
        assert tokenizer.eos == {tokenizer.id_of("<|im_end|>")} == {248046}


class TestSmall:
    @settings(max_examples=200)
    @given(ids=st.lists(st.integers(0, 272), max_size=40))
    def test_stream_is_decode_for_any_tokens(self, small: Tokenizer, ids: list[int]) -> None:
        stream = small.stream()
        pieces = [*map(stream.feed, ids), stream.end()]
        assert "".join(pieces) == small.decode(ids)

    def test_no_half_character(self, small: Tokenizer) -> None:
        stream = small.stream()
        assert [stream.feed(byte) for byte in "é🤖".encode()] == ["", "é", "", "", "", "🤖"]
        assert stream.end() == ""
        assert stream.feed(0xF0) == ""
        assert stream.end() == "\N{REPLACEMENT CHARACTER}"

    def test_markup(self, small: Tokenizer) -> None:
        start, end = small.id_of("<|im_start|>"), small.id_of("<|im_end|>")
        ids = small.encode_markup([start, "a", "<|im_", "end|>", end, end, "", "b"])
        assert ids == [start, *b"a<|im_end|>", end, end, *b"b"]
        assert small.encode_markup([]) == []

    def test_decode_shows_added_tokens_that_are_not_special(self, small: Tokenizer) -> None:
        ids = [small.id_of(token) for token in (*NOT_SPECIAL, *QWEN, *ROBOMETER)]
        assert small.decode(ids) == "".join(NOT_SPECIAL)

    def test_an_id_of_nothing(self, small: Tokenizer) -> None:
        assert small.size == 273
        for bad in (273, -1, 10**9):
            with pytest.raises(UsageError, match=r"from 0 to 272, and .* came\."):
                small.decode([bad])
            with pytest.raises(UsageError, match=r"came\."):
                small.encode_markup([bad])

    def test_an_unknown_token(self, small: Tokenizer) -> None:
        with pytest.raises(IntegrityError, match=r"'<\|audio_pad\|>'"):
            small.id_of("<|audio_pad|>")

    def test_half_a_surrogate_pair(self, small: Tokenizer) -> None:
        with pytest.raises(UsageError, match="lone surrogates"):
            small.encode("a\ud83d")


def rewrite(path: Path, **change: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")


class TestFiles:
    def refused(self, folder: Path, kind: type[CompassError], *words: str) -> None:
        with pytest.raises(kind) as caught:
            Tokenizer(folder)
        assert type(caught.value) is kind
        message = str(caught.value)
        assert message.endswith(".")
        for word in words:
            assert word in message

    def test_ends_of_all_files(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        assert Tokenizer(tmp_path).eos == {258}
        (tmp_path / "generation_config.json").write_text('{"eos_token_id": [258, 256]}')
        assert Tokenizer(tmp_path).eos == {256, 258}
        (tmp_path / "config.json").write_text('{"eos_token_id": null, "text_config": {"eos_token_id": 257}}')
        assert Tokenizer(tmp_path).eos == {256, 257, 258}
        rewrite(tmp_path / "tokenizer_config.json", eos_token={"content": "<|vision_pad|>"})
        assert Tokenizer(tmp_path).eos == {256, 257, 258, 261}
        for bad in ("273", "true", '"a"', "[1, -1]", "1.5"):
            (tmp_path / "generation_config.json").write_text(f'{{"eos_token_id": {bad}}}')
            self.refused(tmp_path, IntegrityError, "generation_config.json", "eos_token_id")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        self.refused(tmp_path, IntegrityError, "tokenizer.json", "No such file")

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 1}', "\x00\xff", '{"added_tokens": []}', "null"])
    def test_a_damaged_file(self, tmp_path: Path, content: str) -> None:
        write_byte_tokenizer(tmp_path)
        (tmp_path / "tokenizer.json").write_text(content, encoding="latin-1")
        self.refused(tmp_path, IntegrityError, "tokenizer.json")

    def test_every_cut(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        whole = (tmp_path / "tokenizer.json").read_bytes()
        for cut in range(1, len(whole), 997):
            (tmp_path / "tokenizer.json").write_bytes(whole[:cut])
            self.refused(tmp_path, IntegrityError, "tokenizer.json")

    @pytest.mark.parametrize("content", ["", "[]", "[" * 100_000, '{"added_tokens_decoder": [1]}'])
    def test_a_damaged_configuration(self, tmp_path: Path, content: str) -> None:
        write_byte_tokenizer(tmp_path)
        (tmp_path / "tokenizer_config.json").write_text(content)
        self.refused(tmp_path, IntegrityError, "tokenizer_config.json")

    def test_sizes_are_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write_byte_tokenizer(tmp_path)
        monkeypatch.setattr(tokenizer_module, "_TOKENIZER_BYTES", 1000)
        self.refused(tmp_path, IntegrityError, "at most 1000 bytes")

    def test_other_kinds(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        rewrite(tmp_path / "tokenizer.json", model={"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})
        self.refused(tmp_path, UsageError, "byte-level BPE", "WordLevel")
        write_byte_tokenizer(tmp_path)
        rewrite(tmp_path / "tokenizer.json", decoder=None)
        self.refused(tmp_path, UsageError, "byte-level BPE", "NoneType")

    def test_tokens_that_take_blanks(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
        rewrite(tmp_path / "tokenizer.json", added_tokens=[{**added[0], "rstrip": True}, *added[1:]])
        self.refused(tmp_path, UsageError, "<|endoftext|>", "rstrip")

    def test_a_model_that_makes_a_token_of_text(self, tmp_path: Path) -> None:
        """A vocabulary with the token in it, and the library's shortcut for whole words."""
        write_byte_tokenizer(tmp_path)
        model = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
        vocab = {**model["vocab"], "<|endoftext|>": 256}
        rewrite(tmp_path / "tokenizer.json", model={**model, "vocab": vocab, "ignore_merges": True})
        tokenizer = Tokenizer(tmp_path)
        with pytest.raises(IntegrityError, match=r"'<\|endoftext\|>' of plain text"):
            tokenizer.encode("<|endoftext|>")

    def test_older_files(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        (tmp_path / "added_tokens.json").write_text('{"<|b|>": 274, "<|a|>": 273, "<|im_end|>": 258}')
        tokenizer = Tokenizer(tmp_path)
        assert (tokenizer.id_of("<|a|>"), tokenizer.id_of("<|b|>"), tokenizer.size) == (273, 274, 275)
        assert tokenizer.decode([273, *b"x", 274]) == "x"

    @pytest.mark.parametrize("entries", ['{"<|a|>": 300}', '{"<|im_end|>": 257}', '{"<|a|>": true}', '{"<|a|>": "1"}'])
    def test_files_that_do_not_belong_together(self, tmp_path: Path, entries: str) -> None:
        write_byte_tokenizer(tmp_path)
        (tmp_path / "added_tokens.json").write_text(entries)
        self.refused(tmp_path, IntegrityError, "added_tokens.json")

    @pytest.mark.parametrize("entries", [{"300": {"content": "<|a|>"}}, {"x": {"content": "<|a|>"}}, {"273": {}}])
    def test_a_configuration_of_another_tokenizer(self, tmp_path: Path, entries: object) -> None:
        write_byte_tokenizer(tmp_path)
        rewrite(tmp_path / "tokenizer_config.json", added_tokens_decoder=entries)
        self.refused(tmp_path, IntegrityError, "tokenizer_config.json")

    def test_a_token_without_a_name(self, tmp_path: Path) -> None:
        write_byte_tokenizer(tmp_path)
        with pytest.raises(UsageError, match="empty"):
            Tokenizer.with_tokens(tmp_path, [""])
