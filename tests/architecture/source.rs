//! Rust source for the architecture test: comments and literals blanked, test items removed, paths
//! listed.
//!
//! A small lexer rather than a parser: it needs no dependency and keeps every line in place, so
//! that a violation can be reported with its line. It does not expand macros.

/// One path in the code, for example `["crate", "store", "Store"]`, and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedPath {
    pub line: usize,
    pub parts: Vec<String>,
}

impl NamedPath {
    pub fn starts_with(&self, prefix: &[&str]) -> bool {
        self.parts.len() >= prefix.len() && prefix.iter().zip(&self.parts).all(|(a, b)| a == b)
    }

    pub fn ends_with(&self, suffix: &[&str]) -> bool {
        self.parts.len() >= suffix.len()
            && suffix.iter().rev().zip(self.parts.iter().rev()).all(|(a, b)| a == b)
    }
}

/// The text with comments, strings and character literals replaced by spaces. Lines stay in place.
pub fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let end = literal_end(&chars, at);
        if end == at {
            out.push(c);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The end of the comment or literal that begins at `at`; `at` itself if none begins there.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = |n: usize| chars.get(at + n).copied().unwrap_or('\0');
    let find = |from: usize, stop: &dyn Fn(usize) -> bool| {
        (from..chars.len()).find(|i| stop(*i)).unwrap_or(chars.len())
    };
    let inside_word = at > 0 && is_word(chars[at - 1]);
    match chars[at] {
        '/' if next(1) == '/' => find(at, &|i| chars[i] == '\n'),
        '/' if next(1) == '*' => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !inside_word || chars[at - 1] == 'b' => {
            let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
            if next(1 + hashes) != '"' {
                return at;
            }
            let close = |i: usize| {
                chars[i] == '"'
                    && chars[i + 1..].iter().take_while(|c| **c == '#').take(hashes).count()
                        == hashes
            };
            (find(at + 2 + hashes, &close) + 1 + hashes).min(chars.len())
        }
        '\'' if next(1) == '\\' => (find(at + 3, &|i| chars[i] == '\'') + 1).min(chars.len()),
        '\'' if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while let Some(c) = chars.get(at) {
        match c {
            '"' => return at + 1,
            '\\' => at += 2,
            _ => at += 1,
        }
    }
    chars.len()
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (at, depth) = (at + 2, depth + 1),
            ('*', '/') if depth == 1 => return at + 2,
            ('*', '/') => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    chars.len()
}

/// Blanked code without the items under `#[cfg(test)]`.
pub fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(found) = out[from..].find(MARK) {
        let start = from + found;
        let end = item_end(&out, start + MARK.len());
        let gap: String =
            out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        from = start + gap.len();
        out.replace_range(start..end, &gap);
    }
    out
}

/// The end of the item after `from`: its `;`, or the brace that closes its first one.
fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return from + at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return from + at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Every path in blanked code: `use` trees expanded, and every `a::b`.
pub fn paths(code: &str) -> Vec<NamedPath> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_use = tokens[at].1 == "use" && tokens.get(at + 1).is_some_and(|t| t.1 != "<");
        at = if is_use {
            use_tree(&tokens, at + 1, &[], &mut found)
        } else if is_word_token(&tokens[at].1) {
            plain_path(&tokens, at, &mut found)
        } else {
            at + 1
        };
    }
    found
}

type Token = (usize, String);

fn plain_path(tokens: &[Token], mut at: usize, found: &mut Vec<NamedPath>) -> usize {
    let line = tokens[at].0;
    let mut parts = vec![tokens[at].1.clone()];
    at += 1;
    while tokens.get(at).is_some_and(|t| t.1 == "::")
        && tokens.get(at + 1).is_some_and(|t| is_word_token(&t.1))
    {
        parts.push(tokens[at + 1].1.clone());
        at += 2;
    }
    if parts.len() > 1 {
        found.push(NamedPath { line, parts });
    }
    at
}

/// Reads one branch of a `use` tree, and returns the position of the `,`, `}` or `;` that ends it.
fn use_tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<NamedPath>,
) -> usize {
    let mut parts = prefix.to_vec();
    let mut line = tokens.get(at).map_or(0, |t| t.0);
    let mut grouped = false;
    while let Some((token_line, text)) = tokens.get(at) {
        match text.as_str() {
            "," | ";" | "}" => break,
            "{" => {
                grouped = true;
                while tokens.get(at).is_some_and(|t| t.1 == "{" || t.1 == ",") {
                    at = use_tree(tokens, at + 1, &parts, found);
                }
            }
            "as" => at += 1,
            "::" => {}
            word => {
                line = *token_line;
                parts.push(word.to_owned());
            }
        }
        at += 1;
    }
    if !grouped && parts.len() > prefix.len() {
        found.push(NamedPath { line, parts });
    }
    at
}

fn tokens(code: &str) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    let (mut line, mut joined) = (1, false);
    for c in code.chars() {
        let keep = !c.is_whitespace();
        if c == '\n' {
            line += 1;
        }
        match out.last_mut() {
            Some((_, last)) if joined && keep && is_word(c) && last.chars().all(is_word) => {
                last.push(c)
            }
            Some((_, last)) if joined && c == ':' && last == ":" => last.push(':'),
            _ if keep => out.push((line, c.to_string())),
            _ => {}
        }
        joined = keep;
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_word_token(text: &str) -> bool {
    text.chars().all(is_word)
}
