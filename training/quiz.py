"""A quiz: the suite's own questions to V and O about many tuning seeds. Only the frames that are asked about are drawn.

`examine` asks as the course does, and flatters; the suite asks few seeds, and its films take long to draw. FOLDER/TASK-SEED.mp4 has the
frames, in the benchmark's own pictures and codec, .quiz what is asked of them.

    python -m training.quiz FOLDER --seeds 1004-1013            # draws what is missing, then asks compass-tiny
    python -m training.quiz FOLDER --package DIR --wrong        # asks other exports, and prints the replies that are wrong
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compass_edge.cli.eval_selection import parse_seeds
from compass_edge.data.episode import Episode, StepTruth
from compass_edge.data.film_writer import FilmWriter
from compass_edge.data.video_film import VideoFilm
from compass_edge.engines.onnx.session import Options
from compass_edge.engines.onnx.vlm import OnnxVlm
from compass_edge.errors import UsageError
from compass_edge.eval.rate import Rate
from compass_edge.eval.verifier_exam import ask_all
from compass_edge.eval.verifier_questions import Asked, verifier_questions
from compass_edge.eval.wording import outcomes_of
from compass_edge.models import Image, Question
from compass_edge.roles import orienter, verifier
from compass_edge.roles.reply import InvalidReply
from compass_edge.sim.assets import panda_assets
from compass_edge.sim.camera import Camera
from compass_edge.sim.catalogue import TASKS, split, write
from compass_edge.sim.gl import choose_gl
from compass_edge.sim.packing import packed
from compass_edge.sim.performance import perform
from compass_edge.sim.world import FPS, World
from training.crew import launched
from training.footage import EVERY

_MAX_STEPS = 32
_WIDE = 448  # pixels, as the suite's films have


@dataclass(frozen=True, slots=True)
class Quiz:
    """What is asked of one episode; `frames` are the numbers of the pictures in its film, the first one among them."""

    name: str
    instruction: str
    outcomes: list[str]
    asked: list[Asked]
    frames: list[int]


@dataclass(frozen=True, slots=True)
class _Unseen:
    """The film of an episode that nobody draws as a whole."""

    frames: int


def draw(task: str, seed: int, folder: Path) -> None:
    """The frames of one quiz, as a film that shows nothing else."""
    if split(seed) != "tuning":
        raise UsageError(f"Seed {seed} is for {split(seed)}: a quiz is about tuning seeds, 1000-9999.")
    import mujoco

    script = write(task, seed)
    worlds: list[World] = []
    states = []

    def on_frame(world: World) -> None:
        worlds[:] = [world]
        states.append(world.data.qpos.copy())

    performance = perform(script, panda_assets(), on_frame)
    if not performance.complete:
        raise UsageError(f"Episode {task}/{seed} was not completed: take another seed.")
    steps = tuple(
        StepTruth(one.sentence, end, one.forms, one.before, one.tau, one.after, one.completion, dict(one.facts))
        for one, end in zip(script.steps, performance.ends, strict=True)
    )
    count = len(performance.shots)
    episode = Episode(f"{task}/{seed}", task, script.instruction, _Unseen(count), count, float(FPS), steps, script.form,
                      tracks={"shots": packed(performance.shots)})  # type: ignore[arg-type]  # fmt: skip
    asked = verifier_questions(episode, EVERY, "orienter")
    frames = sorted({0, *(frame for one in asked for frame in one.frames)})
    stem, (world,) = folder / f"{task}-{seed}", worlds
    with FilmWriter(stem.with_suffix(".mp4"), FPS, _WIDE, _WIDE) as film, Camera(world, _WIDE) as camera:
        for frame in frames:
            world.data.qpos[:] = states[frame]
            mujoco.mj_forward(world.model, world.data)
            world.shine(performance.shots[frame].lamp)
            film.add(camera.picture(world))
    # A tuple: what runs as a script has no name for its classes that others could read.
    quiz = (episode.id, script.instruction, outcomes_of(episode, "orienter"), asked, frames)
    stem.with_suffix(".part").write_bytes(pickle.dumps(quiz))
    stem.with_suffix(".part").rename(stem.with_suffix(".quiz"))


def quizzes(folder: Path, seeds: Iterable[int]) -> Iterator[tuple[Quiz, dict[int, Image]]]:
    """With the pictures, by their frames."""
    for seed in seeds:
        for task in TASKS:
            path = folder / f"{task}-{seed}.quiz"
            if path.exists():
                quiz = Quiz(*pickle.loads(path.read_bytes()))
                film = VideoFilm(path.with_suffix(".mp4"))
                shown = zip(quiz.frames, film.pictures(), strict=True)
                yield quiz, {frame: Image(f"{film.key}/{number}", picture) for frame, (number, picture) in shown}


def ask(package: Path, folder: Path, seeds: Sequence[int], threads: int, *, wrong: bool) -> dict[str, Rate]:
    """Right answers by what was asked. `accepts` are the rejections that were right, by task what was right of a task."""
    model = OnnxVlm(package / "vlm", Options(threads=threads, context=4096, batch=2))
    found: dict[str, Rate] = {}

    def mark(name: str, right: bool) -> None:
        found[name] = found.get(name, Rate()) + Rate(int(right), 1)

    for quiz, images in quizzes(folder, seeds):
        task = quiz.name.partition("/")[0]
        first = orienter.first(quiz.instruction, images[0], tau=True, max_steps=_MAX_STEPS)
        (text,) = ask_all(model, [first])
        planned = _outcomes(text)
        mark("plan", planned == quiz.outcomes)
        if wrong and planned != quiz.outcomes:
            print(f"{quiz.name}: plan\n  right {quiz.outcomes}\n  came  {text}", flush=True)
        questions = [_question(one, images) for one in quiz.asked]
        for one, text in zip(quiz.asked, ask_all(model, questions), strict=True):
            right = _accepted(text) == one.right
            for name in ("verdict", "accepted" if one.right else "rejected", f"case {one.case}", f"task {task}"):
                mark(name, right)
            if wrong and not right:
                print(f"{quiz.name}: {one.case} {one.frames} {one.subtask.sentence}\n  {text}", flush=True)
    return found


def _question(one: Asked, images: dict[int, Image]) -> Question:
    start, during, candidate = (images[frame] for frame in one.frames)
    return verifier.question(one.subtask, one.memory, start, during, candidate, tau=True)


def _outcomes(text: str) -> list[str]:
    try:
        plan = orienter.read_first(text, tau=True, max_steps=_MAX_STEPS).plan
    except InvalidReply:
        return []
    return [step.outcome for step in plan.steps] if plan is not None else []


def _accepted(text: str) -> bool:
    try:
        return verifier.read(text).accepted
    except InvalidReply:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", default="1004-1013", metavar="A-B")
    parser.add_argument("--package", type=Path, default=Path("compass_edge/tiny"), help="the exports that are asked")
    parser.add_argument("--wrong", action="store_true", help="print the replies that are wrong")
    parser.add_argument("--crew", type=int, default=2)
    parser.add_argument("--rank", type=int, default=-1)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    seeds = parse_seeds(given.seeds)
    missing = [(task, seed) for seed in seeds for task in TASKS if not (given.folder / f"{task}-{seed}.quiz").exists()]
    if given.rank >= 0:
        os.environ.setdefault("LP_NUM_THREADS", "1")
        choose_gl()
        # By the task and the seed, not by their place: others draw at the same time.
        for task, seed in missing:
            if (list(TASKS).index(task) + seed) % given.crew == given.rank:
                draw(task, seed, given.folder)
        return 0
    if missing and (code := launched("training.quiz", sys.argv[1:], given.crew)):
        return code
    for name, rate in sorted(ask(given.package, given.folder, seeds, given.crew, wrong=given.wrong).items()):
        print(f"{name:24}{rate.hits:5} of {rate.of:5}  {rate.hits / rate.of:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
