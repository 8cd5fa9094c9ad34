"""Times the Python SDK's own local memory tool in its process; prints one JSON line per scenario."""

import json
import sys
import tempfile
import time

from anthropic.tools import BetaLocalFilesystemMemoryTool

with open(sys.argv[1]) as file:
    scenarios = json.load(file)
with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
    tool = BetaLocalFilesystemMemoryTool(folder)
    for scenario in scenarios:
        for command in scenario["setup"]:
            tool.call(command)
        for command in scenario["commands"][:20] if scenario["warm"] else []:
            tool.call(command)
        cpu, wall = time.process_time(), time.perf_counter()
        for command in scenario["commands"]:
            tool.call(command)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        count = len(scenario["commands"])
        print(json.dumps({"cpu_us": cpu / count * 1e6, "wall_us": wall / count * 1e6}), flush=True)
