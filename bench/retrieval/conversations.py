#!/usr/bin/env python3
"""Makes retrieval sets of public conversations, for `quipu-bench -- retrieval`.

    conversations.py realtalk OUT Chat_*.json          OUT/messages and OUT/sessions
    conversations.py friendsqa OUT friendsqa_*.json    OUT/messages and OUT/scenes
    conversations.py among OUT SET OTHER...            SET, with the notes of other sets beside it

REALTALK (https://github.com/danny911kr/REALTALK, `data/Chat_*.json`) and FriendsQA
(https://github.com/emorynlp/FriendsQA, `dat/*.json`) have to be downloaded first. A message is a note in the
directory of its session or scene; a session or scene is also a note of its own.
"""

import argparse
import json
import re
import shutil
from pathlib import Path


class Set:
    """A directory of notes, with questions and the notes that answer them."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.questions = []
        shutil.rmtree(directory, ignore_errors=True)

    def write(self, path: str, text: str) -> None:
        file = self.directory / "notes" / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")

    def ask(self, question: str, answers: set[str]) -> None:
        self.questions.append({"question": question, "answers": sorted(answers)})

    def close(self) -> None:
        lines = [json.dumps(question, ensure_ascii=False) + "\n" for question in self.questions]
        (self.directory / "questions.jsonl").write_text("".join(lines), encoding="utf-8")
        notes = sum(file.is_file() for file in (self.directory / "notes").rglob("*"))
        print(f"{self.directory}: {notes} notes, {len(self.questions)} questions")


def realtalk(out: Path, files: list[Path]) -> None:
    messages, sessions = Set(out / "messages"), Set(out / "sessions")
    for file in files:
        chat = json.loads(file.read_text(encoding="utf-8"))
        name = f"chat-{int(file.stem.split('_')[1]):02}"
        places = {}
        numbers = [int(key.removeprefix("session_")) for key in chat if re.fullmatch(r"session_\d+", key)]
        for number in sorted(numbers):
            session = f"/{name}/session_{number}.md"
            lines = []
            for place, message in enumerate(chat[f"session_{number}"], 1):
                line = f"{message['speaker']}: {message['clean_text'] or ''}"
                if caption := message.get("blip_caption"):
                    line += f" [photo: {caption}]"
                path = f"/{name}/session-{number:02}/{place:03}.md"
                messages.write(path, line)
                lines.append(line)
                places[message["dia_id"]] = (path, session)
            sessions.write(session, f"{chat[f'session_{number}_date_time']}\n\n" + "\n".join(lines))
        for question in chat["qa"]:
            said = [id for evidence in question["evidence"] for id in re.findall(r"D\d+:\d+", evidence)]
            found = [places[id] for id in said if id in places]
            if found:
                messages.ask(question["question"], {path for path, _ in found})
                sessions.ask(question["question"], {session for _, session in found})
    messages.close()
    sessions.close()


def friendsqa(out: Path, files: list[Path]) -> None:
    messages, scenes = Set(out / "messages"), Set(out / "scenes")
    for file in files:
        for scene in json.loads(file.read_text(encoding="utf-8"))["data"]:
            title = scene["title"]
            for paragraph in scene["paragraphs"]:
                lines = {}
                for said in paragraph["utterances:"]:
                    # A stage direction is by nobody.
                    speakers = [speaker for speaker in said["speakers"] if not speaker.startswith("#")]
                    line = ": ".join(filter(None, [", ".join(speakers), said["utterance"]]))
                    lines[said["uid"]] = line
                    messages.write(f"/{title}/{said['uid']:03}.md", line)
                scenes.write(f"/{title}.md", "\n".join(lines.values()))
                for question in paragraph["qas"]:
                    answers = {answer["utterance_id"] for answer in question["answers"]}
                    messages.ask(question["question"], {f"/{title}/{uid:03}.md" for uid in answers})
                    scenes.ask(question["question"], {f"/{title}.md"})
    messages.close()
    scenes.close()


def among(out: Path, files: list[Path]) -> None:
    first, *others = files
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(first, out)
    for number, other in enumerate(others, 1):
        shutil.copytree(other / "notes", out / "notes" / f"other-{number}")
    print(f"{out}: {sum(file.is_file() for file in (out / 'notes').rglob('*'))} notes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    makers = {"realtalk": realtalk, "friendsqa": friendsqa, "among": among}
    parser.add_argument("what", choices=makers)
    parser.add_argument("out", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    makers[arguments.what](arguments.out, arguments.files)


if __name__ == "__main__":
    main()
