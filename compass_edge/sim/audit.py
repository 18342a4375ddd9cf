"""The audit of an episode: does its annotation agree with the physical state, in every frame?"""

from __future__ import annotations

from compass_edge.data.episode import Episode
from compass_edge.sim.catalogue import write
from compass_edge.sim.packing import shots_of, unfolded
from compass_edge.sim.script import Script
from compass_edge.sim.shot import Shot, state_hash
from compass_edge.sim.tracks import occurrence_of, satisfied

_REACH = 0.08  # metres from the fingertips to the centre of what they hold


def audit(episode: Episode) -> list[str]:
    """What is wrong, a sentence each. The predicates are asked again, of the shots that the annotation holds."""
    task, _, seed = episode.id.partition("/")
    script = write(task, int(seed))
    shots = shots_of(episode.tracks["shots"])
    if episode.film.frames != episode.frames or len(shots) != episode.frames:
        return [f"{episode.id} has {episode.frames} frames, its film {episode.film.frames} and its state {len(shots)}."]
    wrong = [*_steps(episode, script, shots), *_frames(episode, script, shots)]
    found = state_hash(shots)
    if found != episode.tracks["scene"]["state_hash"]:
        wrong.append(
            f"{episode.id} has the state hash {episode.tracks['scene']['state_hash']}, and its shots have {found}."
        )
    return wrong


def _steps(episode: Episode, script: Script, shots: list[Shot]) -> list[str]:
    wrong = []
    if [step.sentence for step in script.steps] != [step.sentence for step in episode.truth]:
        return [f"{episode.id} has other steps than its script."]
    for number, (step, begin, truth) in enumerate(
        zip(script.steps, episode.begins, episode.truth, strict=True), start=1
    ):
        done = [frame for frame in range(begin, truth.end + 1) if step.act.done(shots[begin : frame + 1])]
        if done != [truth.end]:
            wrong.append(
                f"Step {number} of {episode.id} ends at frame {truth.end}, and the state says {done or 'never'}."
            )
        if set(episode.tracks["occurrence"][begin : truth.end]) != {occurrence_of(script, number - 1)}:
            wrong.append(f"Step {number} of {episode.id} tells another occurrence than its script.")
        for frame in range(begin, truth.end):
            if step.act.underway(shots[begin : frame + 1]) != episode.tracks["underway"][frame]:
                wrong.append(f"Frame {frame} of {episode.id} is wrong about whether step {number} is underway.")
    return wrong


def _frames(episode: Episode, script: Script, shots: list[Shot]) -> list[str]:
    wrong = []
    told = unfolded(episode.tracks["satisfied"])
    for frame, shot in enumerate(shots):
        if tuple(satisfied(shot, script)) != told[frame]:
            wrong.append(f"Frame {frame} of {episode.id} tells other predicates than its state.")
        if shot.held != episode.tracks["held"][frame]:
            wrong.append(
                f"Frame {frame} of {episode.id} tells that {episode.tracks['held'][frame]} is held, not {shot.held}."
            )
        elif shot.held is not None:
            away = max(abs(a - b) for a, b in zip(shot.gripper, shot.bodies[shot.held], strict=True))
            if away > _REACH:
                wrong.append(f"In frame {frame} of {episode.id} {shot.held} is held from {away * 100:.0f} cm away.")
    return wrong
