"""Looks at a dataset from outside: DuckDB and pyarrow, no code of stepledger's.

    python tests/python/read_dataset.py runs/RUN

Prints one JSON object: what the files hold, and how far their sums are from what they must be (0).
Exits with 1 when DuckDB and pyarrow do not agree.
"""

import json
import math
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def main():
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "run.parquet").is_file():
        sys.exit("usage: read_dataset.py DIR, where DIR is a run's folder with run.parquet in it")
    folder = Path(sys.argv[1])
    by_duckdb = seen_by_duckdb(folder)
    by_pyarrow = seen_by_pyarrow(folder)
    differing = {key for key, value in by_pyarrow.items() if not close(value, by_duckdb[key])}
    if differing:
        for key in sorted(differing):
            print(f"{key}: DuckDB {by_duckdb[key]!r}, pyarrow {by_pyarrow[key]!r}", file=sys.stderr)
        sys.exit("DuckDB and pyarrow do not agree")
    # JSON has no NaN and no infinity: such a loss becomes its name.
    by_duckdb["losses"] = [str(loss) if isinstance(loss, float) and not math.isfinite(loss) else loss
                           for loss in by_duckdb["losses"]]
    print(json.dumps(by_duckdb, allow_nan=False))


def seen_by_duckdb(folder):
    with duckdb.connect() as db:
        for table in ("run", "steps", "phases", "ledger", "allocations"):
            view(db, folder, table)

        def rows(sql):
            return db.execute(sql).fetchall()

        def one(sql):
            return rows(sql)[0][0]

        return {
            "run_id": one("FROM run SELECT run_id"),
            "status": one("FROM run SELECT status"),
            "schema_version": one("FROM run SELECT schema_version"),
            "config": json.loads(one("FROM run SELECT config")),
            "steps": one("FROM steps SELECT count(*)"),
            "phase_sum_violations": one("""
                SELECT count(*) FROM steps LEFT JOIN
                    (FROM phases SELECT step, sum(total_ns) AS ns WHERE kind = 'phase' GROUP BY step) USING (step)
                WHERE ns IS DISTINCT FROM wall_ns"""),
            "ledger_moments": one("SELECT count(*) FROM (FROM ledger SELECT DISTINCT step, moment)"),
            "ledger_max_difference_bytes": one("""
                SELECT coalesce(max(abs(sum_bytes - allocator_bytes)), 0)::BIGINT FROM
                    (FROM ledger SELECT step, moment, allocator_bytes, sum(bytes) AS sum_bytes GROUP BY ALL)"""),
            "ledger_incomplete_moments": one("""
                SELECT count(*) FROM (FROM ledger SELECT step, moment GROUP BY ALL HAVING count(*) <> 8)"""),
            "allocations": one("FROM allocations SELECT count(*)"),
            "allocation_ids": one("FROM allocations SELECT count(DISTINCT id)"),
            "open_allocations": one("FROM allocations SELECT count(*) WHERE freed_ns IS NULL"),
            "last_step_ledger_bytes": nested(rows("""
                FROM ledger SELECT moment, category, bytes WHERE step = (FROM steps SELECT max(step))""")),
            "last_step_peak_bytes": dict(rows("""
                FROM ledger SELECT category, bytes
                WHERE moment = 'peak' AND step = (FROM steps SELECT max(step))""")),
            "median_step_ms": one("FROM steps SELECT median(wall_ns) / 1e6 WHERE NOT warmup"),
            "phase_total_ms": dict(rows("""
                SELECT name, sum(total_ns) / 1e6 FROM phases JOIN steps USING (step)
                WHERE kind = 'phase' AND NOT warmup GROUP BY name""")),
            "losses": [loss for (loss,) in rows("FROM steps SELECT loss ORDER BY step")],
        }


def view(db, folder, table):
    """The table as DuckDB sees it; with no rows where the run has no file of it."""
    pattern = "run.parquet" if table == "run" else f"{table}-*.parquet"
    if any(folder.glob(pattern)):
        path = str(folder / pattern).replace("'", "''")
        db.execute(f"CREATE VIEW {table} AS FROM '{path}'")
    else:
        columns = {
            "ledger": "step BIGINT, moment TEXT, category TEXT, bytes BIGINT, allocator_bytes BIGINT",
            "allocations": "id BIGINT, freed_ns BIGINT",
            "phases": "step BIGINT, kind TEXT, name TEXT, total_ns BIGINT",
            "steps": "step BIGINT, warmup BOOLEAN, wall_ns BIGINT, loss DOUBLE",
        }
        db.execute(f"CREATE TABLE {table} ({columns[table]})")


def nested(rows):
    moments = defaultdict(dict)
    for moment, category, size in rows:
        moments[moment][category] = size
    return dict(moments)


def seen_by_pyarrow(folder):
    run, steps, phases, ledger, allocations = (
        read(folder, table) for table in ("run", "steps", "phases", "ledger", "allocations"))
    phase_ns, moments = Counter(), defaultdict(list)
    measured = {row["step"] for row in steps if not row["warmup"]}
    phase_ms = Counter()
    for row in phases:
        if row["kind"] == "phase":
            phase_ns[row["step"]] += row["total_ns"]
            if row["step"] in measured:
                phase_ms[row["name"]] += row["total_ns"] / 1e6
    for row in ledger:
        moments[row["step"], row["moment"]].append(row)
    last = max((row["step"] for row in steps), default=None)
    walls = [row["wall_ns"] / 1e6 for row in steps if not row["warmup"]]
    return {
        "run_id": run[0]["run_id"],
        "status": run[0]["status"],
        "steps": len(steps),
        "phase_sum_violations": sum(phase_ns.get(row["step"]) != row["wall_ns"] for row in steps),
        "ledger_moments": len(moments),
        "ledger_max_difference_bytes": max((difference(rows) for rows in moments.values()), default=0),
        "allocations": len(allocations),
        "allocation_ids": len({row["id"] for row in allocations}),
        "last_step_peak_bytes": {row["category"]: row["bytes"] for row in moments[last, "peak"]},
        "median_step_ms": statistics.median(walls) if walls else None,
        "phase_total_ms": dict(phase_ms),
        "losses": [row["loss"] for row in sorted(steps, key=lambda row: row["step"])],
    }


def read(folder, table):
    pattern = "run.parquet" if table == "run" else f"{table}-*.parquet"
    rows = []
    for path in sorted(folder.glob(pattern)):
        part = pq.read_table(path)
        for column in part.schema:
            expect_units(path, column)
        rows += part.to_pylist()
    return rows


def expect_units(path, column):
    """Names carry units, and a unit has one type."""
    if column.name.endswith(("_ns", "_bytes")) or column.name == "bytes":
        assert column.type == pa.int64(), f"{path}: {column}"
    if column.name.endswith("_at"):
        assert column.type == pa.timestamp("us", tz="UTC"), f"{path}: {column}"
    if column.name in ("run_id", "phase", "category", "moment", "detail", "scope", "name", "status"):
        assert pa.types.is_dictionary(column.type), f"{path}: {column}"


def difference(rows):
    return abs(sum(row["bytes"] for row in rows) - rows[0]["allocator_bytes"])


def close(a, b):
    """Equal, but for the order in which floating-point numbers were added. NaN is itself."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-9 * max(abs(a), abs(b)) or (a != a and b != b)
    return a == b


main()
