"""Stand-ins for TensorRT Edge-LLM: an environment whose Python plays its tools, a server, and machines that it runs on."""

from __future__ import annotations

import base64
import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
from board_samples import thor
from checkpoint_samples import write_sample

from compass_edge.boards.board import find_board
from compass_edge.boards.machine import Machine
from compass_edge.boards.probe import probe
from compass_edge.engines.picture_url import picture_url
from compass_edge.export.checkpoint import Checkpoint
from compass_edge.export.edgellm.calibration import Calibration, gather
from compass_edge.export.edgellm.conversion import Conversion
from compass_edge.export.edgellm.environment import FORBIDDEN, PINS, RECORD, Environment
from compass_edge.export.edgellm.recipe import recipe_for
from compass_edge.models import Image

# Does what a job says, as far as files go. `behaviour` is beside it: a word for each call, the last one stays.
_TOOLS = """\
#!{python} -I
import json, sys, time
from pathlib import Path
here = Path(__file__).resolve().parent
if sys.argv[1] == "-I":
    print((here / "versions.json").read_text())
    sys.exit()
job = json.loads(Path(sys.argv[3]).read_text())
calls = here / "calls.jsonl"
count = len(calls.read_text().splitlines()) if calls.exists() else 0
calls.open("a").write(json.dumps(job) + "\\n")
words = (here / "behaviour").read_text().split()
word = words[min(count, len(words) - 1)]
out = Path(job["out"])
out.mkdir()
(out / "half").write_text("made")
if word == "wait":
    (here / "waiting").write_text("")
    time.sleep(600)
if word == "fail":
    sys.exit("Traceback\\nRuntimeError: the weights are of another model\\nsome hint")
if job["do"] == "quantize":
    algorithm = {{"int4_awq": "W4A16_AWQ", "fp8": "FP8", "nvfp4": "NVFP4"}}[job["quantization"]]
    if word == "wrong":
        algorithm = "FP8"
    (out / "hf_quant_config.json").write_text(json.dumps({{"quantization": {{"quant_algo": algorithm}}}}))
    for path in Path(job["checkpoint"]).iterdir():
        (out / path.name).write_bytes(path.read_bytes())
else:
    for part in ("llm",) if word == "wrong" else ("llm", "visual", "mtp_draft"):
        (out / part).mkdir()
        (out / part / "config.json").write_text("{{}}")
        (out / part / "model.onnx").write_text("graph")
"""

# Speaks as much of the protocol as is asked for. Words on its command line say how it misbehaves.
SERVER = """\
import http.server, json, os, sys, threading, time
port, model, words, lives = int(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), sys.argv[4]
with open(lives, "a") as file:
    file.write(f"{os.getpid()}\\n")
life = len(open(lives).read().splitlines())
print("loading", flush=True)
word = words[min(life, len(words)) - 1]
if word == "refuse":
    sys.exit("TensorRT prerequisite error: No module named 'tensorrt'")
class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def reply(self, value, kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(200); self.send_header("Content-Type", kind); self.send_header("Content-Length", str(len(body)))
        self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if word == "mute" and os.path.exists(lives + ".mute"):
            time.sleep(600)
        self.reply({"status": "healthy"} if self.path == "/health" else {"data": [{"id": model}]})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if word == "die":
            print("CUDA error: an illegal memory access", flush=True); os._exit(7)
        schema = body["response_format"]["json_schema"]["schema"]
        text = json.dumps({"said": sorted(schema["properties"])[0], "count": 3})
        chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        lines = [json.dumps(chunk), json.dumps(end), "[DONE]"]
        self.reply("".join(f"data: {line}\\n\\n" for line in lines).encode(), "text/event-stream")
if word == "stubborn":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def played_environment(folder: Path, behaviour: str = "well", **versions: str | None) -> Environment:
    """One that counts as finished."""
    environment = Environment(folder)
    (folder / "bin").mkdir(parents=True)
    environment.python.write_text(_TOOLS.format(python=sys.executable))
    environment.python.chmod(0o755)
    found: dict[str, Any] = {**dict(pin.split("==") for pin in PINS), **dict.fromkeys(FORBIDDEN), **versions}
    (folder / "bin" / "versions.json").write_text(json.dumps(found))
    (folder / "bin" / "behaviour").write_text(behaviour)
    (folder / RECORD).write_text(json.dumps({"pins": list(PINS)}))
    return environment


def calls(environment: Environment) -> list[dict[str, Any]]:
    path = environment.folder / "bin" / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def small_checkpoint(folder: Path, family: str = "qwen3-vl") -> Checkpoint:
    write_sample(family, folder)
    return Checkpoint(folder)


def conversion(
    tmp_path: Path, environment: Environment, board: str = "orin-agx-64", out: str = "out", **options: Any
) -> Conversion:
    folder = tmp_path / "checkpoint"
    checkpoint = Checkpoint(folder) if folder.exists() else small_checkpoint(folder)
    return Conversion(checkpoint, tmp_path / out, recipe_for(find_board(board), checkpoint), environment, **options)


def write_pictures(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        url = picture_url(Image("", np.full((32, 48, 3), 20 * number, np.uint8)), "png")
        (folder / f"{number:02}.png").write_bytes(base64.b64decode(url.partition(",")[2]))
    (folder / "notes.txt").write_text("not a picture")
    return folder


def frames_of(folder: Path, count: int) -> Calibration:
    """Few and small: a film would have to be decoded."""
    return gather(str(folder if folder.exists() else write_pictures(folder, 9)), folder, count)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def thor_machine(folder: Path) -> Machine:
    return probe(thor(folder, jetpack="7.2"))
