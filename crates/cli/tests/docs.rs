//! The documents: their commands run, their links lead somewhere, every page is in the book, and the page on the
//! command line has every command and option.
//!
//! A block that begins with ```` ```sh ```` is run; ```` ```sh,no-test ```` says that it cannot be, and the page says why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Seconds after which a block is given up.
const LIMIT: &str = "300";

/// What may stand behind the three backquotes. A new word is a decision: is it run, or why not?
const LANGUAGES: [&str; 8] = [
    "sh",
    "sh,no-test",
    // Run by ./test-python, and those of the guide on ADBC by ./test-adbc.
    "python",
    "text",
    "laq",
    "mermaid",
    "rust,ignore",
    "",
];

/// A page, read.
struct Page {
    /// From the repository's root.
    name: String,
    /// Its blocks of code.
    blocks: Vec<Block>,
    /// Its lines, with empty ones in the place of code.
    prose: Vec<String>,
}

/// A block of code between three backquotes.
struct Block {
    /// The line of its first backquotes, from 1.
    line: usize,
    /// What stands behind them.
    language: String,
    text: String,
}

impl Page {
    fn read(root: &Path, path: &Path) -> Page {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let (mut blocks, mut prose) = (Vec::new(), Vec::new());
        let mut open: Option<Block> = None;
        for (at, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(language)) => {
                    open = Some(Block {
                        line: at + 1,
                        language: language.trim().to_owned(),
                        text: String::new(),
                    });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) => {
                    prose.push(line.to_owned());
                    continue;
                }
            }
            prose.push(String::new());
        }
        if let Some(block) = open {
            panic!("{name}:{}: this block does not end", block.line);
        }
        Page {
            name,
            blocks,
            prose,
        }
    }

    /// What can be linked to: its headings, as GitHub and mdBook name them.
    fn anchors(&self) -> BTreeSet<String> {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let mut anchors = BTreeSet::new();
        for (_, heading) in self.headings() {
            let anchor = anchor(heading);
            let before = times.entry(anchor.clone()).or_default();
            anchors.insert(match *before {
                0 => anchor,
                before => format!("{anchor}-{before}"),
            });
            *before += 1;
        }
        anchors
    }

    /// Its headings, with the positions of their lines.
    fn headings(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.prose.iter().enumerate();
        lines.filter_map(|(at, line)| {
            let text = line.trim_start_matches('#');
            let heading = text.len() < line.len() && text.starts_with(' ');
            heading.then(|| (at, text.trim()))
        })
    }

    /// Where it links to, with lines from 1.
    fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (at, line) in self.prose.iter().enumerate() {
            let line = without_code(line);
            for (before, _) in line.match_indices("](") {
                let target = &line[before + 2..];
                let end = target.find([')', ' ']).unwrap_or(target.len());
                links.push((at + 1, target[..end].to_owned()));
            }
        }
        links
    }
}

/// A heading as an address names it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// A line without what stands in backquotes.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts
        .filter(|(at, _)| at % 2 == 0)
        .map(|(_, part)| part)
        .collect()
}

/// The repository.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// All pages below a folder, but for hidden folders and what is built; sorted.
fn pages(root: &Path, folder: &Path) -> Vec<Page> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !name.starts_with('.') && name != "target" {
                folders.push(entry.path());
            } else if kind.is_file() && name.ends_with(".md") {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Page::read(root, path)).collect()
}

/// Runs the blocks of each page, one after the other in an empty folder.
fn run(pages: &[Page]) {
    let mut failures = Vec::new();
    let mut blocks = 0;
    for page in pages {
        let folder = tempfile::tempdir().unwrap();
        let to_run = page.blocks.iter().filter(|block| block.language == "sh");
        for block in to_run {
            blocks += 1;
            if let Err(why) = run_block(folder.path(), &block.text) {
                failures.push(format!("{}:{}: {why}", page.name, block.line));
                // What comes behind it may need what it should have made.
                break;
            }
        }
    }
    assert!(blocks > 0, "no page has a command");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn run_block(folder: &Path, text: &str) -> Result<(), String> {
    let program = Path::new(env!("CARGO_BIN_EXE_atoll"));
    let found = std::env::var_os("PATH").unwrap_or_default();
    let own = std::iter::once(program.parent().unwrap().to_owned());
    let path = std::env::join_paths(own.chain(std::env::split_paths(&found))).unwrap();
    let output = Command::new("timeout")
        .args([LIMIT, "bash", "-euo", "pipefail", "-c", text])
        .current_dir(folder)
        .stdin(Stdio::null())
        .env("PATH", path)
        .env("HOME", folder)
        .env_remove("XDG_STATE_HOME")
        .env_remove("RUST_BACKTRACE")
        .output()
        .map_err(|e| format!("cannot start bash: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{}\n{text}---\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}

#[test]
fn commands_of_the_tutorials_run() {
    run(&pages(&root(), &root().join("docs/tutorials")));
}

#[test]
fn commands_of_the_guides_run() {
    run(&pages(&root(), &root().join("docs/guides")));
}

#[test]
fn commands_of_the_reference_run() {
    run(&pages(&root(), &root().join("docs/reference")));
}

#[test]
fn commands_of_the_other_pages_run() {
    let mut pages = pages(&root(), &root().join("docs"));
    let elsewhere = ["docs/tutorials/", "docs/guides/", "docs/reference/"];
    pages.retain(|page| !elsewhere.iter().any(|folder| page.name.starts_with(folder)));
    run(&pages);
}

#[test]
fn blocks_say_what_they_are() {
    let mut wrong = Vec::new();
    for page in pages(&root(), &root().join("docs")) {
        for block in &page.blocks {
            if !LANGUAGES.contains(&block.language.as_str()) {
                let (name, line, language) = (&page.name, block.line, &block.language);
                wrong.push(format!(
                    "{name}:{line}: {language:?}, not one of {LANGUAGES:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut broken = Vec::new();
    let mut links = 0;
    for page in pages(&root, &root) {
        let folder = root.join(&page.name);
        let folder = folder.parent().unwrap();
        for (line, link) in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = match path {
                "" => root.join(&page.name),
                path => folder.join(path),
            };
            let place = format!("{}:{line}: {link}", page.name);
            let Ok(path) = path.canonicalize() else {
                broken.push(format!("{place}: there is no such file"));
                continue;
            };
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            if !anchor.is_empty() && is_page && !Page::read(&root, &path).anchors().contains(anchor)
            {
                broken.push(format!("{place}: there is no such heading"));
            }
        }
    }
    assert!(links > 0);
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_book() {
    let root = root();
    let docs = root.join("docs");
    let summary = Page::read(&root, &docs.join("SUMMARY.md"));
    let listed: BTreeSet<String> = summary
        .links()
        .into_iter()
        .map(|(_, link)| format!("docs/{link}"))
        .collect();
    let missing: Vec<String> = pages(&root, &docs)
        .into_iter()
        .map(|page| page.name)
        .filter(|name| name != "docs/SUMMARY.md" && !listed.contains(name))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// What `atoll COMMAND --help` prints.
fn help(command: &str) -> String {
    let words = command.split(' ').skip(1);
    let output = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command} --help");
    String::from_utf8(output.stdout).unwrap()
}

/// The options in a help text: what lines begin with.
fn options(help: &str) -> BTreeSet<&str> {
    // Lines that go on with a text begin farther right.
    let lines = help.lines().filter(|line| !line.starts_with("         "));
    let lines = lines.map(str::trim_start);
    lines
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| {
            let begin = line.find("--")?;
            // A hyphen and a word is a possible value, or prose.
            let short = line[..begin].trim_end_matches([',', ' ']);
            let rest = &line[begin + 2..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let long = &line[begin..begin + 2 + end.unwrap_or(rest.len())];
            (short.len() <= 2 && long.len() > 2 && long != "--help" && long != "--version")
                .then_some(long)
        })
        .collect()
}

/// The commands below one, by its help text.
fn commands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    lines
        .take_while(|line| !line.is_empty())
        // What a command does may go on in further lines, which begin farther right.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[test]
fn every_command_and_option_is_in_the_reference() {
    let root = root();
    let path = root.join("docs/reference/command-line.md");
    let page = Page::read(&root, &path);
    let lines: Vec<String> = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let headings: Vec<(usize, &str)> = page.headings().collect();
    let section = |name: &str| {
        let at = headings.iter().position(|(_, heading)| *heading == name)?;
        let end = headings.get(at + 1).map_or(lines.len(), |(line, _)| *line);
        Some(lines[headings[at].0..end].join("\n"))
    };
    let mut missing = Vec::new();
    let mut todo = vec!["atoll".to_owned()];
    while let Some(command) = todo.pop() {
        let help = help(&command);
        let below = commands(&help).into_iter();
        todo.extend(below.map(|name| format!("{command} {name}")));
        if command == "atoll" {
            continue;
        }
        let Some(section) = section(&command) else {
            missing.push(command);
            continue;
        };
        for option in options(&help) {
            let written = section.split('`').any(|code| {
                let words = code.split([' ', ',', '[']);
                words.into_iter().any(|word| word == option)
            });
            if !written {
                missing.push(format!("{command} {option}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "docs/reference/command-line.md has not got: {missing:?}"
    );
}
