//! Every mode over the same records, and every way in which a write can fail.

use super::*;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Broken(ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

const COLUMNS: &[&str] = &["job", "detail"];

fn printed(mode: Mode, answer: &Answer) -> String {
    let page = Page::default();
    let mut printer = Printer::on(Box::new(page.clone()), mode);
    printer.answer(answer);
    printer.finish(true).unwrap();
    String::from_utf8(page.0.lock().unwrap().clone()).unwrap()
}

fn rows() -> Answer {
    let row = Row::new().with("job", 7).with("detail", "a\tb\u{1b}").with("more", true);
    Answer::rows(COLUMNS, vec![row, Row::new().with("job", 8)])
}

#[test]
fn every_mode_prints_the_same_records() {
    let check = |mode: Mode, text: &str| assert_eq!(printed(mode, &rows()), text);
    check(Mode::Lines, "7\ta\\tb\\x1b\n8\t\n");
    check(Mode::Nul, "7\ta\tb\u{1b}\08\t\0");
    check(Mode::Json, "{\"job\":7,\"detail\":\"a\\tb\\u001b\",\"more\":true}\n{\"job\":8}\n");
    check(Mode::Table(Look { color: false, width: None }), "JOB  DETAIL\n  7  a\\tb\\x1b\n  8  -\n");
    let template = Template::parse("%(more)=%(job)", &["job", "more"]).unwrap();
    check(Mode::Format(template.clone(), false), "true=7\n=8\n");
    check(Mode::Format(template, true), "true=7\0=8\0");
}

#[test]
fn what_was_made_prints_as_its_id_only() {
    let made = || Answer::Id(vec![Row::new().with("handle", "1.1-abc").with("job", 1)]);
    assert_eq!(printed(Mode::Table(Look { color: true, width: Some(80) }), &made()), "1.1-abc\n");
    assert_eq!(printed(Mode::Lines, &made()), "1.1-abc\n");
    assert_eq!(printed(Mode::Json, &made()), "{\"handle\":\"1.1-abc\",\"job\":1}\n");
}

#[test]
fn a_followed_table_has_one_header() {
    let page = Page::default();
    let mut printer = Printer::on(Box::new(page.clone()), Mode::Table(Look { color: false, width: None }));
    assert!(printer.row(COLUMNS, &Row::new().with("job", 1).with("detail", "x")));
    assert!(printer.row(COLUMNS, &Row::new().with("job", 2).with("detail", "y")));
    assert_eq!(page.0.lock().unwrap().as_slice(), b"JOB  DETAIL\n  1  x\n  2  y\n");
    let columns = &["attempt", "outcome", "state", "code", "detail"];
    let page = Page::default();
    let mut printer = Printer::on(Box::new(page.clone()), Mode::Table(Look { color: false, width: Some(80) }));
    for (outcome, state, code) in [("ok", "succeeded", ""), ("ambiguous", "uncertain", "ARES_RESUME_MISMATCH")] {
        let row = Row::new().with("attempt", "1.1").with("outcome", outcome).with("state", state).with("code", code);
        assert!(printer.row(columns, &row.with("detail", "end")));
    }
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    let places: Vec<_> = text.lines().map(|line| line.find("end").or(line.find("DETAIL"))).collect();
    assert_eq!(places, [Some(53); 3], "{text}");
}

#[test]
fn failed_writes_are_told_apart() {
    let end = |kind, changed| {
        let mut printer = Printer::on(Box::new(Broken(kind)), Mode::Lines);
        assert!(!printer.row(COLUMNS, &Row::new().with("job", 1)));
        printer.finish(changed).map_err(|error| error.code)
    };
    assert_eq!(end(ErrorKind::BrokenPipe, false), Ok(()));
    assert_eq!(end(ErrorKind::BrokenPipe, true), Err(Code::OutputLost));
    assert_eq!(end(ErrorKind::StorageFull, false), Err(Code::OutputFailed));
    assert_eq!(end(ErrorKind::StorageFull, true), Err(Code::OutputLost));
}
