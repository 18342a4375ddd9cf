"""The families of models that can be exported: how each one's config.json reads, and in what its parts differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from compass_edge.engines.architecture import Architecture, Decoder, Delta, Mixer, Tokens, Tower
from compass_edge.errors import UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.config import Config
from compass_edge.export.dialects.dialect import Dialect
from compass_edge.export.matrix import Weights
from compass_edge.export.parts.decoder import Traits
from compass_edge.export.parts.tower import write_qwen2_tower, write_qwen3_tower
from compass_edge.export.recipe import Recipe

WriteTower = Callable[[Path, Dialect, Tower, Weights, Recipe], None]


@dataclass(frozen=True, slots=True)
class Family:
    name: str  # as in frames/patches.py, which knows its preprocessing
    model_type: str
    tower: Callable[[Config, int], Tower]
    traits: Traits
    write_tower: WriteTower
    interleaved: bool
    sections: tuple[int, int, int]  # where the config names none
    partial: float = 1.0  # of a head that is rotated, likewise
    hybrid: bool = False


def _qwen3_tower(config: Config, hidden: int, taps: tuple[int, ...] = ()) -> Tower:
    config.expect("hidden_act", "gelu_pytorch_tanh", "the activation of the vision tower")
    tower = Tower(
        depth=config.whole("depth"),
        hidden=config.whole("hidden_size"),
        heads=config.whole("num_heads"),
        mlp=config.whole("intermediate_size"),
        out=config.whole("out_hidden_size", hidden),
        patch=config.whole("patch_size", 16),
        temporal=config.whole("temporal_patch_size", 2),
        merge=config.whole("spatial_merge_size", 2),
        positions=config.whole("num_position_embeddings", 2304),
        taps=taps,
    )
    config.check(tower.hidden % (4 * tower.heads) == 0, "hidden_size", "whole quarters of each of num_heads heads")
    config.check(round(tower.positions**0.5) ** 2 == tower.positions, "num_position_embeddings", "a square number")
    different = len(set(taps)) == len(taps) and all(tap < tower.depth for tap in taps)
    config.check(different, "deepstack_visual_indexes", "different layers below depth")
    return tower


def _tapped_tower(config: Config, hidden: int) -> Tower:
    return _qwen3_tower(config, hidden, config.wholes("deepstack_visual_indexes"))


def _windowed_tower(config: Config, hidden: int) -> Tower:
    config.expect("hidden_act", "silu", "the activation of the vision tower")
    tower = Tower(
        depth=config.whole("depth", 32),
        hidden=config.whole("hidden_size", 1280),
        heads=config.whole("num_heads", 16),
        mlp=config.whole("intermediate_size", 3420),
        out=config.whole("out_hidden_size", hidden),
        patch=config.whole("patch_size", 14),
        temporal=config.whole("temporal_patch_size", 2),
        merge=config.whole("spatial_merge_size", 2),
        window=config.whole("window_size", 112),
        full_layers=config.wholes("fullatt_block_indexes"),
    )
    config.check(tower.hidden % (4 * tower.heads) == 0, "hidden_size", "whole quarters of each of num_heads heads")
    config.check(
        tower.window % (tower.patch * tower.merge) == 0, "window_size", "whole squares of patches that are merged"
    )
    return tower


FAMILIES = (
    Family("qwen3-vl", "qwen3_vl", _tapped_tower, Traits(0.0, True, False, False), write_qwen3_tower, True, (24, 20, 20)),
    Family("qwen3.5", "qwen3_5", _qwen3_tower, Traits(1.0, True, False, True), write_qwen3_tower, True, (11, 11, 10),
           partial=0.25, hybrid=True),
    Family("qwen2.5-vl", "qwen2_5_vl", _windowed_tower, Traits(0.0, False, True, False), write_qwen2_tower, False,
           (16, 24, 24)),
)  # fmt: skip


def family_of(checkpoint: Checkpoint) -> Family:
    config = Config(checkpoint.config, checkpoint.folder / "config.json")
    kind = config.text("model_type")
    if not kind or kind in ("rfm", "RFM"):  # RoboMeter's own config names its wrapper, not its body
        kind = config.part("text_config").text("model_type", "qwen3_vl").removesuffix("_text")
    for family in FAMILIES:
        if family.model_type == kind:
            return family
    known = ", ".join(family.model_type for family in FAMILIES)
    raise UsageError(
        f"'{checkpoint.folder / 'config.json'}' describes a model of type '{kind}', and these can be exported: {known}."
    )


def architecture_of(family: Family, checkpoint: Checkpoint) -> Architecture:
    config = Config(checkpoint.config, checkpoint.folder / "config.json")
    text = config.part("text_config") if "text_config" in config else config  # older configs are flat
    vision = config.part("vision_config")
    decoder = _decoder(family, text)
    tower = family.tower(vision, decoder.hidden)
    if tower.out != decoder.hidden:
        raise UsageError(
            f"'{checkpoint.folder / 'config.json'}': the vision tower gives vectors of {tower.out} numbers and the decoder reads "
            f"{decoder.hidden}."
        )
    decoder = replace(decoder, taps=len(tower.taps))
    tokens = Tokens(config.whole("image_token_id", least=0), config.whole("video_token_id", least=0))
    seconds = vision.number("tokens_per_second", 4) if family.name == "qwen2.5-vl" else 0.0
    return Architecture(tower, decoder, tokens, seconds)


def _decoder(family: Family, text: Config) -> Decoder:
    text.expect("hidden_act", "silu", "the activation of the decoder")
    text.expect("use_sliding_window", False, "every layer sees everything before it")
    heads = text.whole("num_attention_heads")
    hidden = text.whole("hidden_size")
    head = text.whole("head_dim", 256 if family.hybrid else hidden // heads)
    rope = text.part("rope_parameters") if "rope_parameters" in text else text.part("rope_scaling")
    for name in ("rope_type", "type"):
        if rope.text(name, "default") not in ("default", "mrope"):
            rope.expect(name, "default", "how positions are stretched")
    theta = rope.number("rope_theta") if "rope_theta" in rope else text.number("rope_theta")
    share = rope.number("partial_rotary_factor") if "partial_rotary_factor" in rope else family.partial
    rotary = int(head * share)
    sections = rope.wholes("mrope_section") if "mrope_section" in rope else family.sections
    if len(sections) != 3 or sum(sections) != rotary // 2:
        raise UsageError(
            f"config.json: mrope_section must be three numbers that sum to {rotary // 2} (half of what is rotated of a head), "
            f"and {list(sections)} came."
        )
    layers, kv_heads = text.whole("num_hidden_layers"), text.whole("num_key_value_heads", heads)
    text.check(heads % kv_heads == 0, "num_key_value_heads", f"a divisor of num_attention_heads, {heads}")
    return Decoder(
        hidden=hidden,
        mlp=text.whole("intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head=head,
        vocabulary=text.whole("vocab_size"),
        epsilon=text.number("rms_norm_eps", 1e-6),
        theta=theta,
        rotary=rotary,
        sections=(sections[0], sections[1], sections[2]),
        interleaved=family.interleaved,
        mixers=_mixers(text, layers, family.hybrid),
        delta=_delta(text) if family.hybrid else None,
    )


def _mixers(text: Config, layers: int, hybrid: bool) -> tuple[Mixer, ...]:
    if not hybrid:
        return tuple("attention" for _ in range(layers))
    if "layer_types" in text:
        types = text.texts("layer_types")
    else:
        every = text.whole("full_attention_interval", 4)
        types = tuple("linear_attention" if (at + 1) % every else "full_attention" for at in range(layers))
    names: dict[str, Mixer] = {"full_attention": "attention", "linear_attention": "delta"}
    if len(types) != layers or set(types) - set(names) or "full_attention" not in types:
        raise UsageError(
            f"config.json: layer_types must name {layers} layers, each full_attention or linear_attention and at least one of "
            f"the former, and {list(types)} came."
        )
    return tuple(names[kind] for kind in types)


def _delta(text: Config) -> Delta:
    keys, values = text.whole("linear_num_key_heads"), text.whole("linear_num_value_heads")
    text.check(values % keys == 0, "linear_num_key_heads", f"a divisor of linear_num_value_heads, {values}")
    return Delta(
        key_heads=keys,
        value_heads=values,
        key=text.whole("linear_key_head_dim"),
        value=text.whole("linear_value_head_dim"),
        kernel=text.whole("linear_conv_kernel_dim", 4),
    )
