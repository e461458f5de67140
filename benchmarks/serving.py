"""How long until a service answers its first query, and how long does each query take?

A map of 384 x 384 in single precision, under the cosine, maps one query at a time. Each program
starts in a new process, in turns, loads the map from a file and maps a query: "start" is the best
wall-clock time until then, with the start of Python. "Above" is what it takes more than Python
alone: in seconds, in processor time, and in peak memory. Then the same process maps
20,000 queries, one by one. NumPy's row is the bare product without any check or division by the
length. Products and onnxruntime have one thread each.
"""

from __future__ import annotations

# All else is imported where it is used, so that the processes measured have what they need only.
import os
import sys
import time

D = 384
ROUNDS = 8
N_QUERIES = 20_000
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PROGRAMS = {
    "python": "Python alone",
    "numpy": "NumPy, bare product",
    "rankspace": "rankspace",
    "onnxruntime": "onnxruntime",
}


# ---------------------------------------------------------------------- in the new process


def numpy_map(folder: str) -> object:
    import numpy as np

    return np.load(f"{folder}/map.npy").dot


def rankspace_map(folder: str) -> object:
    from rankspace import load_metric

    return load_metric(f"{folder}/map.safetensors").embed_queries


def onnx_map(folder: str) -> object:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        f"{folder}/map.onnx", options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return lambda query: session.run(None, {name: query[None]})


LOADERS = {"numpy": numpy_map, "rankspace": rankspace_map, "onnxruntime": onnx_map}


def serve(program: str, folder: str) -> None:
    """Load the map, answer a query, then time many; prints the figures."""
    embed = None
    if program != "python":
        embed = LOADERS[program](folder)
        import numpy as np

        queries = np.load(f"{folder}/queries.npy", mmap_mode="r")
        embed(np.array(queries[0]))
    figures = {"cpu": time.process_time(), "answered": time.time()}
    figures["memory"] = peak_memory()
    if embed is not None:
        times = []
        for query in np.array(queries):
            begin = time.perf_counter()
            embed(query)
            times.append(time.perf_counter() - begin)
        figures["p50"], figures["p99"] = 1e6 * np.percentile(times, [50, 99])
    print(*(f"{name}={value}" for name, value in figures.items()))


def peak_memory() -> float:
    """The largest resident set of this process in MB, by Linux."""
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1024


# ---------------------------------------------------------------------- in this process


def run(program: str, folder: str) -> dict[str, float]:
    """Figures of one process."""
    import subprocess

    command = [sys.executable, __file__, "--serve", program, folder]
    environment = {**os.environ, **ONE_THREAD}
    start = time.time()
    found = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    )
    pairs = [pair.split("=") for pair in found.stdout.split()]
    figures = {name: float(value) for name, value in pairs}
    figures["start"] = figures.pop("answered") - start
    return figures


def write_files(folder: str, with_onnx: bool) -> None:
    import numpy as np

    from rankspace import LinearMetric
    from rankspace.export import to_onnx

    rng = np.random.default_rng(0)
    linear_map = rng.standard_normal((D, D), dtype=np.float32)
    metric = LinearMetric(linear_map, similarity="cosine")
    np.save(f"{folder}/map.npy", linear_map)
    np.save(f"{folder}/queries.npy", rng.standard_normal((N_QUERIES, D), np.float32))
    metric.save(f"{folder}/map.safetensors")
    if with_onnx:
        to_onnx(metric, f"{folder}/map.onnx")


def measure(programs: list[str]) -> dict[str, dict[str, float]]:
    """The best figures of each program."""
    import tempfile

    best: dict[str, dict[str, float]] = {name: {} for name in programs}
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder, "onnxruntime" in programs)
        for _ in range(ROUNDS):
            for program in programs:
                for what, value in run(program, folder).items():
                    best[program][what] = min(value, best[program].get(what, value))
    return best


def main() -> None:
    from importlib.util import find_spec

    from _table import publish

    programs = list(PROGRAMS)
    if not (find_spec("onnxruntime") and find_spec("onnx")):
        programs.remove("onnxruntime")
    best = measure(programs)
    alone = best["python"]
    bare = best["numpy"]["p50"]
    rows = []
    for program, figures in best.items():
        above = [figures[what] - alone[what] for what in ("start", "cpu", "memory")]
        latency = ["", "", ""]
        if "p50" in figures:
            latency = [figures["p50"], figures["p99"], figures["p50"] / bare]
        rows.append([PROGRAMS[program], figures["start"], *above, *latency])
    publish(
        f"Serving: the first query, and one query at a time, d = {D}",
        [
            "program",
            "start, s",
            "above, s",
            "CPU above, s",
            "memory above, MB",
            "p50, us",
            "p99, us",
            "p50 / bare product",
        ],
        rows,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
