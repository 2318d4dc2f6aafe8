//! Losses of power, played: everything that the store asked of its disk is written down; at every moment, what was not
//! synced yet is dropped, kept or torn at sectors of 512 bytes, and the store is opened on what is left. What was
//! acknowledged is there, what was not is there as a whole or not at all, and the store works on.

use super::vfs::{Disk, Op, Which};
use super::{Image, STEPS, Shelf, states_after};
use crate::sweep::{full, only, share};
use std::sync::Mutex;

const SECTOR: usize = 512;

/// Steps that are recorded: most of them each in a store opened anew, the last ones in one that stays open.
const RECORDED: usize = 13 * STEPS;
const RESIDENT: usize = 6 * STEPS;

/// Moments that an ordinary run of the tests tries, and seeds for each moment.
const SHARE: usize = 40;
const SEEDS: u64 = 6;

/// What was recorded, from this image on.
struct Tape {
    shelf: Shelf,
    from: Image,
    ops: Vec<Op>,
}

impl Tape {
    fn record() -> Self {
        let shelf = Shelf::new();
        let from = shelf.image();
        let disk = Disk::below(&shelf.root);
        let mut handle = None;
        let mut at = 0;
        while at < RECORDED {
            let mut store = shelf.open().unwrap();
            let many = if at + RESIDENT < RECORDED { 1 } else { RESIDENT };
            for _ in 0..many {
                handle = shelf.step(&mut store, at, handle.as_deref()).unwrap();
                at += 1;
                disk.told(at);
            }
            store.rest();
        }
        let ops = disk.take();
        Self { shelf, from, ops }
    }

    /// The store after a loss of power before operation `k`.
    fn lost(&self, ops: &[Op], seed: u64) -> Image {
        let mut dice = Dice::new(seed, ops.len());
        let mut image = self.from.clone();
        for which in [Which::Database, Which::Log] {
            let own = |op: &&Op| match op {
                Op::Write(of, ..) | Op::Truncate(of, _) | Op::Sync(of) => *of == which,
                Op::Told(_) => false,
            };
            let ops: Vec<&Op> = ops.iter().filter(own).collect();
            let synced = ops.iter().rposition(|op| matches!(op, Op::Sync(_))).map_or(0, |at| at + 1);
            let file = match which {
                Which::Database => &mut image.database,
                Which::Log => &mut image.log,
            };
            ops[..synced].iter().for_each(|op| apply(file, op, &mut Dice::Keep));
            ops[synced..].iter().for_each(|op| apply(file, op, &mut dice));
        }
        image
    }

    /// What does not hold after a loss of power before operation `k`.
    fn check(&self, ops: &[Op], k: usize, seed: u64) -> Result<(), String> {
        self.shelf.put(&self.lost(&ops[..k], seed));
        let told = ops[..k].iter().filter_map(|op| if let Op::Told(steps) = op { Some(*steps) } else { None });
        let told = told.max().unwrap_or(0);
        self.shelf.faults()?;
        let states = self.shelf.states();
        if states != states_after(told) && states != states_after(told + 1) {
            return Err(format!("{told} steps were acknowledged, and this is there: {states:?}"));
        }
        let again = RECORDED.next_multiple_of(STEPS);
        let work = self.shelf.open().and_then(|mut store| self.shelf.step(&mut store, again, None));
        work.map(drop).map_err(|error| format!("it does not work on: {error}"))
    }

    /// What does not hold at these moments.
    fn sweep(&self, ops: &[Op], moments: &[usize], seeds: u64) -> Vec<String> {
        let mut bad = Vec::new();
        for k in moments {
            for seed in 0..seeds {
                bad.extend(self.check(ops, *k, seed).err().map(|why| format!("{k}:{seed}: {why}")));
            }
        }
        bad
    }
}

/// Does to a file what became of an operation that was not synced.
fn apply(file: &mut Vec<u8>, op: &Op, dice: &mut Dice) {
    match op {
        Op::Write(_, at, bytes) => {
            let mut done = 0;
            while done < bytes.len() {
                let from = at + done;
                let len = (SECTOR - from % SECTOR).min(bytes.len() - done);
                let kept = dice.kept(len);
                if kept > 0 {
                    file.resize(file.len().max(from + kept), 0);
                    file[from..from + kept].copy_from_slice(&bytes[done..done + kept]);
                }
                done += len;
            }
        }
        Op::Truncate(_, size) if dice.kept(1) > 0 => file.resize(*size, 0),
        Op::Truncate(..) | Op::Sync(_) | Op::Told(_) => {}
    }
}

/// What becomes of what was not synced: with seed 0 nothing is kept, with seed 1 everything.
enum Dice {
    Drop,
    Keep,
    Roll(u64),
}

impl Dice {
    fn new(seed: u64, k: usize) -> Self {
        match seed {
            0 => Self::Drop,
            1 => Self::Keep,
            seed => Self::Roll((seed << 32 | k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        }
    }

    /// How many bytes of a sector are kept.
    fn kept(&mut self, len: usize) -> usize {
        let Self::Roll(state) = self else { return if matches!(self, Self::Keep) { len } else { 0 } };
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        match *state >> 60 {
            0..8 => len,
            8..14 => 0,
            _ => (*state >> 20) as usize % (len + 1),
        }
    }
}

/// One recording for all tests, which take turns: they share its store's place.
static TAPE: Mutex<Option<Tape>> = Mutex::new(None);

fn with_tape<T>(body: impl FnOnce(&Tape) -> T) -> T {
    // A test that failed leaves nothing half done that the next one would see.
    let mut tape = TAPE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    body(tape.get_or_insert_with(Tape::record))
}

#[test]
fn what_was_acknowledged_survives_every_loss_of_power() {
    with_tape(|tape| {
        let moments: Vec<usize> = (0..=tape.ops.len()).collect();
        let moments = match only().and_then(|point| point.split(':').next()?.parse().ok()) {
            Some(k) => vec![k],
            None if full() => moments,
            None => share(&moments, SHARE),
        };
        let bad = tape.sweep(&tape.ops, &moments, SEEDS);
        let all = moments.len() as u64 * SEEDS;
        assert!(bad.is_empty(), "{} of {all} losses, moment:seed\n{}", bad.len(), bad.join("\n"));
        let checkpoints = tape.ops.iter().filter(|op| matches!(op, Op::Sync(Which::Database))).count();
        assert!(checkpoints > 2, "{checkpoints} checkpoints in {} operations", tape.ops.len());
    });
}

/// A disk that only says that it has synced, as SQLite without its syncs would have it.
#[test]
fn syncs_that_are_none_are_seen() {
    with_tape(|tape| {
        let ops: Vec<Op> = tape.ops.iter().filter(|op| !matches!(op, Op::Sync(_))).cloned().collect();
        let moments = share(&(0..=ops.len()).collect::<Vec<_>>(), 12);
        let bad = tape.sweep(&ops, &moments, 3);
        assert!(bad.iter().any(|why| why.contains("were acknowledged")), "{bad:?}");
        assert!(bad.len() > 6, "{bad:?}");
    });
}

/// An answer that is given when the step begins.
#[test]
fn an_answer_before_the_commit_is_seen() {
    with_tape(|tape| {
        let mut ops = tape.ops.clone();
        for op in &mut ops {
            if let Op::Told(steps) = op {
                *steps += 1;
            }
        }
        let after = ops.iter().position(|op| matches!(op, Op::Told(9))).expect("a step");
        let found = tape.check(&ops, after + 1, 1);
        assert!(found.as_ref().is_err_and(|why| why.contains("9 steps were acknowledged")), "{found:?}");
    });
}
