#!/usr/bin/env python3
"""Draws the SVG pictures of the documentation from text that is in the repository: `make pictures`.

docs/images/architecture.svg   from docs/images/architecture.txt
docs/images/badge-*.svg        from Cargo.toml (licence, Rust version) and the platform that it names

With --check nothing is written: the exit code is 1 when a picture is not what its source says.
"""
import html
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH, LEFT, BOX, GAP = 960, 130, 54, 12
STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2430 }
  .page { fill: #ffffff } .frame { fill: #eef0ff; stroke: #5b50e0 } .box { fill: #ffffff; stroke: #b9bfcc }
  .small { font-size: 11.5px; fill: #5a6272 } .title { font-size: 13.5px; font-weight: 600 }
  .label { font-size: 12.5px; font-weight: 600; fill: #5b50e0 } .line { stroke: #5a6272; stroke-width: 1.5 } .tip { fill: #5a6272 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8ee } .page { fill: #14161c } .frame { fill: #1b1c33; stroke: #8f86ff } .box { fill: #20232c; stroke: #3a404d }
    .small { fill: #a4abba } .label { fill: #a9a2ff } .line { stroke: #a4abba } .tip { fill: #a4abba }
  }
"""


def text(x, y, what, kind, anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{html.escape(what)}</text>'


def arrow(y, what):
    x = LEFT + (WIDTH - LEFT - 24) / 2
    return [
        f'<line x1="{x:g}" y1="{y:g}" x2="{x:g}" y2="{y + 22:g}" class="line"/>',
        f'<path d="M{x - 5:g} {y + 20:g} h10 l-5 9 z" class="tip"/>',
        text(x + 14, y + 18, what, "small", "start"),
    ]


def row(y, label, boxes):
    drawn = [text(24, y + BOX / 2 + 4, label, "label", "start")]
    width = (WIDTH - LEFT - 40 - GAP * (len(boxes) - 1)) / len(boxes)
    for index, (title, second) in enumerate(boxes):
        x = LEFT + index * (width + GAP)
        drawn.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{BOX}" rx="7" class="box"/>')
        drawn.append(text(x + width / 2, y + 23, title, "title"))
        drawn.append(text(x + width / 2, y + 41, second, "small"))
    return drawn


def read(source):
    """The lines that draw something: (word, rest)."""
    for line in source.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word and not word.startswith("#"):
            yield word, rest


def architecture(source):
    drawn, frames, y, title, pending = [], [], 20, "", None
    frame_start = None
    lines = [*read(source), ("finish", "")]
    for word, rest in lines:
        if word != "box" and pending is not None:
            drawn += row(y, *pending)
            y, pending = y + BOX + 14, None
        if word == "title":
            title = rest
        elif word == "row":
            pending = (rest, [])
        elif word == "box":
            first, _, second = rest.partition(" | ")
            pending[1].append((first, second))
        elif word == "arrow":
            drawn += arrow(y - 8, rest)
            y += 32
        elif word == "frame":
            frame_start = y
            drawn.append(text(24, y + 21, rest, "label", "start"))
            y += 34
        elif word == "end":
            frames.append(f'<rect x="12" y="{frame_start:g}" width="{WIDTH - 24}" height="{y - frame_start:g}" rx="10" class="frame"/>')
            y += 14
        elif word != "finish":
            raise SystemExit(f"architecture.txt: `{word}` is not known")
    body = "\n".join([f'<rect width="{WIDTH}" height="{y:g}" class="page"/>', *frames, *drawn])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:g}" role="img" aria-label="{html.escape(title)}">\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def badge(name, value):
    """Two words side by side. Their widths follow the number of letters; that fits system fonts."""
    left, right = 14 + 6.6 * len(name), 14 + 6.6 * len(value)
    both = left + right
    said = html.escape(f"{name}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{both:g}" height="20" role="img" aria-label="{said}">\n'
        f'<clipPath id="r"><rect width="{both:g}" height="20" rx="4"/></clipPath>\n'
        f'<g clip-path="url(#r)"><rect width="{left:g}" height="20" fill="#434a59"/>'
        f'<rect x="{left:g}" width="{right:g}" height="20" fill="#4f46e5"/></g>\n'
        '<g font-family="Verdana, DejaVu Sans, sans-serif" font-size="11" fill="#ffffff" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{html.escape(name)}</text>'
        f'<text x="{left + right / 2:g}" y="14">{html.escape(value)}</text></g>\n</svg>\n'
    )


def pictures():
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    return {
        "architecture.svg": architecture((IMAGES / "architecture.txt").read_text(encoding="utf-8")),
        "badge-licence.svg": badge("licence", package["license"]),
        "badge-rust.svg": badge("Rust", f"{package['rust-version']} or newer"),
        "badge-platform.svg": badge("platform", "Linux"),
        "badge-version.svg": badge("version", package["version"]),
    }


def main():
    stale = []
    for name, drawn in pictures().items():
        path = IMAGES / name
        if path.exists() and path.read_text(encoding="utf-8") == drawn:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(drawn, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"docs/images: {', '.join(stale)}: older than the source; run `make pictures`")
    print(f"pictures: {', '.join(stale) or 'nothing'} {'drawn' if stale else 'to draw'}")


main()
