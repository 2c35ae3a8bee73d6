#!/usr/bin/env python3
"""Writes a tiny sentence transformer, and the vectors that it has for some texts.

    python3 make.py DIRECTORY

The model has the form of real ones (BERT with two layers, exported to ONNX) and weights from a fixed seed. Words that mean the
same have similar rows in its table, so that a search by meaning finds them. The vectors are computed here by plain arithmetic,
with nothing of what the daemon uses. Needs Python alone.
"""

import json
import math
import random
import struct
import sys
from pathlib import Path

HIDDEN, HEADS, LAYERS, INNER, POSITIONS = 32, 4, 2, 64, 64
SEED = 24

MEANINGS = """
car automobile vehicle | dog puppy hound | money cash funds budget | doctor physician medic | house home dwelling
cache redis memcached | database postgres sqlite | remove delete drop erase | begin start launch | quick fast rapid
error failure fault bug | repair fix mend | child kid infant | happy glad cheerful | travel journey trip voyage
food meal dinner | purchase buy acquire | picture photo image | secret password credential | meeting appointment call
evening night dusk | morning dawn sunrise | boat ship vessel | road street highway | teacher tutor instructor
rain storm shower | large big huge | small tiny little | film movie cinema | sick ill unwell
""".replace("\n", "|")
STOP = "the a an of to in on is was did we i you it that this why what how for with and my our your".split()
TEXTS = [
    "",
    "the car",
    "An automobile!",
    "Why did we drop Redis?",
    "we remove the cache for the evening",
    "ünwell, tiny Kid; 42 zebras",
    "日本 photo",
    " ".join(["travel money doctor"] * 40),
]
MODULES = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Weights:
    def __init__(self, vocabulary, groups):
        random.seed(SEED)
        row = lambda scale: [f32(random.gauss(0, scale)) for _ in range(HIDDEN)]
        matrix = lambda rows, columns, scale: [[f32(random.gauss(0, scale)) for _ in range(columns)] for _ in range(rows)]
        centres = [row(1.0) for _ in groups]
        of_word = {word: centre for centre, group in zip(centres, groups) for word in group}
        self.words = []
        for word in vocabulary:
            if word in of_word:
                noise = row(0.15)
                self.words.append([f32(a + b) for a, b in zip(of_word[word], noise)])
            else:
                self.words.append(row(0.05 if word in STOP else 0.25))
        self.positions = matrix(POSITIONS, HIDDEN, 0.02)
        self.types = matrix(2, HIDDEN, 0.02)
        self.norms = [([f32(1 + random.gauss(0, 0.02)) for _ in range(HIDDEN)], row(0.02)) for _ in range(1 + 2 * LAYERS)]
        self.layers = []
        for _ in range(LAYERS):
            layer = {name: (matrix(HIDDEN, HIDDEN, 0.08), row(0.02)) for name in ("query", "key", "value", "output")}
            layer["inner"] = (matrix(HIDDEN, INNER, 0.08), [f32(random.gauss(0, 0.02)) for _ in range(INNER)])
            layer["outer"] = (matrix(INNER, HIDDEN, 0.08), row(0.02))
            self.layers.append(layer)


# The arithmetic, in the order of the paper.


def linear(rows, weight, bias):
    columns = list(zip(*weight))
    return [[sum(a * b for a, b in zip(row, column)) + c for column, c in zip(columns, bias)] for row in rows]


def normalise(rows, norm):
    done = []
    for row in rows:
        mean = sum(row) / len(row)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in row) / len(row) + 1e-12)
        done.append([(value - mean) / deviation * gain + bias for value, gain, bias in zip(row, *norm)])
    return done


def add(left, right):
    return [[a + b for a, b in zip(x, y)] for x, y in zip(left, right)]


def attention(rows, layer):
    query, key, value = (linear(rows, *layer[name]) for name in ("query", "key", "value"))
    width = HIDDEN // HEADS
    out = [[] for _ in rows]
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        for place, asked in enumerate(query):
            scores = [sum(a * b for a, b in zip(asked[part], other[part])) / math.sqrt(width) for other in key]
            top = max(scores)
            weights = [math.exp(score - top) for score in scores]
            total = sum(weights)
            mixed = [sum(w / total * row[part][i] for w, row in zip(weights, value)) for i in range(width)]
            out[place].extend(mixed)
    return linear(out, *layer["output"])


def forward(weights, ids):
    rows = [
        [a + b + c for a, b, c in zip(weights.words[token], weights.positions[place], weights.types[0])]
        for place, token in enumerate(ids)
    ]
    norms = iter(weights.norms)
    rows = normalise(rows, next(norms))
    for layer in weights.layers:
        rows = normalise(add(rows, attention(rows, layer)), next(norms))
        inner = linear(rows, *layer["inner"])
        inner = [[value / 2 * (1 + math.erf(value / math.sqrt(2))) for value in row] for row in inner]
        rows = normalise(add(rows, linear(inner, *layer["outer"])), next(norms))
    mean = [sum(column) / len(rows) for column in zip(*rows)]
    length = math.sqrt(sum(value * value for value in mean))
    return [value / length for value in mean]


def tokens(text, vocabulary):
    """Splits as BERT does: lower case without accents, at spaces and punctuation, then the longest pieces."""
    import unicodedata

    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    words, word = [], ""
    for char in plain:
        is_alone = unicodedata.category(char).startswith("P") or 0x4E00 <= ord(char) <= 0x9FFF
        if char.isspace() or is_alone:
            words.append(word)
            word = ""
            if is_alone:
                words.append(char)
        else:
            word += char
    ids = []
    for word in filter(None, words + [word]):
        pieces, start = [], 0
        while start < len(word):
            end = len(word)
            while end > start and ("##" if start else "") + word[start:end] not in vocabulary:
                end -= 1
            if end == start:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(vocabulary[("##" if start else "") + word[start:end]])
            start = end
        ids.extend(pieces)
    return [vocabulary["[CLS]"], *ids[: POSITIONS - 2], vocabulary["[SEP]"]]


# The file format of ONNX: protocol buffers, of which only two kinds of fields are needed.


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, dims, values, kind):
    raw = struct.pack("<%d%s" % (len(values), "f" if kind == 1 else "q"), *values)
    return b"".join(number(1, dim) for dim in dims) + number(2, kind) + data(8, name) + data(9, raw)


def value_info(name, kind, dims):
    shape = b"".join(data(1, data(2, dim) if isinstance(dim, str) else number(1, dim)) for dim in dims)
    return data(1, name) + data(2, data(1, number(1, kind) + data(2, shape)))


class Graph:
    """Builds the graph with the operators that an export of PyTorch has."""

    def __init__(self):
        self.nodes, self.tensors, self.count = [], [], 0

    def constant(self, values, dims, kind=1):
        self.count += 1
        name = "constant_%d" % self.count
        self.tensors.append(tensor(name, dims, values, kind))
        return name

    def integers(self, *values):
        return self.constant(values, [len(values)], 7)

    def scalar(self, value):
        return self.constant([value], [])

    def node(self, kind, *inputs, output=None, **attributes):
        self.count += 1
        output = output or "%s_%d" % (kind, self.count)
        body = b"".join(data(1, name) for name in inputs) + data(2, output) + data(3, "node_%d" % self.count) + data(4, kind)
        for name, value in attributes.items():
            if isinstance(value, list):
                attribute = data(1, name) + b"".join(number(8, one) for one in value) + number(20, 7)
            else:
                attribute = data(1, name) + number(3, value & (1 << 64) - 1) + number(20, 2)
            body += data(5, attribute)
        self.nodes.append(body)
        return output

    def matrix(self, rows):
        return self.constant([value for row in rows for value in row], [len(rows), len(rows[0])])

    def linear(self, rows, weight, bias):
        return self.node("Add", self.constant(bias, [len(bias)]), self.node("MatMul", rows, self.matrix(weight)))

    def normalise(self, rows, gain, bias):
        centred = self.node("Sub", rows, self.node("ReduceMean", rows, axes=[(1 << 64) - 1]))
        squares = self.node("Pow", centred, self.scalar(2.0))
        variance = self.node("ReduceMean", squares, axes=[(1 << 64) - 1])
        deviation = self.node("Sqrt", self.node("Add", variance, self.scalar(1e-12)))
        scaled = self.node("Mul", self.node("Div", centred, deviation), self.constant(gain, [HIDDEN]))
        return self.node("Add", scaled, self.constant(bias, [HIDDEN]))


def model_file(weights):
    graph = Graph()
    node = graph.node
    shape = node("Shape", "input_ids")
    size = lambda axis: node("Gather", shape, graph.constant([axis], [], 7), axis=0)
    batch, length = size(0), size(1)
    as_list = lambda value: node("Unsqueeze", value, graph.integers(0))
    mask = node("Cast", node("Unsqueeze", node("Unsqueeze", "attention_mask", graph.integers(1)), graph.integers(2)), to=1)
    mask = node("Mul", node("Sub", graph.scalar(1.0), mask), graph.scalar(-3.4028234663852886e38))
    places = node("Slice", graph.constant(list(range(POSITIONS)), [1, POSITIONS], 7), graph.integers(0), as_list(length), graph.integers(1))
    rows = node("Add", node("Gather", graph.matrix(weights.words), "input_ids", axis=0), node("Gather", graph.matrix(weights.types), "token_type_ids", axis=0))
    rows = node("Add", rows, node("Gather", graph.matrix(weights.positions), places, axis=0))
    norms = iter(weights.norms)
    rows = graph.normalise(rows, *next(norms))
    width = HIDDEN // HEADS
    for index, layer in enumerate(weights.layers):
        split = node("Concat", as_list(batch), as_list(length), graph.integers(HEADS), graph.integers(width), axis=0)
        heads = lambda name: node("Reshape", graph.linear(rows, *layer[name]), split)
        query = node("Transpose", heads("query"), perm=[0, 2, 1, 3])
        key = node("Transpose", heads("key"), perm=[0, 2, 3, 1])
        value = node("Transpose", heads("value"), perm=[0, 2, 1, 3])
        scores = node("Div", node("MatMul", query, key), graph.scalar(math.sqrt(width)))
        shares = node("Softmax", node("Add", scores, mask), axis=-1)
        mixed = node("Transpose", node("MatMul", shares, value), perm=[0, 2, 1, 3])
        mixed = node("Reshape", mixed, node("Concat", as_list(batch), as_list(length), graph.integers(HIDDEN), axis=0))
        rows = graph.normalise(node("Add", graph.linear(mixed, *layer["output"]), rows), *next(norms))
        inner = graph.linear(rows, *layer["inner"])
        erf = node("Add", node("Erf", node("Div", inner, graph.scalar(math.sqrt(2)))), graph.scalar(1.0))
        inner = node("Mul", node("Mul", inner, erf), graph.scalar(0.5))
        rows = node("Add", graph.linear(inner, *layer["outer"]), rows)
        rows = graph.normalise(rows, *next(norms))
    node("Identity", rows, output="last_hidden_state")
    body = b"".join(data(1, one) for one in graph.nodes) + data(2, "tiny") + b"".join(data(5, one) for one in graph.tensors)
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        body += data(11, value_info(name, 7, ["batch", "sequence"]))
    body += data(12, value_info("last_hidden_state", 1, ["batch", "sequence", HIDDEN]))
    return number(1, 7) + data(2, "tiny") + data(7, body) + data(8, data(1, "") + number(2, 14))


def tokenizer_file(vocabulary):
    special = lambda name: {
        "id": vocabulary[name], "content": name, "single_word": False, "lstrip": False, "rstrip": False,
        "normalized": False, "special": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [special(name) for name in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": vocabulary},
    }


def main():
    groups = [group.split() for group in MEANINGS.split("|") if group.strip()]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    signs = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces += [*signs, *("##" + sign for sign in signs), *".,;:!?'\"()-_/"]
    pieces += [word for word in STOP if word not in pieces] + [word for group in groups for word in group]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    assert len(vocabulary) == len(pieces)
    weights = Weights(pieces, groups)
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "model.onnx").write_bytes(model_file(weights))
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer_file(vocabulary), ensure_ascii=False, indent=1) + "\n")
    (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": POSITIONS, "do_lower_case": False}) + "\n")
    (directory / "1_Pooling").mkdir(exist_ok=True)
    (directory / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": HIDDEN, "pooling_mode_mean_tokens": True}) + "\n")
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": "sentence_transformers.models." + layer}
        for index, (path, layer) in enumerate(MODULES)
    ]
    (directory / "modules.json").write_text(json.dumps(modules, indent=1) + "\n")
    expected = []
    for text in TEXTS:
        ids = tokens(text, vocabulary)
        expected.append({"text": text, "ids": ids, "vector": [round(value, 7) for value in forward(weights, ids)]})
    (directory / "expected.json").write_text("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in expected) + "\n]\n")


main()
