//! The real agents against a model service on loopback: what the recordings and the synthetic worker only tell. They are
//! found under `$ARES_REAL`, where `.ci/run` installs them, and each of their tests is a counted skip where they are not.

mod shape;
mod stub;

use self::stub::Stub;
use crate::harness::{Ran, bin_dir, ran, skipped};
use crate::run::{Shop, eventually, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the native programs lie in their packages; the scripts beside them only start these.
const CLAUDE: &str = "@anthropic-ai/claude-code-linux-x64/claude";
const CODEX: &str = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// What the agents are given beside the place of the service.
const KEYS: [(&str, &str); 3] =
    [("ANTHROPIC_API_KEY", "dummy"), ("STUB_KEY", "dummy"), ("CLAUDE_CODE_MAX_RETRIES", "0")];

#[expect(clippy::disallowed_methods, reason = "the tests' own switch")]
fn program(path: &str) -> Option<PathBuf> {
    let found = std::env::var_os("ARES_REAL").map(|dir| Path::new(&dir).join(path)).filter(|path| path.is_file());
    if found.is_none() {
        skipped("the real agents are not installed; .ci/run does it");
    }
    found
}

/// A store whose agent is a real one that calls the service on loopback.
struct Desk {
    shop: Shop,
    stub: Stub,
    agent: &'static str,
}

impl Desk {
    fn claude() -> Option<Self> {
        let program = program(CLAUDE)?;
        let keys = "env = [\"ANTHROPIC_BASE_URL\", \"ANTHROPIC_API_KEY\", \"CLAUDE_CODE_MAX_RETRIES\"]";
        Some(Self::new("claude", &program, keys))
    }

    fn codex() -> Option<Self> {
        let program = program(CODEX)?;
        let desk = Self::new("codex", &program, "env = [\"STUB_KEY\"]");
        std::fs::create_dir(desk.shop.path().join(".codex")).unwrap();
        desk.serve("ok");
        Some(desk)
    }

    fn new(agent: &'static str, program: &Path, keys: &str) -> Self {
        let config = format!("[worker.{agent}]\nprogram = \"{}\"\n{keys}\n", program.display());
        Self { shop: Shop::with_config(&config), stub: Stub::start(), agent }
    }

    /// Has codex call this scenario: it is told by its configuration.
    fn serve(&self, scenario: &str) {
        let config = format!(
            "model = \"stub\"\nmodel_provider = \"stub\"\n[model_providers.stub]\nname = \"stub\"\n\
             base_url = \"{}/v1\"\nenv_key = \"STUB_KEY\"\nwire_api = \"responses\"\n\
             request_max_retries = 0\nstream_max_retries = 0\n",
            self.stub.url(scenario)
        );
        std::fs::write(self.shop.path().join(".codex/config.toml"), config).unwrap();
    }

    fn submit(&self, options: &[&str], prompt: &str) -> String {
        self.shop.submit(&[&["-w", self.agent], options, &["--", prompt]].concat())
    }

    /// Runs what is queued, against this scenario.
    fn run(&self, scenario: &str, more: &[(&str, &str)]) -> Ran {
        if self.agent == "codex" {
            self.serve(scenario);
        }
        let url = self.stub.url(scenario);
        let mut command = self.shop.command(bin_dir().join("ares-run"));
        command.args(["--drain", "--quiet"]).env("ANTHROPIC_BASE_URL", url).envs(KEYS).envs(more.iter().copied());
        ran(command.output().expect("it starts"))
    }

    fn answer(&self, job: &str) -> String {
        self.shop.output(job, "result")
    }

    /// Two turns and a resume: the history crosses to the service, and only the new message to the worker.
    fn converses(&self) {
        let first = self.submit(&[], "the word is plum");
        assert_eq!(self.run("ok", &[]).status, 0, "{}", self.shop.job(&first));
        let second = self.submit(&["--continue", &first], "which word was it");
        assert_eq!(self.run("ok", &[]).status, 0, "{}", self.shop.job(&second));
        assert!(self.answer(&first).ends_with("the word is plum"), "{}", self.answer(&first));
        assert!(self.answer(&second).ends_with("which word was it"), "{}", self.answer(&second));
        let received = self.stub.received();
        let (before, after) = (received[0].to_string(), received[received.len() - 1].to_string());
        assert!(!before.contains("which word was it"));
        for words in ["the word is plum", &self.answer(&first), "which word was it"] {
            assert!(after.contains(words), "{words} is not in {after}");
        }
        let prompt = text(&self.shop.job(&second)["prompt"]);
        assert_eq!(self.shop.run("ares-show", &[&prompt]).out, "which word was it");
        let session = text(&self.shop.job(&second)["session"]);
        assert_eq!(session, text(&self.shop.job(&first)["session"]));
        let usage = |job: &str| self.shop.job(job)["usage"]["input"].as_i64().unwrap();
        assert_eq!(usage(&first), usage(&second), "what each turn used, and no total");
    }

    /// A session that the worker no longer has is told, and no call is made for it.
    fn misses_its_session(&self, store: &str) {
        let first = self.submit(&[], "one");
        assert_eq!(self.run("ok", &[]).status, 0);
        std::fs::remove_dir_all(self.shop.path().join(store)).unwrap();
        let (before, second) = (self.stub.received().len(), self.submit(&["--continue", &first], "two"));
        self.run("ok", &[]);
        let attempt = self.shop.latest(&second);
        assert_eq!((text(&attempt["outcome"]), text(&attempt["code"])), ("void".into(), "ARES_WORKER_SAID_NO".into()));
        assert_eq!(self.stub.received().len(), before, "nothing was asked of the model");
    }

    fn fails(&self, causes: &[(&str, &str)]) {
        for (scenario, code) in causes {
            let job = self.submit(&[], "do it");
            self.run(scenario, &[]);
            let attempt = self.shop.latest(&job);
            assert_eq!(
                (text(&attempt["outcome"]), text(&attempt["code"])),
                ("error".into(), (*code).into()),
                "{scenario}: {attempt}"
            );
        }
    }

    /// Whatever the synthetic worker prints of a turn and of a failure, the real one prints too.
    fn is_played_as_it_is(&self) {
        let played =
            Shop::with_config(&format!("[worker.p]\nadapter = \"{}\"\nprogram = \"ares-synthetic\"\n", self.agent));
        for (scene, scenario) in [("ok", "ok"), ("fail:401", "401")] {
            let prompt = format!("scenario: {scene}\nwords");
            let (real, play) = (self.submit(&[], "words"), played.submit(&["-w", "p", "--", &prompt]));
            self.run(scenario, &[]);
            played.run("ares-run", &["--drain"]);
            let (real, play) = (self.shop.output(&real, "stdout"), played.output(&play, "stdout"));
            let (played, real) = (shape::of(&play), shape::of(&real));
            assert!(played.len() >= 3, "{played:?}");
            crate::harness::no_complaints(&shape::invented(&played, &real));
        }
    }

    /// The owner is killed in the middle of the turn: the worker finishes under its keeper, and its true end is recorded.
    fn outlives_its_owner(&self) {
        let job = self.submit(&[], "the word is plum");
        let url = self.stub.url("slow");
        let env = [&KEYS[..], &[("ANTHROPIC_BASE_URL", &url)]].concat();
        if self.agent == "codex" {
            self.serve("slow");
        }
        let run = self.shop.start(&env, "ares-run", &["--drain"]);
        eventually("the service was called", || self.stub.received().pop());
        run.kill();
        eventually("the end is recorded", || {
            self.shop.run("ares-reconcile", &[]);
            (self.shop.state(&job) == "succeeded").then_some(())
        });
        assert!(self.answer(&job).ends_with("the word is plum"), "{}", self.answer(&job));
        assert_eq!(self.stub.received().len(), 1);
    }

    /// The keeper is killed after the worker ended and before that is written down: the worker's own store has the turn.
    fn is_adopted(&self) {
        let job = self.submit(&[], "the word is plum");
        self.run("ok", &[("ARES_FAULT", "keeper.before_exit")]);
        assert_eq!(self.shop.state(&job), "uncertain");
        let packet: Value = serde_json::from_str(&self.shop.run("ares-reconcile", &[&job, "--json"]).out).unwrap();
        assert_eq!(packet["proposal"], "ok", "{packet}");
        assert_eq!(self.shop.run("ares-reconcile", &[&job, "--adopt"]).status, 0);
        assert!(self.answer(&job).ends_with("the word is plum"), "{}", self.answer(&job));
        assert_eq!((self.shop.state(&job).as_str(), self.stub.received().len()), ("succeeded", 1));
    }
}

#[test]
fn claude_goes_on_with_its_own_conversation() {
    let Some(desk) = Desk::claude() else { return };
    desk.converses();
    let asked = &desk.stub.received()[0];
    assert_eq!(asked["tools"].as_array().map_or(0, Vec::len), 0, "no tool was named by the job");
}

#[test]
fn claude_is_played_as_it_is() {
    let Some(desk) = Desk::claude() else { return };
    desk.is_played_as_it_is();
}

#[test]
fn claude_says_why_it_failed() {
    let Some(desk) = Desk::claude() else { return };
    desk.fails(&[
        ("401", "ARES_AUTHENTICATION"),
        ("404", "ARES_MODEL_NOT_FOUND"),
        ("429", "ARES_RATE_LIMITED"),
        ("529", "ARES_OVERLOADED"),
    ]);
}

#[test]
fn claude_without_the_session_makes_no_call() {
    let Some(desk) = Desk::claude() else { return };
    desk.misses_its_session(".claude/projects");
}

#[test]
fn claude_finishes_its_turn_without_its_owner() {
    let Some(desk) = Desk::claude() else { return };
    desk.outlives_its_owner();
}

#[test]
fn a_finished_turn_of_claude_is_adopted() {
    let Some(desk) = Desk::claude() else { return };
    desk.is_adopted();
}

#[test]
fn codex_goes_on_with_its_own_conversation() {
    let Some(desk) = Desk::codex() else { return };
    desk.converses();
}

#[test]
fn codex_is_played_as_it_is() {
    let Some(desk) = Desk::codex() else { return };
    desk.is_played_as_it_is();
}

#[test]
fn codex_says_why_it_failed() {
    let Some(desk) = Desk::codex() else { return };
    desk.fails(&[
        ("401", "ARES_AUTHENTICATION"),
        ("404", "ARES_MODEL_NOT_FOUND"),
        ("429", "ARES_RATE_LIMITED"),
        ("500", "ARES_OVERLOADED"),
        ("cut", "ARES_TURN_FAILED"),
    ]);
}

#[test]
fn codex_without_the_session_makes_no_call() {
    let Some(desk) = Desk::codex() else { return };
    desk.misses_its_session(".codex/sessions");
}

#[test]
fn codex_finishes_its_turn_without_its_owner() {
    let Some(desk) = Desk::codex() else { return };
    desk.outlives_its_owner();
}

#[test]
fn a_finished_turn_of_codex_is_adopted() {
    let Some(desk) = Desk::codex() else { return };
    desk.is_adopted();
}
