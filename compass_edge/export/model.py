"""A checkpoint to a model: every part as a graph, the tokenizer's files, a golden, and the manifest that vouches for them.

All happens in a folder beside the model's (`.partial`); it takes the model's place when it is whole. A part is finished
when its graph is there, so that an export that was stopped goes on behind the last one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from compass_edge import __version__
from compass_edge.engines.architecture import Architecture
from compass_edge.engines.chat import Chat
from compass_edge.engines.file_record import MANIFEST
from compass_edge.engines.json_file import read_object_if_there
from compass_edge.engines.manifest import Manifest, record_files, write_manifest
from compass_edge.engines.onnx.self_test import record_golden
from compass_edge.engines.store import PARTIAL
from compass_edge.engines.tokenizer import Tokenizer
from compass_edge.errors import IntegrityError, UsageError
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.dialects.dialect import Dialect
from compass_edge.export.dialects.ort import Ort
from compass_edge.export.dialects.standard import Standard
from compass_edge.export.families import Family, architecture_of, family_of
from compass_edge.export.modules import check_count, has_progress_heads, heads_of, logits_table, text_of, tower_of
from compass_edge.export.parts.decoder import write_decoder
from compass_edge.export.parts.embedding import write_embedding
from compass_edge.export.parts.heads import logits_head, robometer_head
from compass_edge.export.preprocessing import preprocessing_of
from compass_edge.export.recipe import PRECISIONS, Recipe
from compass_edge.export.robometer import PROGRESS_TOKEN, TOKENS, progress_bins

# Part, bytes of the checkpoint read for it, bytes that it has.
OnProgress = Callable[[str, int, int], None]
TOKENIZER_FOLDER = "tokenizer"
_TOKENIZER_FILES = (
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "config.json",
)
_JOB = "export.json"  # in the unfinished folder: what it is going to be


@dataclass(frozen=True, slots=True)
class _Job:
    checkpoint: Checkpoint
    family: Family
    architecture: Architecture
    dialect: Dialect
    recipe: Recipe
    kind: str  # "vlm" or "prm"
    tokenizer: Tokenizer
    bins: int = 0


def export_model(
    checkpoint: Path, out: Path, recipe: Recipe, *, name: str, on_progress: OnProgress | None = None
) -> Manifest:
    """Writes the model's folder `out`, which must not be there yet, and returns its manifest."""
    tell = on_progress or (lambda part, done, total: None)
    source = Checkpoint(checkpoint)
    job = _job(source, recipe)
    preprocessing = preprocessing_of(job.family, job.architecture.tower, source.folder, robometer=job.kind == "prm")
    size = sum(path.stat().st_size for path in source.files())
    digest = source.digest(lambda done: tell("checkpoint", done, size))
    folder = out.with_name(out.name + PARTIAL)
    _open_folder(folder, {"source": digest, "recipe": recipe.to_dict(), "version": __version__})
    _write_parts(job, folder, tell)
    _write_tokenizer(job, folder / TOKENIZER_FOLDER)
    manifest = Manifest(
        name=name,
        kind="prm" if job.kind == "prm" else "vlm",
        family=job.family.name,
        dialect=recipe.dialect,
        precision={"vision": recipe.vision, "embedding": recipe.embedding, "decoder": recipe.decoder},
        architecture=job.architecture.to_dict(),
        preprocessing=preprocessing,
        tokenizer={"folder": TOKENIZER_FOLDER, "size": job.tokenizer.size},
        files={file: record for file, record in record_files(folder).items() if file != _JOB},
        source={"name": source.folder.resolve().name, "sha256": digest},
        golden={},
    )
    tell("golden", 0, manifest.bytes)
    manifest = replace(manifest, golden=record_golden(folder, manifest))
    tell("golden", manifest.bytes, manifest.bytes)
    write_manifest(folder, manifest)
    (folder / _JOB).unlink()
    folder.rename(out)
    return manifest


def _job(source: Checkpoint, recipe: Recipe) -> _Job:
    family = family_of(source)
    architecture = architecture_of(family, source)
    text, tower = text_of(source), tower_of(source)
    for weights, name, count, setting in (
        (text, "layers", architecture.decoder.layers, "num_hidden_layers"),
        (tower, "blocks", architecture.tower.depth, "depth"),
        (tower, "deepstack_merger_list", len(architecture.tower.taps), "deepstack_visual_indexes"),
    ):
        check_count(weights, name, count, setting)
    heads = has_progress_heads(source)
    if recipe.kind == "robometer" and not heads:
        raise UsageError(
            f"'{source.folder}' has no tensor 'progress_head.0.weight', so it is no RoboMeter. Leave --kind out to export the "
            "language model."
        )
    prm = recipe.kind == "robometer" or (recipe.kind == "auto" and heads)
    dialect: Dialect = Ort() if recipe.dialect == "ort" else Standard()
    tokenizer = Tokenizer.with_tokens(source.folder, TOKENS if prm else ())
    Chat(source.folder, tokenizer).ids(
        ["?", None]
    )  # what it cannot ask is better known before than after an hour's work
    decoder = architecture.decoder
    if prm:  # its embedding was cut to the tokenizer's size, whatever the config of its base says
        rows, *_ = (*source.shape(f"{text.prefix}embed_tokens.weight"), 0)
        decoder = replace(decoder, vocabulary=rows)
        architecture = replace(
            architecture, tokens=replace(architecture.tokens, progress=tokenizer.id_of(PROGRESS_TOKEN))
        )
    if decoder.delta is not None:
        decoder = replace(decoder, longest=dialect.longest_delta)
    if tokenizer.size > decoder.vocabulary:
        raise UsageError(
            f"The tokenizer in '{source.folder}' has {tokenizer.size} tokens and the model's embedding {decoder.vocabulary} rows: "
            "the two do not belong together. Fetch both from the same place."
        )
    architecture = replace(architecture, decoder=replace(decoder, positions=recipe.positions))
    bins = progress_bins(source.folder) if prm else 0
    return _Job(source, family, architecture, dialect, recipe, "prm" if prm else "vlm", tokenizer, bins)


def _open_folder(folder: Path, job: Mapping[str, Any]) -> None:
    """What another checkpoint, recipe or version has left is no help."""
    job = json.loads(json.dumps(job))
    if folder.exists() and _job_in(folder) != job:
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    folder.mkdir(exist_ok=True)
    (folder / _JOB).write_text(json.dumps(job))
    (folder / MANIFEST).unlink(missing_ok=True)


def _job_in(folder: Path) -> dict[str, Any]:
    """Empty where it is not there or damaged: a machine may have lost its power while it was written."""
    try:
        return read_object_if_there(folder / _JOB)
    except IntegrityError:
        return {}


def _write_parts(job: _Job, folder: Path, tell: OnProgress) -> None:
    source, recipe, architecture = job.checkpoint, job.recipe, job.architecture
    decoder, text, tower = architecture.decoder, text_of(source), tower_of(source)
    table = text.block("embed_tokens.weight", (decoder.vocabulary, decoder.hidden))
    if job.kind == "prm":
        head = robometer_head(heads_of(source), job.bins)
    else:
        head = logits_head(logits_table(source, text, (decoder.vocabulary, decoder.hidden)))
    half = PRECISIONS[recipe.decoder].half
    parts: tuple[tuple[str, str, Callable[[], None]], ...] = (
        (
            "vision",
            tower.prefix,
            lambda: job.family.write_tower(folder, job.dialect, architecture.tower, tower, recipe),
        ),
        (
            "embedding",
            f"{text.prefix}embed_tokens",
            lambda: write_embedding(folder, decoder, table, recipe.embedding, half=half),
        ),
        (
            "decoder",
            f"{text.prefix}layers.",
            lambda: write_decoder(
                folder, "decoder", job.dialect, decoder, job.family.traits, text, recipe, head,
                cached=not (job.kind == "prm" and job.dialect.name == "standard"),
            ),
        ),
    )  # fmt: skip
    for name, prefix, write in parts:
        if (folder / f"{name}.onnx").exists():
            continue
        total = source.bytes_below(prefix)
        with source.watched(partial(_tell_part, tell, name, total)):
            write()


def _tell_part(tell: OnProgress, part: str, total: int, done: int) -> None:
    tell(part, min(done, total), total)


def _write_tokenizer(job: _Job, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(job.tokenizer.to_json(), encoding="utf-8")
    for name in _TOKENIZER_FILES:
        if (job.checkpoint.folder / name).exists():
            shutil.copyfile(job.checkpoint.folder / name, folder / name)
