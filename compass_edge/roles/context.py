"""What O and V are told of the episode: instruction, plan, verified memory.

A part of a prompt is what stays or goes as a whole: a fact that is added leaves every part before it as it was.
"""

from __future__ import annotations

from compass_edge.loop.plan import Fact, Plan
from compass_edge.roles.edits import CRITERION, OUTCOME
from compass_edge.roles.quote import quote

FACT = 480  # characters of a description
_INSTRUCTION = 2000


def task_part(instruction: str, max_steps: int) -> str:
    return (
        f"\n# Instruction that the robot was given\n{quote(instruction, _INSTRUCTION)}\n"
        f"A plan may have at most {max_steps} steps.\n"
    )


def plan_part(plan: Plan) -> str:
    """Without the satisfied flags, which change with every acceptance."""
    lines = (
        f"{step.id}. {quote(step.outcome, OUTCOME)}, seen by {quote(step.criterion, CRITERION)}\n"
        for step in plan.steps
    )
    return "\n# Plan: id, outcome, criterion\n" + "".join(lines)


def memory_parts(memory: tuple[Fact, ...]) -> tuple[str, ...]:
    """There is at most a fact for every step of the plan: the whole is as bounded as the plan is.

    An empty memory is a heading alone: "nothing yet" would have to be taken back.
    """
    facts = (f"- when step {fact.step_id} was completed: {quote(fact.text, FACT)}\n" for fact in memory)
    return ("\n# Verified memory, oldest first\n", *facts)
