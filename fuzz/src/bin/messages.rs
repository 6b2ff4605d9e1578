//! Lines of an agent: whatever they say, they are kept as they came, and every reader of messages gets through them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiller_message::{Assembler, Message, Summary};

fuzz_target!(|data: &[u8]| {
    let mut assembler = Assembler::new();
    let mut summary = Summary::resumed(0.0);
    for (at, line) in (0..).zip(data.split(|byte| *byte == b'\n')) {
        if let Ok(text) = std::str::from_utf8(line) {
            // What is shown of a tool's input, whatever it holds.
            if let Ok(input) = serde_json::from_str(text) {
                for field in tiller_message::input_fields(&input) {
                    let shown = tiller_message::visible(&field.text);
                    assert!(!shown.chars().any(|shown| shown != '\n' && tiller_message::is_invisible(shown)), "{shown:?}");
                }
            }
            tiller_message::split_rules(text);
            tiller_message::succeeded_calls(text);
            summary.push_json(text, at);
        }
        let Ok(message) = Message::parse(line) else { continue };
        assert_eq!(message.json().as_bytes(), line);
        if let Some(assembled) = assembler.push(&message) {
            drop(assembled);
        }
        summary.push(&message, at);
        // As text: a number of any size is JSON, and a `Value` can't hold each of them.
        let stopped = tiller_message::turn_stopped(message.json());
        serde_json::from_str::<&serde_json::value::RawValue>(&stopped).expect("JSON");
    }
    serde_json::to_string(&summary.view()).expect("a summary can be told");
});
