//! What the user's page says, held against the code.

use super::*;
use crate::model::code::{self, Retried};

/// The page that users read.
const PAGE: &str = include_str!("../../../../docs/workflow.md");

#[test]
fn the_examples_of_the_page_are_accepted() {
    let examples: Vec<_> =
        PAGE.split("```json workflow\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert!(examples.len() >= 5, "the page has its examples");
    for example in examples {
        if let Err(problems) = parse(example.as_bytes()) {
            panic!("{example}\nis refused: {problems:#?}");
        }
    }
}

#[test]
fn the_page_prints_a_graph_as_the_server_does() {
    let example =
        PAGE.split("```json workflow\n").find(|text| text.contains("\"name\": \"diamond\"")).expect("the example");
    let parsed = parse(example.split("\n```").next().expect("its text").as_bytes()).expect("it is accepted");
    let printed = graph(&parsed.definition);
    let (_, steps) = printed.split_once('\n').expect("lines");
    assert!(PAGE.contains(steps), "{printed}");
}

#[test]
fn the_page_lists_every_code() {
    for code in Code::ALL {
        assert!(PAGE.contains(&format!("| `{code}` |")), "{code} is missing");
    }
    // Codes of child executions come with them.
    for (code, retried) in code::TABLE.iter().filter(|(code, _)| !code.starts_with("CHILD_")) {
        let word = match retried {
            Retried::Yes => "yes",
            Retried::Once => "once",
            Retried::No => "no",
        };
        let row = |line: &str| line.starts_with(&format!("| `{code}` |")) && line.ends_with(&format!("| {word} |"));
        assert!(PAGE.lines().any(row), "{code}: {word}");
    }
}
