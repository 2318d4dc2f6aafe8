//! Parts of the schema that only some stores need. Every process parses the schema of its store before it does anything,
//! so a store has the tables that it uses: a section is laid in the transaction that first writes to it, for good. A
//! migration that changes one changes it where it was laid.

use super::{Ledger, Sql as _, View, open};
use crate::error::Result;

/// A part of the schema beside `schema.sql`, each in its file under `sections/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Witnesses of permits that need one, and the keys that may sign.
    Approvals,
    /// Who is told of events, and reviews.
    Outbox,
    /// What may be spent, and what is reserved of it.
    Budgets,
    /// Bounded chains of jobs.
    Workflows,
    /// The models that workers were found to have.
    Catalog,
}

impl Section {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Approvals, Self::Outbox, Self::Budgets, Self::Workflows, Self::Catalog];

    /// A table of it: where that is, all of the section is.
    fn table(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Outbox => "deliveries",
            Self::Budgets => "budgets",
            Self::Workflows => "workflows",
            Self::Catalog => "catalog",
        }
    }

    /// What lays it.
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Approvals => include_str!("sections/approvals.sql"),
            Self::Outbox => include_str!("sections/outbox.sql"),
            Self::Budgets => include_str!("sections/budgets.sql"),
            Self::Workflows => include_str!("sections/workflows.sql"),
            Self::Catalog => include_str!("sections/catalog.sql"),
        }
    }
}

impl View<'_> {
    /// Whether this store has the section; where it has not, the section's tables are as good as empty.
    pub fn has(&self, section: Section) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)";
        let mut statement = self.connection.prepare_cached(sql).sql("look for a section")?;
        statement.query_row([section.table()], |row| row.get(0)).sql("look for a section")
    }
}

impl Ledger<'_> {
    /// Sees to it that the store has the section before something is written to it.
    pub fn lay(&mut self, section: Section) -> Result<()> {
        if self.has(section)? {
            return Ok(());
        }
        self.connection.execute_batch(&open::without_comments(section.sql())).sql("lay a section")
    }
}
