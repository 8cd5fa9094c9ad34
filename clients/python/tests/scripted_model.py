"""A local Messages endpoint that plays a model from a script.

Each turn is a list of content blocks to answer with. The requests are kept, so that a test can look at
the tool results that the "model" received.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel:
    def __init__(self, turns: list[list[dict[str, Any]]]) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        script = iter(turns)
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                model.requests.append(json.loads(body))
                model.headers.append({name.lower(): value for name, value in self.headers.items()})
                content = next(script)
                is_tool_use = any(block["type"] == "tool_use" for block in content)
                answer = json.dumps(
                    {
                        "id": f"msg_{len(model.requests)}",
                        "type": "message",
                        "role": "assistant",
                        "model": "scripted",
                        "content": content,
                        "stop_reason": "tool_use" if is_tool_use else "end_turn",
                        "stop_sequence": None,
                        "usage": {"input_tokens": 1, "output_tokens": 1},
                    }
                ).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def results(self) -> list[dict[str, Any]]:
        """Returns the tool results that the model received, in order."""
        results: dict[str, dict[str, Any]] = {}
        for request in self.requests:
            for message in request["messages"]:
                blocks = message["content"] if isinstance(message["content"], list) else []
                for block in blocks:
                    if block.get("type") == "tool_result":
                        results[block["tool_use_id"]] = block
        return list(results.values())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def use(number: int, **command: Any) -> list[dict[str, Any]]:
    """Returns a turn in which the model uses the memory tool."""
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": command}]


def say(text: str) -> list[dict[str, Any]]:
    """Returns a turn in which the model answers and stops."""
    return [{"type": "text", "text": text}]


def memory_session() -> list[list[dict[str, Any]]]:
    """Returns a script that uses every command and recovers from an error."""
    return [
        use(1, command="view", path="/memories"),
        use(2, command="create", path="/memories/tea.md", file_text="green: 80 C\nblack: 95 C\n"),
        use(3, command="str_replace", path="/memories/tea.md", old_str="green: 70 C", new_str="x"),
        use(4, command="view", path="/memories/tea.md"),
        use(5, command="str_replace", path="/memories/tea.md", old_str="80 C", new_str="75 C"),
        use(6, command="insert", path="/memories/tea.md", insert_line=2, insert_text="white: 70 C"),
        use(7, command="create", path="/memories/scratch.md", file_text="temporary"),
        use(8, command="rename", old_path="/memories/scratch.md", new_path="/memories/old/s.md"),
        use(9, command="delete", path="/memories/old"),
        say("Noted."),
    ]


#: The expected results of `memory_session`: (is_error, a part of the text).
MEMORY_SESSION_RESULTS = [
    (False, "4.0K\t/memories"),
    (False, "File created successfully at: /memories/tea.md"),
    (True, "No replacement was performed, old_str `green: 70 C` did not appear verbatim"),
    (False, "     1\tgreen: 80 C\n     2\tblack: 95 C\n     3\t"),
    (False, "The memory file has been edited."),
    (False, "The file /memories/tea.md has been edited."),
    (False, "File created successfully at: /memories/scratch.md"),
    (False, "Successfully renamed /memories/scratch.md to /memories/old/s.md"),
    (False, "Successfully deleted /memories/old"),
]

MEMORY_SESSION_TEXT = "green: 75 C\nblack: 95 C\nwhite: 70 C\n"
