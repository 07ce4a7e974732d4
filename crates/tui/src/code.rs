//! Colour for code: comments, strings, numbers and the keywords that most languages share. It is a cheap guess by the
//! name of the language, not a grammar; the text itself is never changed.

use crate::theme::Theme;
use ratatui_core::style::Style;
use ratatui_core::text::Span;

/// What is needed of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// Begins a comment to the end of the line.
    line_comment: &'static str,
    /// `/* … */`
    block_comments: bool,
    /// A `'` begins a string rather than a lifetime or an apostrophe.
    single_quotes: bool,
    keywords: &'static [&'static str],
}

/// Whether a comment was left open on the line before.
pub type InComment = bool;

const C_LIKE: &[&str] = &[
    "abstract",
    "as",
    "async",
    "auto",
    "await",
    "bool",
    "boolean",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "crate",
    "default",
    "defer",
    "do",
    "double",
    "dyn",
    "else",
    "enum",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "int",
    "interface",
    "let",
    "long",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "namespace",
    "new",
    "nil",
    "null",
    "of",
    "override",
    "package",
    "private",
    "protected",
    "pub",
    "public",
    "ref",
    "return",
    "self",
    "Self",
    "static",
    "string",
    "struct",
    "super",
    "switch",
    "template",
    "this",
    "throw",
    "throws",
    "trait",
    "true",
    "try",
    "type",
    "typedef",
    "typeof",
    "undefined",
    "unsafe",
    "use",
    "using",
    "var",
    "virtual",
    "void",
    "where",
    "while",
    "yield",
];
const SCRIPT: &[&str] = &[
    "alias", "and", "as", "assert", "async", "await", "begin", "break", "case", "class", "continue", "def", "del",
    "do", "done", "elif", "else", "elsif", "end", "esac", "except", "export", "False", "false", "fi", "finally", "for",
    "from", "function", "global", "if", "import", "in", "is", "lambda", "local", "module", "nil", "None", "not",
    "null", "or", "pass", "raise", "readonly", "require", "rescue", "return", "self", "set", "then", "True", "true",
    "try", "unless", "until", "while", "with", "yield",
];
const SQL: &[&str] = &[
    "and", "as", "by", "create", "delete", "from", "group", "having", "in", "index", "inner", "insert", "into", "is",
    "join", "left", "limit", "not", "null", "on", "or", "order", "outer", "primary", "right", "select", "set", "table",
    "union", "update", "values", "where", "function", "local", "then", "end", "if", "else", "return",
];

impl Language {
    /// By the word after the fence, or the extension of a file.
    pub fn named(name: &str) -> Option<Language> {
        let name = name.split([',', ' ', '{']).next().unwrap_or_default().to_ascii_lowercase();
        let language = |line_comment, block_comments, single_quotes, keywords| {
            Some(Language { line_comment, block_comments, single_quotes, keywords })
        };
        match name.as_str() {
            "rust" | "rs" => language("//", true, false, C_LIKE),
            "c" | "h" | "cpp" | "c++" | "cc" | "hpp" | "cs" | "csharp" | "java" | "kotlin" | "kt" | "swift"
            | "scala" | "go" | "js" | "javascript" | "jsx" | "ts" | "typescript" | "tsx" | "mjs" | "php" | "dart"
            | "zig" | "proto" | "css" | "scss" => language("//", true, true, C_LIKE),
            "json" | "jsonc" | "json5" => language("//", true, false, C_LIKE),
            "sh" | "bash" | "zsh" | "fish" | "shell" | "console" | "py" | "python" | "rb" | "ruby" | "perl" | "pl"
            | "yaml" | "yml" | "toml" | "ini" | "conf" | "make" | "makefile" | "dockerfile" | "r" | "elixir" | "ex"
            | "nix" | "cmake" => language("#", false, true, SCRIPT),
            "sql" | "lua" | "haskell" | "hs" | "elm" => language("--", false, true, SQL),
            _ => None,
        }
    }

    /// One line in colours.
    pub fn colour(&self, line: &str, theme: Theme, in_comment: &mut InComment) -> Vec<Span<'static>> {
        let mut spans = Spans { all: Vec::new(), plain: String::new() };
        let mut rest = line;
        while let Some(character) = rest.chars().next() {
            if *in_comment {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                *in_comment = !rest[..end].ends_with("*/");
                spans.push(&rest[..end], theme.dim());
                rest = &rest[end..];
                continue;
            }
            let (length, style) = if self.block_comments && rest.starts_with("/*") {
                *in_comment = true;
                (2, Some(theme.dim()))
            } else if self.begins_comment(rest, &spans) {
                (rest.len(), Some(theme.dim()))
            } else if character == '"' || character == '`' || (character == '\'' && self.single_quotes) {
                (string_end(rest, character), Some(theme.string()))
            } else if character.is_ascii_digit() {
                (run(rest, |c| c.is_alphanumeric() || c == '.' || c == '_'), Some(theme.number()))
            } else if character.is_alphabetic() || character == '_' {
                let length = run(rest, |c| c.is_alphanumeric() || c == '_');
                (length, self.is_keyword(&rest[..length]).then(|| theme.keyword()))
            } else {
                (character.len_utf8(), None)
            };
            match style {
                Some(style) => spans.push(&rest[..length], style),
                None => spans.plain.push_str(&rest[..length]),
            }
            rest = &rest[length..];
        }
        spans.finish()
    }

    /// A `#` inside a word does not begin a comment.
    fn begins_comment(&self, rest: &str, before: &Spans) -> bool {
        rest.starts_with(self.line_comment)
            && (self.line_comment != "#" || before.plain.is_empty() || before.plain.ends_with(char::is_whitespace))
    }

    fn is_keyword(&self, word: &str) -> bool {
        self.keywords.contains(&word) || (self.keywords == SQL && SQL.contains(&word.to_ascii_lowercase().as_str()))
    }
}

struct Spans {
    all: Vec<Span<'static>>,
    plain: String,
}

impl Spans {
    fn push(&mut self, text: &str, style: Style) {
        self.flush();
        self.all.push(Span::styled(text.to_owned(), style));
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.all.push(Span::raw(std::mem::take(&mut self.plain)));
        }
    }

    fn finish(mut self) -> Vec<Span<'static>> {
        self.flush();
        self.all
    }
}

/// The position after the closing quote, or the end of the line.
fn string_end(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            other if other == quote => return place + other.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn run(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|character| !belongs(character)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEME: Theme = Theme { colour: true };

    fn coloured(language: &str, line: &str) -> Vec<(String, Style)> {
        let language = Language::named(language).into_iter().next();
        let spans = language.map(|language| language.colour(line, THEME, &mut false)).unwrap_or_default();
        spans.into_iter().map(|span| (span.content.into_owned(), span.style)).collect()
    }

    #[test]
    fn words_strings_numbers_and_comments_have_their_colours_and_the_text_stays() {
        let line = r#"let x: &'a str = "a \" b" + 0x1f; // let it be"#;
        let spans = coloured("rust", line);
        assert_eq!(spans.iter().map(|(text, _)| text.as_str()).collect::<String>(), line);
        let of = |style: Style| spans.iter().filter(|s| s.1 == style).map(|s| s.0.as_str()).collect::<Vec<_>>();
        assert_eq!(of(THEME.keyword()), ["let"]);
        assert_eq!(of(THEME.string()), [r#""a \" b""#]);
        assert_eq!(of(THEME.number()), ["0x1f"]);
        assert_eq!(of(THEME.dim()), ["// let it be"]);
        assert_eq!(coloured("sh", "a#b # c").last().map(|s| s.0.clone()), Some("# c".to_owned()));
        assert!(Language::named("prolog").is_none());
    }

    #[test]
    fn a_comment_goes_on_over_lines() {
        let mut open = false;
        let mut colour = |line| Language::named("c").map(|language| language.colour(line, THEME, &mut open));
        colour("a /* b");
        let spans = colour("c */ d").unwrap_or_default();
        assert_eq!((spans[0].content.as_ref(), spans[0].style, open), ("c */", THEME.dim(), false));
    }
}
