"""Measures programs: each is built, and each of its kernels run, on all platforms in turns."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.platforms import OURS
from tests.zoo import arguments, compare, table
from tests.zoo.session import Dead, Session
from tests.zoo.table import Program, held_back

SECONDS = 0.05
SCOUT_LIMIT = 2.5
# Settings under which a peer runs work-items in another order.
_OTHER_ORDER = {
    "intel": ({"CL_CONFIG_CPU_VECTORIZER_MODE": "1"}, {"CL_CONFIG_CPU_VECTORIZER_MODE": "4"}),
    "pocl": ({"POCL_WORK_GROUP_METHOD": "cbs"}, {"POCL_MAX_PTHREAD_COUNT": "1"}),
}


class Zoo:
    """The platforms and what they share. `found` is told of what only ours gets wrong, as it happens."""

    def __init__(
        self, platforms: dict[str, dict[str, str]], work: Path, found: Callable[[str], None], rounds: int
    ):
        self.platforms, self.work, self.found, self.rounds = platforms, work, found, rounds
        self.work.mkdir(parents=True, exist_ok=True)
        self.peers = [name for name in platforms if name != OURS]
        races = table.patterns((table.HERE / "races.txt").read_text())
        self._races = functools.partial(table.matching, races)
        # Which arguments a kernel takes is tried on the platform whose process starts fastest again.
        self._scout_name = "pocl" if "pocl" in platforms else (self.peers or [OURS])[0]
        self._known: dict[str, dict] = {}  # by source

    def program(self, program: Program, wanted: Callable[[str], bool]) -> dict:
        """What was measured: {"builds": by platform, "kernels": by name}"""
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            folder = Path(name)
            sessions = {
                platform: Session(platform, environment, folder)
                for platform, environment in self.platforms.items()
            }
            scout = Session(
                self._scout_name,
                self.platforms[self._scout_name],
                self._folder("scout"),
                self._folder("cache"),
            )
            try:
                return self._measure(program, wanted, sessions, scout, folder)
            finally:
                for session in [*sessions.values(), scout]:
                    session.close()

    def _folder(self, name: str) -> Path:
        (self.work / name).mkdir(exist_ok=True)
        return self.work / name

    def _measure(self, program, wanted, sessions, scout, folder) -> dict:
        builds: dict[str, dict] = {}
        for name, session in sessions.items():
            try:
                weight = session.weigh(program.text, program.options)
                builds[name] = session.build(program.text, program.options) | weight
            except Dead as dead:
                builds[name] = {"log": str(dead)}
        built = [name for name, build in builds.items() if "kernels" in build]
        result: dict = {
            "builds": {
                name: {key: value for key, value in build.items() if key != "kernels"}
                for name, build in builds.items()
            },
            "kernels": {},
        }
        if OURS not in built and built:
            self.found(f"BUILD {program.title} [{program.options}]\n{builds[OURS].get('log', builds[OURS])}")
        if set(built) != set(self.platforms):
            return result
        signatures = builds[(self.peers or [OURS])[0]]["kernels"]
        names = [name for name in signatures if all(name in builds[p]["kernels"] for p in built)]
        for name in set(signatures) ^ set(builds[OURS]["kernels"]):
            self.found(f"KERNELS {program.title}: {name} is not in all platforms' lists")
        names = [name for name in names if wanted(name)]
        text = arguments.preprocessed(program.text, program.options) if names else ""
        for name in names:
            for argument in signatures[name]["arguments"]:
                argument += arguments.canonical(argument[1], text, program.options)
        scout.build(program.text, program.options) if names else None
        for name in names:
            most = min(builds[platform]["kernels"][name]["most"] for platform in built)
            outcome = self._kernel(program, name, {**signatures[name], "most": most}, sessions, scout, folder)
            result["kernels"][name] = {**outcome, "held back": held_back(program.title, name)}
        for name, outcome in result["kernels"].items():
            if outcome["verdict"] == "equal" and self.rounds:
                self._time(program, name, signatures[name], outcome, sessions, folder)
        return result

    def _message(self, name: str, known: dict, sizes: list, folder: Path, prefix: str) -> dict:
        return {
            "do": "run",
            "kernel": name,
            "known": known,
            "sizes": sizes,
            "folder": str(folder),
            "prefix": prefix,
        }

    def _plan(self, program: Program, name: str, known: dict, scout: Session, folder: Path) -> list | str:
        """Sizes with which the kernel runs, changes something, and does the same twice; else why none."""
        key = hashlib.sha256(f"{program.options}\0{program.text}\0{name}".encode()).hexdigest()[:24]
        file = self._folder("plans") / f"{program.source}.json"
        if program.source not in self._known:
            self._known[program.source] = json.loads(file.read_text()) if file.exists() else {}
        known_plans = self._known[program.source]
        if key in known_plans:
            return known_plans[key]
        count = arguments.dimensions(program.text, name)
        local = arguments.local_size(program.text, count, program.local, known["required"])
        while not any(known["required"]) and _product(local) > known["most"]:
            local = [max(1, size // 2) for size in local]
        plan: list | str = "no launch ran"
        loops = re.search(r"\b(for|while)\b", arguments.body(program.text, name))
        for sizes in arguments.ladder(local, bool(loops)):
            try:
                message = self._message(name, known, list(sizes), folder, "s")
                one = scout.ask(message, SCOUT_LIMIT)
                if "error" in one:
                    plan = one["error"]
                    if "NDRange" not in plan:
                        break
                    continue
                if not one["outputs"]:
                    plan = "changes nothing"
                    continue
                other = scout.ask({**message, "prefix": "t"}, SCOUT_LIMIT)
                why = compare.same(one["outputs"], other.get("outputs", {}))
                plan = f"not the same twice: {why}" if why else list(sizes)
            except Dead as dead:
                plan = f"{self._scout_name}: {dead}"
            if isinstance(plan, list):
                break
        known_plans[key] = plan
        file.write_text(json.dumps(known_plans, indent=0))
        return plan

    def _kernel(self, program, name, known, sessions, scout, folder) -> dict:
        plan = self._races(f"{program.title} {name}") or self._plan(program, name, known, scout, folder)
        if isinstance(plan, str):
            return {"verdict": "unclear", "detail": plan}
        changes, costs = self._changes(name, known, plan, sessions, folder, "a")
        verdict, detail = compare.verdict(changes[OURS], {peer: changes[peer] for peer in self.peers})
        if verdict == "differs":
            again, _ = self._changes(name, known, plan, sessions, folder, "b")
            unsteady = [
                platform
                for platform, one in changes.items()
                if isinstance(one, dict) and compare.same(one, _files(again[platform]))
            ]
            if unsteady:
                verdict, detail = "unclear", f"not the same twice: {', '.join(unsteady)}: {detail}"
            elif self._depends_on_order(program, name, known, plan, changes, folder):
                verdict, detail = "unclear", f"a peer's result depends on its vector width: {detail}"
        for path in folder.glob("*.npy"):
            path.unlink()
        if verdict in ("differs", "fails"):
            self.found(f"{verdict.upper()} {program.title} {name} [{program.options}] {plan}\n{detail}")
        return {"verdict": verdict, "detail": detail, "sizes": plan, **costs}

    def _changes(self, name, known, plan, sessions, folder, prefix) -> tuple[dict, dict]:
        """({platform: what the kernel changed, or why it did not run}, what its first launch took)"""
        changes: dict[str, dict | str] = {}
        costs: dict[str, dict] = {"first": {}, "first cpu": {}}
        for platform, session in sessions.items():
            try:
                answer = session.ask(self._message(name, known, plan, folder, f"{platform}_{prefix}"))
            except Dead as dead:
                changes[platform] = str(dead)
                continue
            changes[platform] = answer.get("outputs", answer.get("error", ""))
            costs["first"][platform] = answer.get("first")
            costs["first cpu"][platform] = answer.get("cpu")
        return changes, costs

    def _depends_on_order(self, program, name, known, plan, changes, folder) -> bool:
        """Whether a peer does another thing when its work-items run in another order: then they race."""
        for peer in self.peers:
            for variation in _OTHER_ORDER.get(peer, ()):
                session = Session(f"{peer}_order", {**self.platforms[peer], **variation}, folder)
                try:
                    session.build(program.text, program.options)
                    other = session.ask(self._message(name, known, plan, folder, "o"))
                    if compare.same(changes[peer], other.get("outputs", {})):
                        return True
                except Dead:
                    pass
                finally:
                    session.close()
        return False

    def _time(self, program, name, known, outcome, sessions, folder) -> None:
        times: dict[str, float] = {}
        message, asked = self._message(name, known, outcome["sizes"], folder, "u"), ""
        try:
            for platform, session in sessions.items():
                asked = platform
                session.ask(message)
            for _ in range(self.rounds):
                for platform, session in sessions.items():
                    asked = platform
                    answer = session.ask({"do": "time", "seconds": SECONDS}, 60.0)
                    times[platform] = min(answer["ms"], times.get(platform, answer["ms"]))
            outcome["steady"] = times
        except (Dead, KeyError) as why:
            outcome["detail"] = f"while timed: {asked}: {why}"
            self.found(f"TIME {program.title} {name}: {asked}: {why}")
        for path in folder.glob("*.npy"):
            path.unlink()


def _files(changes: dict | str) -> dict:
    return changes if isinstance(changes, dict) else {}


def _product(sizes: list[int]) -> int:
    out = 1
    for size in sizes:
        out *= size
    return out
