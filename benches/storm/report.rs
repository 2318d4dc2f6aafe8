//! What came of a storm, as tables.

use super::Told;
use super::judge::{MUST_BE_ZERO, table};
use super::look::Moment;
use super::strike::Victim;
use std::fmt::{self, Display, Formatter, Write as _};
use std::time::Duration;

/// No moment may have fewer of the kills, in percent.
const SHARE_MIN: usize = 3;

/// Examples that are told of each count.
const EXAMPLES: usize = 5;

fn ms(time: Option<&Duration>) -> String {
    time.map_or_else(|| "none".to_owned(), |time| format!("{} ms", time.as_millis()))
}

impl Told {
    /// Whether nothing is wrong that must not be.
    pub(crate) fn good(&self) -> bool {
        self.wrong.values().all(Vec::is_empty)
    }

    /// The moments that had too few of the kills.
    pub(crate) fn scarce(&self) -> Vec<&'static str> {
        let had = |moment: &Moment| self.kills.iter().filter(|kill| kill.moment == *moment).count();
        let few = Moment::ALL.into_iter().filter(|moment| had(moment) * 100 < self.kills.len() * SHARE_MIN);
        few.map(Moment::words).collect()
    }

    /// The numbers in a few lines.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::from("| what | must be | found |\n|---|---|---|\n");
        let mut line = |what: &str, must: &str, found: String| {
            let _infallible = writeln!(text, "| {what} | {must} | {found} |");
        };
        line("kills", "", self.kills.len().to_string());
        line("jobs, attempts", "", format!("{}, {}", self.jobs, self.counts.attempts));
        let (submissions, ends) = self.counts.acknowledged;
        line("acknowledged: submissions, ends", "", format!("{submissions}, {ends}"));
        for name in MUST_BE_ZERO {
            line(name, "0", self.wrong[name].len().to_string());
        }
        let counts = &self.counts;
        line("uncertain, and nobody can tell", "", counts.uncertain.to_string());
        let decided = format!("{}, {}, {}", counts.retried, counts.adopted, counts.held);
        line("decided: again, as its effect speaks, held and offered again", "", decided);
        let waits = format!("{}, {}", ms(self.waits.get(self.waits.len() / 2)), ms(self.waits.last()));
        line("from a kill to the end of the next reconcile: median, worst", "", waits);
        text
    }

    /// Who was killed when.
    pub(crate) fn moments(&self) -> String {
        let words = Victim::ALL.map(Victim::word).join(" | ");
        let mut text = format!("| moment | {words} | all | share |\n|---|{}\n", "---|".repeat(Victim::ALL.len() + 2));
        let table = table(&self.kills);
        for moment in Moment::ALL {
            let of = |victim: &Victim| table.get(&(moment, *victim)).copied().unwrap_or(0);
            let each = Victim::ALL.map(|victim| match of(&victim) {
                0 => String::new(),
                count => count.to_string(),
            });
            let sum: usize = Victim::ALL.iter().map(of).sum();
            let share = sum as f64 * 100.0 / self.kills.len().max(1) as f64;
            let _infallible = writeln!(text, "| {} | {} | {sum} | {share:.1} % |", moment.words(), each.join(" | "));
        }
        text
    }
}

/// All of it, what is wrong by examples, and how to look again.
impl Display for Told {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let took = self.took.as_secs();
        writeln!(f, "{}\n{}\nseed {}, {} looks, {took} s", self.summary(), self.moments(), self.seed, self.looks)?;
        for (name, found) in self.wrong.iter().filter(|(_, found)| !found.is_empty()) {
            writeln!(f, "{name}: {}", found.len())?;
            found.iter().take(EXAMPLES).try_for_each(|one| writeln!(f, "  {one}"))?;
        }
        Ok(())
    }
}
