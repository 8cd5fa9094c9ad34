"""An agent that saves what matters before its context is trimmed.

Context editing clears old tool results when the conversation grows long. Results of the memory tool are
excluded, and the model is warned before anything is cleared, so it writes its findings to memory first and
reads them back later. Run it twice: the second run starts from what the first one saved.

    ANTHROPIC_API_KEY=… python save_before_forgetting.py
"""

import subprocess
import sys

from anthropic import Anthropic

from quipu_memory import QuipuMemoryTool

STORE = "research"


def main(binary: str = "quipu") -> None:
    with QuipuMemoryTool(store=STORE, binary=binary, title="save_before_forgetting") as memory:
        runner = Anthropic().beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=4096,
            system=guidance(binary),
            tools=[memory],
            messages=[{"role": "user", "content": "Go on comparing green teas for our shop."}],
            betas=["context-management-2025-06-27"],
            context_management={
                "edits": [
                    {
                        "type": "clear_tool_uses_20250919",
                        "trigger": {"type": "input_tokens", "value": 30_000},
                        "keep": {"type": "tool_uses", "value": 3},
                        # The model must keep seeing what it read from memory.
                        "exclude_tools": ["memory"],
                    }
                ]
            },
        )
        for message in runner:
            for block in message.content:
                if block.type == "text":
                    print(f"model: {block.text}")
                elif block.type == "tool_use":
                    print(f"memory: {block.input}")


def guidance(binary: str) -> str:
    """Returns Quipu's instructions on how to use the store, which must exist."""
    subprocess.run([binary, "store", "create", "--if-missing", STORE], capture_output=True, check=True)
    ran = subprocess.run(
        [binary, "prompt", "--store", STORE], capture_output=True, encoding="utf-8", check=True
    )
    return ran.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
