"""Each family and dialect exported once for all tests of the engine against transformers. A plugin, as `one_thread` is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import pytest
from engine_samples import Case, Reference, spoil
from random_checkpoints import FAMILIES

from compass_edge.engines.onnx.body import Body
from compass_edge.export.model import export_model
from compass_edge.export.recipe import Recipe

pytest_plugins = ["one_thread"]


@pytest.fixture(scope="session")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    return lru_cache(lambda family: Reference(family, tmp_path_factory.mktemp(family)))


@pytest.fixture(
    scope="session", params=[f"{family} {dialect}" for family in FAMILIES for dialect in ("ort", "standard")]
)
def case(
    request: pytest.FixtureRequest, references: Callable[[str], Reference], tmp_path_factory: pytest.TempPathFactory
) -> Case:
    family, dialect = request.param.split()
    reference, out = references(family), tmp_path_factory.mktemp("models") / dialect
    recipe = Recipe(decoder="fp32", vision="fp32", embedding="fp32", dialect=dialect)
    manifest = export_model(reference.folder, out, recipe, name=family)
    assert (manifest.family, manifest.dialect, manifest.kind) == (family, dialect, "vlm")
    return Case(reference, out)


@pytest.fixture
def body(case: Case) -> Iterator[Body]:
    made = case.vlm.body
    made.forget()
    spoil(made)
    with made.lock:
        yield made
