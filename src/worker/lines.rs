//! Cuts a stream of bytes into lines, in bounded memory. It knows nothing of what the lines say.

/// The longest line that is kept. A longer one is counted and dropped.
pub(super) const LINE_MAX: usize = 4 << 20;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its bytes.
    Whole(Vec<u8>),
    /// It was longer than [`LINE_MAX`]; this many bytes.
    TooLong(u64),
}

/// The beginning of a line whose end has not been seen.
#[derive(Debug, Default)]
pub(super) struct Lines {
    kept: Vec<u8>,
    /// How long it is, when it is too long to be kept.
    dropped: Option<u64>,
}

impl Lines {
    /// Takes the next bytes and gives every line that they end.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            self.keep(piece);
            if pieces.peek().is_some() {
                lines.push(self.cut());
            }
        }
        lines
    }

    /// What is left of a last line that has no end; `None` when there is nothing.
    pub(super) fn rest(&mut self) -> Option<Line> {
        (self.dropped.is_some() || !self.kept.is_empty()).then(|| self.cut())
    }

    fn keep(&mut self, piece: &[u8]) {
        let length = self.dropped.unwrap_or(self.kept.len() as u64) + piece.len() as u64;
        if length <= LINE_MAX as u64 {
            self.kept.extend_from_slice(piece);
        } else {
            self.kept = Vec::new();
            self.dropped = Some(length);
        }
    }

    fn cut(&mut self) -> Line {
        match self.dropped.take() {
            Some(length) => Line::TooLong(length),
            None => Line::Whole(std::mem::take(&mut self.kept)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let bytes = b"one\n\ntwo\r\nrest";
        let mut whole = Lines::default();
        let mut lines = whole.feed(bytes);
        lines.extend(whole.rest());
        let expected: Vec<Line> =
            [&b"one"[..], b"", b"two\r", b"rest"].map(|line| Line::Whole(line.to_vec())).into_iter().collect();
        assert_eq!(lines, expected);

        let mut bitwise = Lines::default();
        let mut lines: Vec<Line> = bytes.iter().flat_map(|byte| bitwise.feed(&[*byte])).collect();
        lines.extend(bitwise.rest());
        assert_eq!(lines, expected);
        assert_eq!(bitwise.rest(), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_counted_and_not_kept() {
        let mut lines = Lines::default();
        let block = vec![b'x'; LINE_MAX];
        assert_eq!(lines.feed(&block), []);
        assert_eq!(lines.kept.len(), LINE_MAX);
        assert_eq!(lines.feed(b"y"), []);
        assert_eq!(lines.kept.capacity(), 0);
        assert_eq!(lines.feed(b"z\nnext\n"), [Line::TooLong(LINE_MAX as u64 + 2), Line::Whole(b"next".to_vec())]);
    }
}
