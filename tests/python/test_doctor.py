"""doctor: says what is there, and stops with exit code 3 and a cure when the main job cannot run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Runs doctor in a fresh interpreter in which the named modules cannot be imported.
_WITHOUT = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ImportError(f"blocked {{name}}")
sys.meta_path.insert(0, Block())
from compass_edge.cli.main import main
sys.exit(main(["doctor", "--json"]))
"""


def doctor_without(*blocked: str) -> tuple[int, dict[str, dict[str, str]]]:
    code = _WITHOUT.format(blocked=set(blocked))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_all_is_well_here() -> None:
    code, checks = doctor_without()
    assert code == 0
    assert checks["C++ core"]["verdict"] == checks["video decoding"]["verdict"] == "ok"
    assert checks["onnxruntime"]["verdict"] == "ok"
    assert "CPU" in checks["ONNX Runtime on"]["detail"]


def test_a_runtime_that_has_lost_its_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime and onnxruntime-gpu write the same files: the one that was installed last wins."""
    from compass_edge.cli import doctor

    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.setattr(doctor, "_version", lambda module: "1.31.1")
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    (check,) = doctor._providers()
    assert check.detail == "CPU; onnxruntime has overwritten onnxruntime-gpu"
    assert check.cure == "pip install --force-reinstall --no-deps onnxruntime-gpu"
    monkeypatch.setattr(
        onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    (check,) = doctor._providers()
    assert (check.verdict, check.detail, check.cure) == ("info", "CUDA, CPU", "")


@pytest.mark.parametrize("module", ["numpy", "onnxruntime", "tokenizers"])
def test_a_missing_requirement_stops_with_a_cure(module: str) -> None:
    code, checks = doctor_without(module)
    assert code == 3
    assert checks[module]["verdict"] == "missing"
    assert f"pip install --force-reinstall {module}" in checks[module]["cure"]


def test_a_missing_core_stops_with_a_cure() -> None:
    code, checks = doctor_without("compass_edge._native")
    assert code == 3
    assert checks["C++ core"]["verdict"] == "missing"
    assert "pip install ." in checks["C++ core"]["cure"]


def test_the_robots_package_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, compass_edge, compass_edge.cli.main, compass_edge.frames.tour, compass_edge.frames.pyav\n"
        "from compass_edge.frames.native import native; native()\n"
        "sys.exit(any(name.split('.')[0] in ('torch', 'transformers') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_preflight_names_what_is_missing(tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "tools" / "preflight.py"
    fine = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert fine.returncode == 0, fine.stderr
    bare = {**os.environ, "PATH": str(tmp_path), "CXX": ""}
    poor = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, env=bare, check=False
    )
    assert poor.returncode == 3
    assert "No C++ compiler" in poor.stderr
