"""Leads generated requests to things that exist, so that they get further than "not found".

Ids and cursors that the server gave out are kept; one that was made up, but looks right, is replaced
by one of them. What is malformed on purpose stays as it is.
"""

import re

import schemathesis

PREFIXES = {"store": "memstore", "memory": "mem", "version": "memver", "session": "sesn"}
# What a request takes away; it gets the newest thing, so that the others live on.
ENDS = re.compile(r"DELETE |.*/(archive|redact)$")


class Pool:
    """The live things: memories and versions by their store."""

    def __init__(self):
        self.stores, self.sessions, self.cursors = {}, [], {}
        self.turn = 0

    def choose(self, ids, label):
        if not ids:
            return None
        if ENDS.match(label):
            return ids[-1] if len(ids) > 2 else None
        self.turn += 1
        return ids[self.turn % len(ids)]

    def replace(self, label, parameters):
        made_up = {
            name: re.fullmatch(rf"{prefix}_01[0-9A-Za-z]{{22}}", str(parameters.get(name)))
            for name, prefix in PREFIXES.items()
        }
        if made_up["session"] and parameters["session"] not in self.sessions:
            parameters["session"] = self.choose(self.sessions, label) or parameters["session"]
        if not made_up["store"] or parameters["store"] in self.stores:
            return
        part = next((part for part in ("memory", "version") if made_up[part]), None)
        full = [id for id, parts in self.stores.items() if not part or parts[part]]
        store = self.choose(full, "" if part else label)
        if store:
            parameters["store"] = store
            if part:
                found = self.choose(self.stores[store][part], label)
                parameters[part] = found or parameters[part]

    def replace_cursor(self, label, query):
        if re.fullmatch(r"page_[A-Za-z0-9_-]+", str(query.get("page"))):
            cursor = self.cursors.pop(label, None)
            if cursor:
                query["page"] = cursor
            else:
                del query["page"]

    def learn(self, label, body):
        match body:
            case {"next_page": str(cursor)}:
                self.cursors[label] = cursor
            case {"type": "memory_store", "id": id, "archived_at": None}:
                self.stores.setdefault(id, {"memory": [], "version": []})
            case {"type": "memory", "memory_store_id": store, "id": id, "memory_version_id": version}:
                parts = self.stores.get(store, {"memory": [], "version": []})
                for known, new in ((parts["memory"], id), (parts["version"], version)):
                    if new not in known:
                        known.append(new)
            case {"type": "session", "id": id} if id not in self.sessions:
                self.sessions.append(id)
            case {"type": "memory_store_deleted", "id": id}:
                self.stores.pop(id, None)
            case {"type": "memory_deleted", "id": id}:
                for parts in self.stores.values():
                    parts["memory"] = [known for known in parts["memory"] if known != id]
            case {"type": "session_deleted", "id": id}:
                self.sessions = [known for known in self.sessions if known != id]


POOL = Pool()


@schemathesis.hook
def before_call(context, case, kwargs):
    label = case.operation.label
    # Nobody can guess the workspace, so every request but these would be refused.
    if label != "GET /v1/memory_stores" and case.headers:
        case.headers.pop("anthropic-workspace-id", None)
    if case.path_parameters:
        POOL.replace(label, case.path_parameters)
    if case.query:
        POOL.replace_cursor(label, case.query)


@schemathesis.hook
def after_call(context, case, response):
    if response.status_code == 200 and "application/json" in response.headers["content-type"][0]:
        POOL.learn(case.operation.label, response.json())
