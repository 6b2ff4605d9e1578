//! Bytes of an agent in any pieces: the lines are those of the whole, whatever the pieces were.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tiller_process::{Frame, Framer};

/// Short, so that too long lines are found.
const LIMIT: usize = 24;

fn cut(pieces: &[&[u8]]) -> (Vec<Frame>, u64) {
    let mut framer = Framer::new(LIMIT);
    let mut frames = Vec::new();
    for piece in pieces {
        framer.push(piece);
        while let Some(frame) = framer.next_frame() {
            if let Frame::Line(line) = &frame {
                assert!(!line.is_empty() && line.len() <= LIMIT && !line.contains(&b'\n'));
            }
            frames.push(frame);
        }
    }
    frames.extend(framer.finish());
    (frames, framer.position())
}

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let size = usize::from(*size) % 40 + 1;
    let whole = cut(&[bytes]);
    assert_eq!(whole, cut(&bytes.chunks(size).collect::<Vec<_>>()));
    assert!(whole.1 <= bytes.len() as u64);
});
