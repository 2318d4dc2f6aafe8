//! Replaces known values in a stream of bytes by marks that name them, in pieces of any size and in memory that depends
//! on the values only. It knows values for as long as it lives and shows none of them.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// A value shorter than this many bytes is left as it is: it would be found in words that have nothing to do with it.
pub const VALUE_MIN: usize = 8;

/// Values that are words of everyone's output and nobody's secret.
const PLAIN: &[&str] = &[
    "/bin/bash",
    "/dev/null",
    "/usr/bin",
    "127.0.0.1",
    "anonymous",
    "development",
    "disabled",
    "localhost",
    "password",
    "postgres",
    "production",
    "required",
    "undefined",
    "unlimited",
    "username",
    "xterm-256color",
];

/// Whether a value is looked for; the blanks around it are not part of it.
fn counts(value: &str) -> bool {
    let one_character = || value.bytes().collect::<BTreeSet<_>>().len() == 1;
    value.len() >= VALUE_MIN && !one_character() && !PLAIN.contains(&value.to_lowercase().as_str())
}

/// One form of one value, searched for as Knuth, Morris and Pratt do: however a text is chosen, each byte of it is
/// looked at about once.
struct Pattern {
    text: Vec<u8>,
    /// For each beginning of the text, the length of its longest proper end that is a beginning too. No variable is
    /// longer than 128 KiB; small numbers keep many of them small.
    back: Vec<u32>,
    mark: Rc<str>,
}

impl Pattern {
    fn new(text: &str, mark: &Rc<str>) -> Self {
        let text = text.as_bytes().to_vec();
        let mut back = vec![0; text.len()];
        let mut length = 0;
        for at in 1..text.len() {
            while length > 0 && text[length] != text[at] {
                length = back[length - 1] as usize;
            }
            length += usize::from(text[length] == text[at]);
            back[at] = length as u32;
        }
        Self { text, back, mark: Rc::clone(mark) }
    }

    /// Goes on from having found `depth` bytes of it, tells the end of each find, and gives how much is found at the end.
    fn scan(&self, mut depth: usize, bytes: &[u8], found: &mut dyn FnMut(usize)) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            if depth == 0 {
                match bytes[at..].iter().position(|byte| *byte == self.text[0]) {
                    Some(skipped) => at += skipped,
                    None => return 0,
                }
            }
            while depth > 0 && self.text[depth] != bytes[at] {
                depth = self.back[depth - 1] as usize;
            }
            depth += usize::from(self.text[depth] == bytes[at]);
            at += 1;
            if depth == self.text.len() {
                found(at);
                depth = self.back[depth - 1] as usize;
            }
        }
        depth
    }
}

/// A stretch of the stream that is not to be seen.
struct Hit {
    start: usize,
    end: usize,
    mark: Rc<str>,
    /// Whether its mark is written already.
    marked: bool,
}

/// The filter of one stream.
pub struct Redactor {
    patterns: Rc<[Pattern]>,
    /// How much of each pattern the stream ends with.
    depths: Vec<usize>,
    /// What cannot be decided yet: the stream from `base` on.
    held: Vec<u8>,
    base: usize,
    /// In order and apart from each other, none of them all before `base`.
    hits: Vec<Hit>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("patterns", &self.patterns.len()).finish_non_exhaustive()
    }
}

impl Redactor {
    /// A filter for these names and values; `None` when none of them is one to be replaced. Each value is looked for
    /// without the blanks around it, as it is and as a JSON text has it.
    pub fn new<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut patterns = Vec::new();
        for (name, value) in values {
            let value = value.trim();
            if !counts(value) {
                continue;
            }
            // The mark may come to stand inside a JSON text, which it must not end.
            let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
            let mark: Rc<str> = format!("[{}]", name.chars().map(plain).collect::<String>()).into();
            patterns.push(Pattern::new(value, &mark));
            let quoted = serde_json::Value::from(value).to_string();
            let quoted = quoted.get(1..quoted.len() - 1).unwrap_or_default();
            if quoted != value {
                patterns.push(Pattern::new(quoted, &mark));
            }
        }
        let depths = vec![0; patterns.len()];
        let some = !patterns.is_empty();
        some.then(|| Self { patterns: patterns.into(), depths, held: Vec::new(), base: 0, hits: Vec::new() })
    }

    /// The same filter for another stream.
    #[must_use]
    pub fn another(&self) -> Self {
        let depths = vec![0; self.patterns.len()];
        Self { patterns: Rc::clone(&self.patterns), depths, held: Vec::new(), base: 0, hits: Vec::new() }
    }

    /// Takes the next bytes and appends to `out` all that is decided. What may be the beginning of a value is held back
    /// until it is known to be one or not.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let before = self.base + self.held.len();
        self.held.extend_from_slice(bytes);
        let mut found: Vec<Hit> = Vec::new();
        for (pattern, depth) in self.patterns.iter().zip(&mut self.depths) {
            let own = found.len();
            *depth = pattern.scan(*depth, bytes, &mut |end| {
                let (start, end) = (before + end - pattern.text.len(), before + end);
                match found[own..].last_mut() {
                    // A value that repeats within itself is found in every place, and is one stretch.
                    Some(last) if last.end > start => last.end = end,
                    _ => found.push(Hit { start, end, mark: Rc::clone(&pattern.mark), marked: false }),
                }
            });
        }
        self.add_all(found);
        let undecided = self.depths.iter().copied().max().unwrap_or(0);
        self.release(self.base + self.held.len() - undecided, out);
    }

    /// Appends the rest. The beginning of a value that the stream ends with, cut off or torn, is replaced where it is as
    /// long as the shortest value.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let end = self.base + self.held.len();
        let torn = self.patterns.iter().zip(&mut self.depths).filter_map(|(pattern, depth)| {
            let depth = std::mem::take(depth);
            (depth >= VALUE_MIN).then(|| Hit { start: end - depth, end, mark: Rc::clone(&pattern.mark), marked: false })
        });
        let torn = torn.collect();
        self.add_all(torn);
        self.release(end, out);
    }

    /// A whole text at once.
    pub fn text(&self, text: &str) -> String {
        let (mut filter, mut out) = (self.another(), Vec::new());
        filter.feed(text.as_bytes(), &mut out);
        filter.finish(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn add_all(&mut self, mut found: Vec<Hit>) {
        found.sort_by_key(|hit| (hit.end, hit.start));
        for hit in found {
            self.add(hit);
        }
    }

    /// Adds a find that ends where the latest one does, or later. Where two overlap no byte of either is shown.
    fn add(&mut self, hit: Hit) {
        let inside =
            |last: &Hit| !last.marked && last.start >= hit.start && (last.start, last.end) != (hit.start, hit.end);
        while self.hits.last().is_some_and(inside) {
            self.hits.pop();
        }
        match self.hits.last_mut() {
            Some(last) if last.end >= hit.end => {}
            Some(last) if last.end > hit.start && last.mark == hit.mark => last.end = hit.end,
            Some(last) if last.end > hit.start => {
                let start = last.end;
                self.hits.push(Hit { start, ..hit });
            }
            _ => self.hits.push(hit),
        }
    }

    /// Appends what comes before `safe`, where no later find can begin.
    fn release(&mut self, safe: usize, out: &mut Vec<u8>) {
        let (base, mut at) = (self.base, self.base);
        let mut over = 0;
        for hit in self.hits.iter_mut().take_while(|hit| hit.start < safe) {
            out.extend_from_slice(&self.held[at - base..hit.start.max(at) - base]);
            if !hit.marked {
                out.extend_from_slice(hit.mark.as_bytes());
                hit.marked = true;
            }
            // Of a stretch that may go on nothing is held: its mark is written, and that is all that is to be seen of it.
            at = hit.end.min(safe);
            over += usize::from(hit.end <= safe);
        }
        out.extend_from_slice(&self.held[at - base..safe - base]);
        self.hits.drain(..over);
        self.held.drain(..safe - base);
        self.base = safe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(values: &[(&str, &str)], text: &[u8], piece: usize) -> String {
        let mut filter = Redactor::new(values.iter().copied()).expect("something to replace");
        let mut out = Vec::new();
        for bytes in text.chunks(piece) {
            filter.feed(bytes, &mut out);
            let longest = filter.patterns.iter().map(|pattern| pattern.text.len()).max().unwrap_or(0);
            assert!(filter.held.len() < longest, "only what may be the beginning of a value is held back");
        }
        filter.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Whatever the pieces, the same comes out.
    fn all(values: &[(&str, &str)], text: &str, expected: &str) {
        for piece in (1..=text.len()).chain([usize::MAX]) {
            assert_eq!(filtered(values, text.as_bytes(), piece), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_value_is_replaced_wherever_it_stands_and_however_it_is_cut() {
        let values = [("TOKEN", "s3cr3t-value"), ("OTHER", "other-value")];
        all(&values, "s3cr3t-value", "[TOKEN]");
        all(&values, "a s3cr3t-values3cr3t-value\nother-valu other-value.", "a [TOKEN][TOKEN]\nother-valu [OTHER].");
        all(&values, "s3cr3t-s3cr3t-value s3cr3t-", "s3cr3t-[TOKEN] s3cr3t-");
        all(&values, "nothing of it", "nothing of it");
        assert_eq!(filtered(&values, b"", 1), "");
    }

    #[test]
    fn of_values_that_overlap_no_byte_is_shown() {
        all(&[("A", "aaaaabbbbb"), ("B", "bbbbbccccc")], "xaaaaabbbbbcccccx", "x[A][B]x");
        all(&[("LONG", "one-two-three-four"), ("PART", "two-three")], "one-two-three-four two-three", "[LONG] [PART]");
        all(&[("LONG", "one-two-three-four"), ("PART", "two-three")], "one-two-three-fou", "[LONG]");
        all(&[("LONG", "one-two-three-four"), ("PART", "two-three")], "one-two-three-x", "one-[PART]-x");
        all(&[("A", "abababab")], "xabababababababababx", "x[A]x");
        all(&[("A", "same-value"), ("B", "same-value")], "same-value", "[A]");
    }

    #[test]
    fn a_value_that_is_cut_off_at_the_end_is_replaced_when_it_is_long_enough() {
        all(&[("TOKEN", "s3cr3t-value")], "x s3cr3t-v", "x [TOKEN]");
        all(&[("TOKEN", "s3cr3t-value")], "x s3cr3t-", "x s3cr3t-");
    }

    #[test]
    fn what_would_mangle_the_output_is_left() {
        for value in ["", "short", "7letter", "         ", "========", "production", "LOCALHOST", " true \n"] {
            assert!(Redactor::new([("NAME", value)].into_iter()).is_none(), "{value:?}");
        }
        all(&[("NAME", " \teight-by\n")], "[eight-by]", "[[NAME]]");
    }

    #[test]
    fn a_json_text_of_it_is_replaced_and_stays_json() {
        let value = "-----BEGIN\n\"quoted\\\"\n";
        let line = serde_json::json!({ "text": format!("it is {value}!") }).to_string();
        let shown = filtered(&[("A\"B", value)], line.as_bytes(), 7);
        assert_eq!(shown, r#"{"text":"it is [A_B]\n!"}"#);
    }

    #[test]
    fn a_run_without_end_is_not_held() {
        // Every byte continues a find: only its mark is ever written.
        let text = "ab".repeat(1 << 20);
        assert_eq!(filtered(&[("A", "abababab")], text.as_bytes(), 64 << 10), "[A]");
        let torn = format!("{}x", "a".repeat(5000));
        assert_eq!(filtered(&[("A", &torn)], "a".repeat(1 << 20).as_bytes(), 64 << 10).len(), (1 << 20) - 5000 + 3);
    }

    #[test]
    fn its_values_are_not_printed() {
        let filter = Redactor::new([("TOKEN", "s3cr3t-value")].into_iter()).unwrap();
        assert_eq!(format!("{filter:?}"), "Redactor { patterns: 1, .. }");
        assert_eq!(filter.text("a s3cr3t-value"), "a [TOKEN]");
    }
}
