//! The little of roff that the manual needs, and the form that its texts are written in: paragraphs, `# HEADING`,
//! `* term: text`, and indented lines that stay as they are.

const VERSION: &str = concat!("ares ", env!("CARGO_PKG_VERSION"));

/// The date of that version. It is written here and changed with it, so that the pages are the same on every day.
const DATE: &str = "2026-11-30";

/// Text as roff wants it: no line begins with a command, hyphens and quotes stay what they are.
pub(super) fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    let line = |line: &str| if line.starts_with('.') { format!("\\&{line}") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Lines that stay as they are.
pub(super) fn verbatim(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(plain).collect();
    format!(".nf\n{}\n.fi\n", lines.join("\n"))
}

/// A term and what is to be said of it, in paragraphs.
pub(super) fn item(term: &str, text: &str) -> String {
    let paragraphs: Vec<String> = text.split("\n\n").map(plain).collect();
    format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), paragraphs.join("\n.IP\n"))
}

/// The beginning of a page.
pub(super) fn head(name: &str, section: u8, about: &str) -> String {
    let name = plain(name);
    format!(".TH {name} {section} \"{DATE}\" \"{VERSION}\" \"ares manual\"\n.SH NAME\n{name} \\- {}\n", plain(about))
}

/// The heading of a section.
pub(super) fn section(name: &str) -> String {
    format!(".SH \"{}\"\n", plain(name))
}

/// The pages to read next.
pub(super) fn see<'a>(pages: impl Iterator<Item = (&'a str, u8)>) -> String {
    let names: Vec<String> = pages.map(|(name, section)| format!("\\fB{}\\fR({section})", plain(name))).collect();
    format!("{}{}\n", section("SEE ALSO"), names.join(",\n"))
}

/// A text in the form of the manual's texts.
pub(super) fn text(source: &str) -> String {
    let mut out = String::new();
    let mut fresh = true;
    for block in source.trim_end().split("\n\n") {
        if let Some(heading) = block.strip_prefix("# ") {
            out += &section(heading);
            fresh = true;
            continue;
        }
        if block.starts_with("* ") {
            for line in block.lines() {
                let (term, text) =
                    line.strip_prefix("* ").and_then(|line| line.split_once(": ")).expect("* term: text");
                out += &item(term, text);
            }
            fresh = false;
            continue;
        }
        out += if fresh { "" } else { ".PP\n" };
        out += &if block.starts_with("    ") { verbatim(block) } else { plain(block) + "\n" };
        fresh = false;
    }
    out
}

#[test]
fn texts_become_roff() {
    let page = text("One.\n\n    a 'b'\n    .c\n\n# HEAD UP\n\n* -x: y-z\n* p: q\n\n.end\n");
    let wanted = "One.\n.PP\n.nf\n    a \\(aqb\\(aq\n    .c\n.fi\n.SH \"HEAD UP\"\n.TP\n\\fB\\-x\\fR\ny\\-z\n.TP\n\\fBp\\fR\nq\n\
                  .PP\n\\&.end\n";
    assert_eq!(page, wanted);
}
