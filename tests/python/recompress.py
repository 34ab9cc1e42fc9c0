"""Writes every table of a run again, as another tool would: recompress.py RUN CODEC"""

import json
import sys
from pathlib import Path

import pyarrow.parquet as parquet

run, codec = Path(sys.argv[1]), sys.argv[2]
tables = sorted(run.glob("*.parquet"))
for path in tables:
    parquet.write_table(parquet.read_table(path), path, compression=codec)
print(json.dumps({"tables": len(tables)}))
