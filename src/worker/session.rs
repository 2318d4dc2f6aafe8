//! Which session an agent is asked to continue, and which one it says that it does.

use super::{Said, is_uuid};
use crate::domain::outcome::{Report, clean};
use crate::error::Code;

/// What is known of the session of one turn.
#[derive(Debug)]
pub(super) struct Session {
    asked: Option<String>,
    named: Option<String>,
    /// The id of another one than it should be.
    wrong: Option<String>,
}

impl Session {
    /// The session of a turn that continues this one, or begins one.
    pub(super) fn new(resume: Option<&str>) -> Self {
        Self { asked: resume.map(str::to_owned), named: None, wrong: None }
    }

    fn expected(&self) -> Option<&str> {
        self.asked.as_deref().or(self.named.as_deref())
    }

    /// Takes the id that the agent reports.
    pub(super) fn reported(&mut self, id: &str, said: &mut Vec<Said>) {
        match self.expected() {
            Some(asked) if asked != id => {
                let got = clean(id);
                said.push(Said::WrongSession { asked: asked.to_owned(), got: got.clone() });
                self.wrong = Some(got);
            }
            // An id of another form could never be given back to the agent, so the session counts as unnamed.
            _ if !is_uuid(id) => {}
            _ if self.named.is_some() => {}
            _ => {
                self.named = Some(id.to_owned());
                said.push(Said::Session(id.to_owned()));
            }
        }
    }

    /// The id that it reported first, once it did.
    pub(super) fn named(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// Whether one was asked for.
    pub(super) fn is_resumed(&self) -> bool {
        self.asked.is_some()
    }

    /// The report on a turn that another session answered.
    pub(super) fn mismatch(&self) -> Option<Report> {
        let got = self.wrong.as_ref()?;
        let words = format!("session {} was asked for and {got} answered", self.expected().unwrap_or_default());
        Some(Report { broken: true, ..Report::ambiguous(Code::ResumeMismatch, words) })
    }

    /// The id for the record: of the session that answered.
    pub(super) fn id(self) -> Option<String> {
        self.wrong.or(self.named).filter(|id| !id.is_empty())
    }
}
