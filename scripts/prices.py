#!/usr/bin/env python3
"""Makes conf/prices.json from a downloaded copy of the public model price list.

    pip download --no-deps litellm            # or another copy of the list
    unzip -p litellm-*.whl litellm/model_prices_and_context_window_backup.json > list.json
    scripts/prices.py list.json --source "litellm 1.109.1" --date 2026-11-22

It contains the models of the vendors in FAMILIES for replies, embeddings, images, sound, reranking and
moderation, with their prices, limits and mode and nothing else. Names are those of the vendors' own APIs, without the list's prefix
(`gemini/`). There is one model per line, sorted, so that a new list gives a small diff. The field
`source` of each entry names the source.
"""

import argparse
import json
import re
import sys
from decimal import Decimal

# `litellm_provider` of the list → the prefix that is removed from a name, and the pattern that the
# rest must match. If two entries have one name, the first family counts: Gemini's own API before
# Vertex AI.
FAMILIES = {
    "anthropic": ("", r"claude-"),
    "openai": ("", r"(ft:)?(gpt-|chatgpt-|chat-|codex-|computer-use-|daybreak-|o\d|text-embedding-|whisper-|tts-|omni-moderation-)"),
    "gemini": ("gemini/", r"[a-z]"),
    "vertex_ai-language-models": ("", r"gemini-|deep-research-"),
    "deepseek": ("deepseek/", r"[a-z]"),
    "mistral": ("mistral/", r"[a-z]"),
    "moonshot": ("moonshot/", r"[a-z]"),
    "xai": ("xai/", r"[a-z]"),
    "zai": ("zai/", r"[a-z]"),
    "cohere": ("", r"(rerank|embed)-"),
    "jina_ai": ("", r"jina-"),
    "voyage": ("voyage/", r"[a-z]"),
}
# Image models too: by tokens, they also price the hosted tool of the responses format.
MODES = ("chat", "responses", "embedding", "image_generation", "audio_transcription", "audio_speech", "rerank",
         "moderation")
# Entries of the list that are no models: their fees for hosted tools go to the vendor's models.
TOOLS = {"openai": "openai/container"}
TOOL_FEES = ("code_interpreter_cost_per_session", "file_search_cost_per_1k_calls")
LIMITS = ("max_input_tokens", "max_output_tokens")
# What the list says about a model's modes: a test compares it with the rates.
FLAGS = ("supports_fast_mode",)
# Prices per image, second, character and search.
UNITS = ("output_cost_per_image", "input_cost_per_second", "input_cost_per_character", "input_cost_per_query")
# Factors on the rates, in `provider_specific_entry`; its other members are no prices.
FACTORS = ("fast", "us")
# Models that the list lacks so far, from the vendor's own page: the listed model whose rates they have, factors on
# the rates of some tiers, and the source. An entry of the list itself comes first.
ADDED = {
    # "Ultrafast costs 3 times the Standard rate through February 28, 2027", the listed model 6 times.
    "gpt-6.2-sol": ("gpt-6.1-sol", {"_ultrafast": Decimal("0.5")}, "OpenAI's model page, 2026-11-28"),
}
# Fields that are prices: the rates, their tiers and thresholds, and fees. Fields with such a name that
# the gateway does not apply are kept, so that `tollgate check` can report them.
PRICED = re.compile(r"cost|price|pricing")


def is_free(value):
    if isinstance(value, dict):
        return all(is_free(part) for part in value.values())
    return value is None or isinstance(value, bool) or value == 0 or value == []


def entry(model, source):
    """The entry of one model, or None if it has no price."""
    kept = {"litellm_provider": model["litellm_provider"], "mode": model["mode"]}
    kept.update((name, model[name]) for name in LIMITS if isinstance(model.get(name), int))
    kept.update((name, True) for name in FLAGS if model.get(name) is True)
    plain = ("input_cost_per_token", "output_cost_per_token")
    if model["mode"] != "moderation" and all(is_free(model.get(name)) for name in plain + UNITS):
        return None
    entry = model.get("provider_specific_entry") or {}
    factors = {name: entry[name] for name in FACTORS if not is_free(entry.get(name))}
    if factors:
        kept["provider_specific_entry"] = factors
    for name in sorted(model):
        # A rate of 0 is a price if the model has another one: embeddings have no output.
        if PRICED.search(name) and (name in plain or not is_free(model[name])):
            kept[name] = model[name]
    kept["source"] = source
    return kept


def table(listed, source):
    prices, rank = {}, {}
    order = list(FAMILIES)
    for name, model in listed.items():
        provider = model.get("litellm_provider")
        if provider not in FAMILIES or model.get("mode") not in MODES:
            continue
        prefix, pattern = FAMILIES[provider]
        short = name.removeprefix(prefix)
        tools = listed.get(TOOLS.get(provider), {}) if model["mode"] in ("chat", "responses") else {}
        fees = {fee: tools[fee] for fee in TOOL_FEES if not is_free(tools.get(fee))}
        facts = entry(fees | model, source)
        if "/" in short or not re.match(pattern, short) or facts is None:
            continue
        # A name with its prefix is of the vendor's own API: it comes before one without.
        key = (order.index(provider), not (prefix and name.startswith(prefix)))
        if short not in rank or key < rank[short]:
            prices[short], rank[short] = facts, key
    for name, (like, factors, page) in ADDED.items():
        if name not in prices and like in prices:
            prices[name] = added(prices[like], factors) | {"source": page}
    return prices


def added(like, factors):
    """The entry `like`, with the factors on the rates whose names end so."""
    def rate(name, value):
        factor = next((factor for end, factor in factors.items() if name.endswith(end)), 1)
        return value if factor == 1 else value * factor
    return {name: rate(name, value) for name, value in like.items()}


def number(value):
    if isinstance(value, Decimal):
        text = f"{value.normalize():f}" if value else "0"
        return text if len(text) <= 12 else str(value.normalize()).replace("E", "e")
    return json.dumps(value, ensure_ascii=False)


def text(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    return number(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("list", help="a copy of the public list")
    parser.add_argument("--source", required=True, help="where it is from, with its version")
    parser.add_argument("--date", required=True, help="its date, YYYY-MM-DD")
    parser.add_argument("--output", default="conf/prices.json")
    asked = parser.parse_args()
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", asked.date):
        parser.error("--date: YYYY-MM-DD")
    with open(asked.list, encoding="utf-8") as file:
        # Decimals, so that no figure is rounded.
        listed = json.load(file, parse_float=Decimal)
    prices = table(listed, f"{asked.source}, {asked.date}")
    if not prices:
        sys.exit(f"{asked.list}: no model of {', '.join(FAMILIES)}")
    lines = (f"{json.dumps(name, ensure_ascii=False)}:{text(prices[name])}" for name in sorted(prices))
    with open(asked.output, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{asked.output}: {len(prices)} models")


if __name__ == "__main__":
    main()
