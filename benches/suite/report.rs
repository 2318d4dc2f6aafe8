//! The table with its targets, and the plot of it.

use std::fmt::Write as _;
use std::path::Path;

enum Bound {
    Most,
    Least,
}

struct Line {
    name: String,
    value: Option<f64>,
    target: Option<f64>,
    bound: Bound,
}

impl Line {
    fn met(&self) -> Option<bool> {
        let (value, target) = (self.value?, self.target?);
        Some(match self.bound {
            Bound::Most => value <= target,
            Bound::Least => value >= target,
        })
    }

    fn row(&self) -> String {
        let number = |value: f64| if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") };
        let sign = if matches!(self.bound, Bound::Most) { "≤" } else { "≥" };
        let target = self.target.map_or_else(String::new, |target| format!("{sign} {}", number(target)));
        let met = self.met().map_or("", |met| if met { "yes" } else { "**no**" });
        let value = self.value.map_or_else(|| "not here".to_owned(), number);
        format!("| {} | {target} | {value} | {met} |\n", self.name)
    }
}

/// What was measured so far.
pub(crate) struct Report {
    lines: Vec<Line>,
    quick: bool,
}

impl Report {
    pub(crate) fn new(quick: bool) -> Self {
        Self { lines: Vec::new(), quick }
    }

    /// Smaller is better.
    pub(crate) fn at_most(&mut self, name: &str, value: Option<f64>, target: Option<f64>) {
        self.add(name, value, target, Bound::Most);
    }

    /// Larger is better.
    pub(crate) fn at_least(&mut self, name: &str, value: Option<f64>, target: Option<f64>) {
        self.add(name, value, target, Bound::Least);
    }

    fn add(&mut self, name: &str, value: Option<f64>, target: Option<f64>, bound: Bound) {
        let line = Line { name: name.to_owned(), value, target, bound };
        eprint!("{}", line.row());
        self.lines.push(line);
    }

    pub(crate) fn write(&self, folder: &Path) {
        let how = if self.quick { "a quick run: few rounds, rough numbers" } else { "a full run" };
        let mut text = format!(
            "# What `benches/run` measured\n\nMedians of one interleaved run, as ratios; {how}. **limit** is a static program that \
             appends 256 bytes, calls fdatasync and ends. Peers that say \"not here\" were not installed, or \
             cannot run so many at once.\n\n| what | target | measured | met |\n|---|---|---|---|\n"
        );
        self.lines.iter().for_each(|line| text.push_str(&line.row()));
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("results.md"), text).unwrap();
        std::fs::write(folder.join("results.svg"), self.plot()).unwrap();
    }

    /// Bars for what has the limit or the floor as its measure.
    fn plot(&self) -> String {
        let ends = [" / limit", " / xargs"];
        let shown: Vec<(&Line, f64)> = self
            .lines
            .iter()
            .filter(|line| ends.iter().any(|end| line.name.ends_with(end)))
            .filter_map(|line| Some((line, line.value?)))
            .collect();
        let (left, wide, tall) = (470, 300.0, 20);
        let height = shown.len() * tall + 30;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"850\" height=\"{height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"850\" height=\"{height}\" fill=\"white\"/>\n"
        );
        for (at, (line, value)) in shown.iter().enumerate() {
            // Costs are drawn to six times the limit, rates to the floor.
            let scale = if line.name.ends_with("limit") { 6.0 } else { 1.0 };
            let across = |value: f64| (value / scale).min(1.0) * wide;
            let (y, ours) = (at * tall + 10, line.name.contains("ares"));
            let fill = if ours { "#2a6f97" } else { "#b0b7bd" };
            let name = line.name.replace('&', "&amp;").replace('<', "&lt;");
            let _infallible = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
                 <rect x=\"{left}\" y=\"{y}\" width=\"{width:.1}\" height=\"14\" fill=\"{fill}\"/>\
                 <text x=\"{end:.1}\" y=\"{base}\">{value:.2}</text>",
                x = left - 8,
                base = y + 11,
                width = across(*value),
                end = f64::from(left) + across(*value) + 5.0,
            );
            if let Some(target) = line.target {
                let x = f64::from(left) + across(target);
                let _infallible = writeln!(
                    svg,
                    "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{y}\" y2=\"{}\" stroke=\"#c1121f\" stroke-width=\"2\"/>",
                    y + 14
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}
