"""Prints the numbers of `expected.json`, computed with numpy and the `tokenizers` package.

    pip install numpy tokenizers
    python tests/vectors/reference.py target/vectors/models > tests/vectors/expected.json

The directory is where `./test vectors` has installed the models. This shares no code with Quipu: the tokenizer is the
original one, and numbers have 64 bits.
"""

import json
import math
import struct
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

NUMBERS = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


def read_weights(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    weights = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        numbers = np.frombuffer(data[begin:end], NUMBERS[entry["dtype"]])
        weights[name] = numbers.reshape(entry["shape"]).astype(np.float64)
    return weights


def layer_norm(rows, weights, name, epsilon):
    mean = rows.mean(axis=1, keepdims=True)
    variance = ((rows - mean) ** 2).mean(axis=1, keepdims=True)
    scaled = (rows - mean) / np.sqrt(variance + epsilon)
    return scaled * weights[name + ".weight"] + weights[name + ".bias"]


def linear(rows, weights, name):
    return rows @ weights[name + ".weight"].T + weights[name + ".bias"]


def bert(directory, weights, tokenizer):
    config = json.loads((directory / "config.json").read_text())
    sentence = json.loads((directory / "sentence_bert_config.json").read_text())
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
    tokenizer.enable_truncation(sentence["max_seq_length"])
    erf = np.vectorize(math.erf)

    def encode(text):
        tokens = tokenizer.encode(text).ids
        rows = weights["embeddings.word_embeddings.weight"][tokens]
        rows = rows + weights["embeddings.position_embeddings.weight"][: len(tokens)]
        rows = rows + weights["embeddings.token_type_embeddings.weight"][0]
        rows = layer_norm(rows, weights, "embeddings.LayerNorm", epsilon)
        for layer in range(config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}."
            parts = [
                np.stack(np.split(linear(rows, weights, f"{name}attention.self.{part}"), heads, axis=1))
                for part in ("query", "key", "value")
            ]
            query, key, value = parts
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[2])
            shares = np.exp(scores - scores.max(axis=2, keepdims=True))
            shares /= shares.sum(axis=2, keepdims=True)
            context = np.concatenate(list(shares @ value), axis=1)
            attended = rows + linear(context, weights, name + "attention.output.dense")
            attended = layer_norm(attended, weights, name + "attention.output.LayerNorm", epsilon)
            inner = linear(attended, weights, name + "intermediate.dense")
            inner = inner * 0.5 * (1 + erf(inner / math.sqrt(2)))
            rows = attended + linear(inner, weights, name + "output.dense")
            rows = layer_norm(rows, weights, name + "output.LayerNorm", epsilon)
        return rows.mean(axis=0)

    return encode


def wordllama(weights, tokenizer):
    def encode(text):
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        return weights["embedding.weight"][tokens].mean(axis=0)

    return encode


def vectors(directory, texts):
    weights = read_weights(directory / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    is_table = "embedding.weight" in weights
    encode = wordllama(weights, tokenizer) if is_table else bert(directory, weights, tokenizer)
    for text in texts:
        vector = encode(text)
        yield vector / np.linalg.norm(vector)


def main():
    texts = json.loads((Path(__file__).parent / "texts.json").read_text())
    models = []
    for directory in sorted(Path(sys.argv[1]).iterdir()):
        # Of each vector, the first numbers and a sum that depends on all of them.
        rows = []
        for vector in vectors(directory, texts):
            sums = float(vector @ np.cos(np.arange(len(vector))))
            rows.append([round(float(number), 7) for number in [*vector[:5], sums]])
        lines = ",\n".join(f"    {json.dumps(row)}" for row in rows)
        models.append(f"  {json.dumps(directory.name)}: [\n{lines}\n  ]")
    print("{\n" + ",\n".join(models) + "\n}")


if __name__ == "__main__":
    main()
