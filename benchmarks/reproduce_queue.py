"""Reproduce targets two at a time within a time limit, and keep each result once it is complete.

python benchmarks/reproduce_queue.py TARGET … --scale medium --minutes 60 --out results

Targets that train networks start in the given order; those that share a run form one job. Each
job is an `accord reproduce` into --work. When it ends, its records are packed into --out and its
results copied, their JSON last: --out holds no result without its records and no part of a file.
The next job starts only if the time left suffices for one as long as the longest so far. Jobs that
still run when the time is up are stopped; the same command resumes them. On a GPU, start NVIDIA's
MPS first (`nvidia-cuda-mps-control -d`), so that two jobs share it well.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from accord._files import write_file
from accord.experiments import paper
from accord.experiments.paper._required_runs import repetitions_of, run_names
from accord.store import pack_record


@dataclass
class Job:
    """Targets that share runs: two processes cannot train the same run."""

    name: str
    targets: list[paper.Target]
    runs: set[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="+", metavar="TARGET", help="a target or a prefix")
    parser.add_argument("--scale", choices=paper.SCALES, default="medium")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--work", type=Path, default=Path("runs/queue"), help="unfinished runs")
    parser.add_argument("--out", type=Path, default=Path("results"), help="complete results")
    parser.add_argument("--minutes", type=float, default=60.0, help="time limit of all jobs")
    parser.add_argument("--expect", type=float, default=15.0, help="minutes of the first jobs")
    parser.add_argument("--parallel", type=int, default=2, help="jobs at a time")
    parser.add_argument("--every", type=int, default=1, help="pack every Nth epoch")
    options = parser.parse_args()
    jobs = plan_jobs(paper.find_targets(options.targets), options)
    return 0 if run_queue(jobs, options) else 1


def plan_jobs(targets: list[paper.Target], options: argparse.Namespace) -> list[Job]:
    """Return the jobs of all targets that --out does not hold yet."""
    jobs: list[Job] = []
    for target in targets:
        if not result_file(options.out, target, options).exists():
            names = run_names(target, options.scale, repetitions_of(target, options.scale))
            runs = set(chain.from_iterable(names.values()))
            sharing = [job for job in jobs if job.runs & runs]
            jobs = [job for job in jobs if job not in sharing]
            both = [*chain.from_iterable(job.targets for job in sharing), target]
            runs = runs.union(*(job.runs for job in sharing))
            jobs.append(Job(both[0].name.replace("/", "-"), both, runs))
    return sorted(jobs, key=lambda job: targets.index(job.targets[0]))


def run_queue(waiting: list[Job], options: argparse.Namespace) -> bool:
    """Run jobs until all are done or the time is up; return whether every result is kept."""
    deadline = time.monotonic() + 60 * options.minutes
    running: list[tuple[Job, subprocess.Popen[bytes], float]] = []
    seconds: list[float] = []  # of complete jobs
    failed = False
    try:
        while (waiting or running) and (now := time.monotonic()) < deadline:
            fits = now + max(seconds, default=60 * options.expect) <= deadline
            if waiting and fits and len(running) < options.parallel:
                running.append((job := waiting.pop(0), start(job, options), now))
            elif not running:
                break
            time.sleep(0.5)
            for job, process, begun in [one for one in running if one[1].poll() is not None]:
                running.remove((job, process, begun))
                kept = [keep(target, options) for target in job.targets]
                note(f"{job.name}: exit status {process.returncode}, {sum(kept)} results kept")
                if all(kept):
                    seconds.append(time.monotonic() - begun)
                else:
                    failed = True
    finally:
        for job, process, _ in running:
            os.killpg(process.pid, signal.SIGTERM)  # what is recorded is safe
            process.wait()
            note(f"{job.name}: stopped; the same command resumes it")
    for job in waiting:
        note(f"{job.name}: not started, too little time left")
    return not (failed or waiting or running)


def start(job: Job, options: argparse.Namespace) -> subprocess.Popen[bytes]:
    note(f"{job.name}: started")
    log = options.work / f"{job.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    names = [target.name for target in job.targets]
    command = [sys.executable, "-m", "accord", "reproduce", *names, "--scale", options.scale]
    command += ["--data", str(options.data), "--out", str(options.work)]
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)


def keep(target: paper.Target, options: argparse.Namespace) -> bool:
    """Pack the runs of a target and copy its result; return whether there is one."""
    source, kept = (result_file(out, target, options) for out in (options.work, options.out))
    if not source.exists():
        return False
    for name in chain.from_iterable(json.loads(source.read_bytes())["runs"].values()):
        keep_run(options.work / "runs" / name, options.out / "runs" / name, options.every)
    for file in sorted(source.parent.glob(f"{options.scale}.*"), key=lambda one: one == source):
        write_file(kept.with_name(file.name), file.read_bytes())
    paper.write_summary(paper.load_results(options.out, paper.all_targets().values()), options.out)
    return True


def keep_run(source: Path, kept: Path, every: int) -> None:
    """Pack the labels of a run; the kept spec names no folder of this machine."""
    for split in ("test", "train"):
        packed = kept / (f"{split}.zip" if every == 1 else f"{split}-every-{every}.zip")
        if (source / split).exists() and not packed.exists():
            epochs = slice(every - 1, None, every)
            pack_record(source / split, packed, labels_only=True, epochs=epochs)
    for file in ("effort.json", "spec.toml"):
        if (source / file).exists():  # table 2 trains in folders below
            text = (source / file).read_text()
            write_file(kept / file, re.sub(r"(?m)^root = .*$", 'root = "data"', text).encode())


def result_file(out: Path, target: paper.Target, options: argparse.Namespace) -> Path:
    return Path(out, target.name, f"{options.scale}.json")


def note(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
