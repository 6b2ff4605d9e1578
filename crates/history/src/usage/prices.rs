//! Prices of tokens, in US dollars per million.
//!
//! Measured on release 2.1.325 of the CLI by letting it add up single messages of known usage, model by model, so that
//! costs agree with the CLI's own reports. A model that is not in the list has no cost rather than a wrong one.
//!
//! Not measured: Opus 4 and 4.1, which that release no longer runs, have their published price; Mythos 5.1 is assumed
//! to cost as much as Fable 5.1, as its siblings do.

use crate::usage::ledger::Tokens;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Price {
    input: f64,
    output: f64,
    cache_write: f64,
    cache_write_1h: f64,
    cache_read: f64,
}

const fn price(input: f64, output: f64, cache_read: f64) -> Price {
    // Writing to the cache costs a quarter more than input, and twice as much for an hour, with every model.
    Price {
        input,
        output,
        cache_write: input * 1.25,
        cache_write_1h: input * 2.0,
        cache_read,
    }
}

/// By the beginning of the model's name; the first match counts, so longer names come before shorter ones.
const PRICES: [(&str, Price); 19] = [
    ("claude-3-5-haiku", price(0.8, 4.0, 0.08)),
    ("claude-3-5-sonnet", price(3.0, 15.0, 0.3)),
    ("claude-3-7-sonnet", price(3.0, 15.0, 0.3)),
    ("claude-fable-5-2", price(8.0, 40.0, 0.2)),
    ("claude-fable-5-1", price(10.0, 50.0, 0.25)),
    ("claude-fable-5", price(10.0, 50.0, 1.0)),
    ("claude-haiku-4-5", price(1.0, 5.0, 0.1)),
    ("claude-haiku-5-5", price(0.1, 0.5, 0.01)),
    ("claude-mythos-5-2", price(8.0, 40.0, 0.2)),
    ("claude-mythos-5-1", price(10.0, 50.0, 0.25)),
    ("claude-mythos-5", price(10.0, 50.0, 1.0)),
    ("claude-opus-4-5", price(5.0, 25.0, 0.5)),
    ("claude-opus-4-6", price(5.0, 25.0, 0.5)),
    ("claude-opus-4-7", price(5.0, 25.0, 0.5)),
    ("claude-opus-4-8", price(5.0, 25.0, 0.5)),
    ("claude-opus-5-5", price(4.0, 20.0, 0.2)),
    ("claude-opus-5", price(5.0, 25.0, 0.5)),
    ("claude-sonnet-5-5", price(2.0, 10.0, 0.1)),
    ("claude-sonnet-5", price(2.0, 10.0, 0.2)),
];

/// Models whose whole family has one price.
const FAMILIES: [(&str, Price); 2] = [
    ("claude-sonnet-4", price(3.0, 15.0, 0.3)),
    ("claude-opus-4", price(15.0, 75.0, 1.5)),
];

/// Haiku 5.5 costs more for a message with a prompt of more than this many tokens.
const LONG_PROMPT: u64 = 100_000;
const HAIKU_LONG: Price = price(0.5, 2.5, 0.05);

/// The cost of one message; `None` if the model's price is unknown.
pub(crate) fn cost(model: &str, tokens: &Tokens) -> Option<f64> {
    let plain = model
        .rsplit(['/', ':'])
        .find(|part| part.starts_with("claude-"))
        .unwrap_or(model);
    let known = PRICES
        .iter()
        .chain(&FAMILIES)
        .find(|(name, _)| plain.starts_with(name));
    let (name, mut price) = *known?;
    if name == "claude-haiku-5-5" && tokens.prompt() > LONG_PROMPT {
        price = HAIKU_LONG;
    }
    let hour = tokens
        .cache_creation_1h_input_tokens
        .min(tokens.cache_creation_input_tokens);
    let sum = price.input * float(tokens.input_tokens)
        + price.output * float(tokens.output_tokens)
        + price.cache_write * float(tokens.cache_creation_input_tokens - hour)
        + price.cache_write_1h * float(hour)
        + price.cache_read * float(tokens.cache_read_input_tokens);
    Some(sum / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The costs that the CLI (2.1.325) reported.
    #[test]
    fn costs_are_those_of_the_cli() {
        let tokens = |input, output, write, hour, read| Tokens {
            input_tokens: input,
            output_tokens: output,
            cache_creation_input_tokens: write,
            cache_creation_1h_input_tokens: hour,
            cache_read_input_tokens: read,
        };
        let cases = [
            ("claude-opus-5-5", tokens(1200, 600, 240, 0, 3600), 0.01872),
            ("claude-sonnet-4-6", tokens(100, 50, 20, 0, 300), 0.001_215),
            ("claude-sonnet-4-6", tokens(0, 0, 1000, 1000, 0), 0.006),
            ("claude-haiku-4-5-20251001", tokens(0, 0, 1000, 0, 0), 0.001_25),
            ("claude-haiku-5-5", tokens(100_000, 0, 0, 0, 0), 0.01),
            ("claude-haiku-5-5", tokens(100_001, 0, 0, 0, 0), 0.050_000_5),
            ("claude-haiku-5-5", tokens(300_000, 0, 0, 0, 1_000_000), 0.2),
            ("claude-fable-5-1", tokens(0, 0, 0, 0, 1000), 0.000_25),
            ("claude-sonnet-5", tokens(0, 0, 0, 0, 1000), 0.000_2),
            ("claude-sonnet-5-5", tokens(0, 0, 0, 0, 1000), 0.000_1),
            ("claude-sonnet-4-20250514", tokens(1000, 0, 0, 0, 0), 0.003),
        ];
        for (model, tokens, expected) in cases {
            let cost = cost(model, &tokens).unwrap();
            assert!(
                (cost - expected).abs() < 1e-12,
                "{model}: {cost} instead of {expected}"
            );
        }
        assert_eq!(cost("gpt-of-tomorrow", &Tokens::default()), None);
    }
}
