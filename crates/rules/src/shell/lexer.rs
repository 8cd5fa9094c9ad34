//! Splits a script into simple commands.

use std::iter::Peekable;
use std::str::Chars;

use super::Reading;

/// Reads a script. What is nested in it is queued, so the stack does not grow with the text.
pub(super) fn read(text: &str, depth: usize, reading: &mut Reading<'_>) {
    let mut lexer = Lexer {
        characters: text.chars().peekable(),
        depth,
        reading,
        words: Vec::new(),
        files: Vec::new(),
        word: None,
        is_file: false,
        heredocs: Vec::new(),
    };
    lexer.run();
}

struct Lexer<'t, 'r, 'h> {
    characters: Peekable<Chars<'t>>,
    depth: usize,
    reading: &'r mut Reading<'h>,
    words: Vec<String>,
    files: Vec<String>,
    /// The word that is being read; `Some("")` for `''`.
    word: Option<String>,
    /// Whether the word is the file of a redirection.
    is_file: bool,
    /// The delimiters of here-documents whose text begins on the next line.
    heredocs: Vec<Heredoc>,
}

struct Heredoc {
    delimiter: String,
    is_indented: bool,
}

impl Lexer<'_, '_, '_> {
    fn run(&mut self) {
        while let Some(character) = self.characters.next() {
            match character {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.read_heredocs();
                }
                // Parentheses only group: what is inside runs as well.
                ';' | '&' | '|' | '(' | ')' => self.end_command_at(character),
                '<' | '>' => self.redirection(character),
                '#' if self.word.is_none() => {
                    while self.characters.next_if(|it| *it != '\n').is_some() {}
                }
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '`' => self.backticks(),
                '\\' => match self.characters.next() {
                    Some('\n') => {}
                    Some(escaped) => self.push(escaped),
                    None => self.reading.script.is_complete = false,
                },
                '$' => self.dollar(),
                other => self.push(other),
            }
        }
        self.end_command();
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.is_file) {
            self.files.push(word);
        } else {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_file = false;
        let (words, files) = (std::mem::take(&mut self.words), std::mem::take(&mut self.files));
        self.reading.finish(words, &files, self.depth);
    }

    fn end_command_at(&mut self, character: char) {
        // `&>file` redirects both outputs.
        if character == '&' && self.characters.peek() == Some(&'>') {
            self.end_word();
            return;
        }
        self.end_command();
    }

    /// Reads what is behind `<` or `>`.
    fn redirection(&mut self, character: char) {
        // The number of a descriptor, as in `2>`.
        if self.word.as_deref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        if self.characters.next_if_eq(&'(').is_some() {
            let inner = self.enclosed();
            self.nest(inner);
            self.word.get_or_insert_default().push_str("<()");
            return;
        }
        if character == '<' && self.characters.next_if_eq(&'<').is_some() {
            if self.characters.next_if_eq(&'<').is_some() {
                // A here-string is an argument as far as it matters: `bash <<< 'rm x'`.
                return;
            }
            self.heredoc();
            return;
        }
        while self.characters.next_if(|it| matches!(it, '>' | '|' | '&')).is_some() {}
        self.is_file = true;
    }

    /// Reads the delimiter of a here-document.
    fn heredoc(&mut self) {
        let is_indented = self.characters.next_if_eq(&'-').is_some();
        while self.characters.next_if(|it| matches!(it, ' ' | '\t')).is_some() {}
        let mut delimiter = String::new();
        let is_part =
            |it: &char| !it.is_whitespace() && !matches!(it, ';' | '&' | '|' | '<' | '>' | ')');
        while let Some(character) = self.characters.next_if(is_part) {
            if !matches!(character, '\'' | '"' | '\\') {
                delimiter.push(character);
            }
        }
        self.heredocs.push(Heredoc { delimiter, is_indented });
    }

    /// Reads the texts of here-documents. Whether a shell reads one cannot be told from here (`cat | sh`),
    /// so each is read as a script as well; a text that is none yields commands that match nothing.
    fn read_heredocs(&mut self) {
        for Heredoc { delimiter, is_indented } in std::mem::take(&mut self.heredocs) {
            let mut body = String::new();
            while let Some(line) = self.line() {
                let bare = line.strip_suffix('\n').unwrap_or(&line);
                let compared = if is_indented { bare.trim_start_matches('\t') } else { bare };
                if compared == delimiter {
                    break;
                }
                body.push_str(&line);
            }
            self.nest(body);
        }
    }

    /// Returns the next line with its end; `None` after the last.
    fn line(&mut self) -> Option<String> {
        let mut line = String::from(self.characters.next()?);
        while !line.ends_with('\n') {
            let Some(character) = self.characters.next() else { break };
            line.push(character);
        }
        Some(line)
    }

    fn single_quoted(&mut self) {
        let word = self.word.get_or_insert_default();
        for character in self.characters.by_ref() {
            if character == '\'' {
                return;
            }
            word.push(character);
        }
        self.reading.script.is_complete = false;
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next() {
            match character {
                '"' => return,
                '\\' => match self.characters.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                '`' => self.backticks(),
                '$' if self.characters.peek() == Some(&'(') => self.dollar(),
                other => self.push(other),
            }
        }
        self.reading.script.is_complete = false;
    }

    fn backticks(&mut self) {
        let mut inner = String::new();
        while let Some(character) = self.characters.next() {
            match character {
                '`' => {
                    self.nest(inner);
                    self.word.get_or_insert_default().push_str("$()");
                    return;
                }
                '\\' => inner.extend(self.characters.next()),
                other => inner.push(other),
            }
        }
        self.nest(inner);
        self.reading.script.is_complete = false;
    }

    /// Reads what is behind `$`.
    fn dollar(&mut self) {
        match self.characters.peek() {
            Some('(') => {
                self.characters.next();
                let inner = self.enclosed();
                self.nest(inner);
                self.word.get_or_insert_default().push_str("$()");
            }
            Some('\'') => {
                self.characters.next();
                self.ansi_quoted();
            }
            Some('"') => {}
            Some(_) | None => self.push('$'),
        }
    }

    /// Reads `$'…'`, in which a name can be spelled in numbers.
    fn ansi_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next() {
            match character {
                '\'' => return,
                '\\' => {
                    let decoded = self.escape();
                    self.word.get_or_insert_default().extend(decoded);
                }
                other => self.push(other),
            }
        }
        self.reading.script.is_complete = false;
    }

    fn escape(&mut self) -> Option<char> {
        let escaped = self.characters.next()?;
        let (digits_max, radix) = match escaped {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            'r' => return Some('\r'),
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => return Some(' '),
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => (2, 8),
            other => return Some(other),
        };
        let mut number = escaped.to_digit(8).filter(|_| radix == 8).unwrap_or_default();
        for _ in 0..digits_max {
            let Some(digit) = self.characters.next_if(|it| it.is_digit(radix)) else { break };
            number =
                number.wrapping_mul(radix).wrapping_add(digit.to_digit(radix).unwrap_or_default());
        }
        char::from_u32(number).filter(|decoded| *decoded != '\0')
    }

    /// Returns the text up to the parenthesis that closes the one before.
    fn enclosed(&mut self) -> String {
        let (mut text, mut open, mut quote) = (String::new(), 1_usize, None);
        while let Some(character) = self.characters.next() {
            match (quote, character) {
                (_, '\\') if quote != Some('\'') => {
                    text.push('\\');
                    text.extend(self.characters.next());
                    continue;
                }
                (None, '\'' | '"') => quote = Some(character),
                (Some(begun), _) if begun == character => quote = None,
                (None, '(') => open += 1,
                (None, ')') => {
                    open -= 1;
                    if open == 0 {
                        return text;
                    }
                }
                (_, _) => {}
            }
            text.push(character);
        }
        self.reading.script.is_complete = false;
        text
    }

    fn nest(&mut self, script: String) {
        self.reading.nested.push_back((script, self.depth + 1));
    }
}
