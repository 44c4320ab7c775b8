//! Workflow documents.

use sandkeep::workflow;

use crate::{SHARE, driver::Fuzz};

const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "\"steps\":",
    "\"id\":",
    "\"task\":",
    "\"after\":",
    "\"when\":",
    "\"input\":",
    "\"retry\":",
    "\"timeouts\":",
    "\"for_each\":",
    "\"compute\":",
    "\"sleep\":",
    "\"await\":",
    "\"result\":",
    "\"defaults\":",
    "\"signals\":",
    "\"input_schema\":",
    "\"ir_version\":\"sandkeep-ir/1\"",
    "\"${ input }\"",
    "\"${ steps.a.output }\"",
    "\"$ref\":\"#\"",
    "\\u0000",
    "\\ud800",
    "\"compensate\":",
    "\"5s\"",
    "\"-1h\"",
];

#[test]
fn documents_are_read_or_refused() {
    let mut samples = vec![
        br#"{"ir_version":"sandkeep-ir/1","name":"a","version":"1","steps":[{"id":"a","task":"t","input":"${ input.x }","retry":{"max_attempts":2},"timeouts":{"attempt":"5s"}},{"id":"b","compute":"${ steps.a.output }","when":"${ input.y > 1 }"}],"result":"${ steps.b.output }"}"#.to_vec(),
    ];
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/workflow.md");
    let page = std::fs::read_to_string(examples).unwrap();
    samples.extend(
        page.split("```json workflow\n").skip(1).map(|block| block.split("\n```").next().unwrap().as_bytes().to_vec()),
    );
    Fuzz { name: "documents", time: SHARE, samples, words: WORDS }.run(|bytes| match workflow::parse(bytes) {
        Ok(parsed) => {
            // What is kept is read again after every restart.
            let again = workflow::parse(parsed.document.as_str().as_bytes());
            let again = again.unwrap_or_else(|problems| panic!("it is refused the second time: {problems:?}"));
            assert_eq!(again.document, parsed.document);
            assert_eq!(again.definition.plan.indexes().count(), parsed.definition.plan.indexes().count());
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in &problems {
                assert!(!problem.message.is_empty() && problem.message.len() < 64 * 1024, "{}", problem.message.len());
            }
        }
    });
}
