#!/usr/bin/env python3
"""Checks the documentation; scripts/test.sh runs it.

- every link from a Markdown file to a file of the repository, and to a heading in it, resolves;
- every page below docs/ is reachable from docs/README.md;
- every page of docs/decisions is named by the header of a source file;
- README.md has at most 200 lines, ARCHITECTURE.md 250;
- the pictures that are made from text are what their source says (scripts/pictures.py --check).
"""
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
LINES = {"README.md": 200, "ARCHITECTURE.md": 250}
LINK = re.compile(r"(?<!!)\[[^\]\[]*(?:\[[^\]]*\][^\]\[]*)*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def prose(text):
    """The text without code, whose brackets are no links. Line numbers stay."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    return re.sub(r"`[^`\n]+`", blank, re.sub(r"^( *)```.*?^\1```", blank, text, flags=re.S | re.M))


def anchors(path, known={}):
    """The anchors of a page's headings, as GitHub makes them."""
    if path not in known:
        seen, made = {}, set()
        text = re.sub(r"^( *)```.*?^\1```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
        for heading in re.findall(r"^#{1,6} +(.+?) *$", text, flags=re.M):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            count = seen[name] = seen.get(name, -1) + 1
            made.add(name if count == 0 else f"{name}-{count}")
        known[path] = made
    return known[path]


def links(path):
    """(line, address) of every link and picture of a page."""
    text = path.read_text(encoding="utf-8")
    clean = prose(text)
    for found in LINK.finditer(clean):
        yield clean.count("\n", 0, found.start()) + 1, next(filter(None, found.groups()))


def check():
    faults, leads = [], {}
    for path in files():
        leads[path] = set()
        for line, address in links(path):
            if re.match(r"[a-z]+:", address):
                continue
            name, _, anchor = unquote(address).partition("#")
            target = (path.parent / name).resolve() if name else path
            place = f"{path.relative_to(ROOT)}:{line}"
            if not target.exists():
                faults.append(f"{place}: {address}: there is no such file")
                continue
            leads[path].add(target)
            if anchor and target.suffix == ".md" and anchor not in anchors(target):
                faults.append(f"{place}: {address}: there is no such heading")
    index = ROOT / "docs" / "README.md"
    reached, waiting = set(), [index]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        waiting += [next_page for next_page in leads.get(page, ()) if (ROOT / "docs") in next_page.parents]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page not in reached:
            faults.append(f"{page.relative_to(ROOT)}: not reachable from docs/README.md")
    sources = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "crates").rglob("*.rs"), ROOT / "build.rs"]
    named = {name for path in sources for name in re.findall(r"^//! See docs/decisions/(\S+)\.$", path.read_text(encoding="utf-8"), flags=re.M)}
    decisions = {page.name for page in (ROOT / "docs" / "decisions").glob("[0-9]*.md")}
    faults += [f"docs/decisions/{name}: no source file's header names it" for name in sorted(decisions - named)]
    faults += [f"docs/decisions/{name}: a source file's header names it, and there is no such page" for name in sorted(named - decisions)]
    for name, most in LINES.items():
        lines = len((ROOT / name).read_text(encoding="utf-8").splitlines())
        if lines > most:
            faults.append(f"{name}: {lines} lines, {most} at most: move text to docs/")
    return faults, sum(len(targets) for targets in leads.values())


def main():
    faults, count = check()
    if count < 100:
        faults.append(f"only {count} links were found: the check itself is broken")
    pictures = subprocess.run([sys.executable, ROOT / "scripts" / "pictures.py", "--check"], capture_output=True, text=True, check=False)
    if pictures.returncode:
        faults.append(pictures.stderr.strip())
    for fault in faults:
        print(f"documents: {fault}", file=sys.stderr)
    print(f"documents: {count} links in {len(files())} pages, {len(faults)} faults")
    sys.exit(1 if faults else 0)


main()
