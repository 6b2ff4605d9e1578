//! Looks at 64 bytes of JSON at a time: which of them are quotes, brackets, or may not stand outside of a string.
//!
//! Strings are most of a transcript, and quotes are where they end, so this is where reading a transcript spends its time.
//! What the machine's widest instructions can do is decided once for a whole line, not for every block of it.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

/// Bytes that are looked at together.
pub(crate) const BLOCK: usize = 64;

/// What the bytes of a block are, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) backslash: u64,
    /// Opening and closing, of objects and arrays.
    pub(crate) bracket: u64,
    /// May stand outside of a string.
    pub(crate) allowed: u64,
}

/// A way to look at blocks.
pub(crate) trait Scan {
    /// Whether telling the classes of a block costs no more than telling a few of its bytes apart.
    const IS_WIDE: bool;
    fn quotes(block: &[u8; BLOCK]) -> u64;
    fn classes(block: &[u8; BLOCK]) -> Classes;

    /// How many bytes there are for certain before the first quote; there may be a few more.
    #[inline(always)]
    fn before_quote(_bytes: &[u8]) -> usize {
        0
    }

    /// Whether `bytes` begin with `text`.
    #[inline(always)]
    fn begins(bytes: &[u8], text: &[u8]) -> bool {
        bytes.starts_with(text)
    }
}

/// Everything outside of strings is made of these: numbers, `true`, `false`, `null`, brackets, commas, colons and blanks.
pub(crate) const ALLOWED: &[u8] = b"0123456789+-.eEtrufalsn,: \t\r\"{}[]";

/// Works everywhere.
pub(crate) struct Plain;

impl Scan for Plain {
    const IS_WIDE: bool = false;

    #[cfg(target_arch = "x86_64")]
    #[inline]
    fn quotes(block: &[u8; BLOCK]) -> u64 {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
        let mut mask = 0;
        for part in block.as_chunks::<16>().0.iter().rev() {
            // SAFETY: SSE2, all that these need, is part of every x86-64, and the load stays within its sixteen bytes.
            let found = unsafe {
                let bytes = _mm_loadu_si128(part.as_ptr().cast());
                _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed())))
            };
            mask = mask << 16 | u64::from(found.cast_unsigned());
        }
        mask
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    fn quotes(block: &[u8; BLOCK]) -> u64 {
        mask(block, |byte| byte == b'"')
    }

    fn classes(block: &[u8; BLOCK]) -> Classes {
        Classes {
            backslash: mask(block, |byte| byte == b'\\'),
            bracket: mask(block, |byte| matches!(byte, b'{' | b'}' | b'[' | b']')),
            allowed: mask(block, |byte| ALLOWED.contains(&byte)),
        }
    }
}

#[inline]
fn mask(block: &[u8; BLOCK], is_one: impl Fn(u8) -> bool) -> u64 {
    block
        .iter()
        .rev()
        .fold(0, |mask, byte| mask << 1 | u64::from(is_one(*byte)))
}

#[cfg(target_arch = "x86_64")]
pub(crate) use wide::{Avx2, has_avx2};

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
        _mm256_srli_epi16,
    };

    use super::{ALLOWED, BLOCK, Classes, Scan};

    /// For machines that have AVX2. To be used only inside of functions that are compiled for it: elsewhere every block
    /// would cost a call.
    pub(crate) struct Avx2;

    pub(crate) fn has_avx2() -> bool {
        use std::arch::is_x86_feature_detected;
        // They came together in every processor but a few, and are asked for together.
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }

    /// For each lower half of a byte, the upper halves (as bits) with which it is allowed outside of strings.
    const ALLOWED_ABOVE: [i8; 16] = {
        let mut table = [0u8; 16];
        let mut i = 0;
        while i < ALLOWED.len() {
            table[(ALLOWED[i] & 15) as usize] |= 1 << (ALLOWED[i] >> 4);
            i += 1;
        }
        let mut signed = [0; 16];
        let mut i = 0;
        while i < 16 {
            signed[i] = table[i].cast_signed();
            i += 1;
        }
        signed
    };

    impl Scan for Avx2 {
        const IS_WIDE: bool = true;

        #[inline(always)]
        fn quotes(block: &[u8; BLOCK]) -> u64 {
            // SAFETY: only code that has asked for AVX2 uses this type.
            unsafe { quotes(block) }
        }

        #[inline(always)]
        fn classes(block: &[u8; BLOCK]) -> Classes {
            // SAFETY: as above.
            unsafe { classes(block) }
        }

        #[inline(always)]
        fn before_quote(bytes: &[u8]) -> usize {
            // SAFETY: as above.
            unsafe { before_quote(bytes) }
        }

        #[inline(always)]
        fn begins(bytes: &[u8], text: &[u8]) -> bool {
            // SAFETY: as above.
            unsafe { begins(bytes, text) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(part: &[u8; 32]) -> __m256i {
        // SAFETY: it stays within the 32 bytes.
        unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
    }

    /// Four times 32 bytes at once: whether there is a quote at all is one question then.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn before_quote(bytes: &[u8]) -> usize {
        let quote = _mm256_set1_epi8(b'"'.cast_signed());
        let (parts, _) = bytes.as_chunks::<32>();
        let (groups, _) = parts.as_chunks::<4>();
        for (passed, [a, b, c, d]) in groups.iter().enumerate() {
            let found = _mm256_or_si256(
                _mm256_or_si256(
                    _mm256_cmpeq_epi8(load(a), quote),
                    _mm256_cmpeq_epi8(load(b), quote),
                ),
                _mm256_or_si256(
                    _mm256_cmpeq_epi8(load(c), quote),
                    _mm256_cmpeq_epi8(load(d), quote),
                ),
            );
            if _mm256_movemask_epi8(found) != 0 {
                return passed * 128;
            }
        }
        groups.len() * 128
    }

    /// Without a call: most texts are shorter than what a call costs.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn begins(bytes: &[u8], text: &[u8]) -> bool {
        let Some(bytes) = bytes.get(..text.len()) else {
            return false;
        };
        let (Some(last), Some(last_text)) = (bytes.last_chunk::<32>(), text.last_chunk::<32>()) else {
            return short_begins(bytes, text);
        };
        let (parts, _) = bytes.as_chunks::<32>();
        let (texts, _) = text.as_chunks::<32>();
        for (part, text) in parts.iter().zip(texts) {
            if _mm256_movemask_epi8(_mm256_cmpeq_epi8(load(part), load(text))) != -1 {
                return false;
            }
        }
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(load(last), load(last_text))) == -1
    }

    /// Both have the same length, below 32.
    #[inline(always)]
    fn short_begins(bytes: &[u8], text: &[u8]) -> bool {
        if let (Some(a), Some(b), Some(c), Some(d)) = (
            bytes.first_chunk::<8>(),
            text.first_chunk::<8>(),
            bytes.last_chunk::<8>(),
            text.last_chunk::<8>(),
        ) {
            if a != b || c != d {
                return false;
            }
            if bytes.len() <= 16 {
                return true;
            }
            let (Some(a), Some(b), Some(c), Some(d)) = (
                bytes.first_chunk::<16>(),
                text.first_chunk::<16>(),
                bytes.last_chunk::<16>(),
                text.last_chunk::<16>(),
            ) else {
                return false;
            };
            return a == b && c == d;
        }
        bytes == text
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(block: &[u8; BLOCK]) -> [__m256i; 2] {
        let (parts, _) = block.as_chunks::<32>();
        [load(&parts[0]), load(&parts[1])]
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn joined(low: __m256i, high: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(low).cast_unsigned())
            | u64::from(_mm256_movemask_epi8(high).cast_unsigned()) << 32
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quotes(block: &[u8; BLOCK]) -> u64 {
        let [low, high] = halves(block);
        let quote = _mm256_set1_epi8(b'"'.cast_signed());
        joined(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn classes(block: &[u8; BLOCK]) -> Classes {
        let [low, high] = halves(block);
        let backslash = _mm256_set1_epi8(b'\\'.cast_signed());
        Classes {
            backslash: joined(
                _mm256_cmpeq_epi8(low, backslash),
                _mm256_cmpeq_epi8(high, backslash),
            ),
            bracket: joined(brackets(low), brackets(high)),
            allowed: !joined(refused(low), refused(high)),
        }
    }

    /// `[` and `]` differ from `{` and `}` in one bit.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn brackets(bytes: __m256i) -> __m256i {
        let curly = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        _mm256_or_si256(
            _mm256_cmpeq_epi8(curly, _mm256_set1_epi8(b'{'.cast_signed())),
            _mm256_cmpeq_epi8(curly, _mm256_set1_epi8(b'}'.cast_signed())),
        )
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn refused(bytes: __m256i) -> __m256i {
        let [a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af] = ALLOWED_ABOVE;
        let above = _mm256_setr_epi8(
            a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, aa, ab, ac, ad, ae, af, a0, a1, a2, a3, a4, a5, a6, a7,
            a8, a9, aa, ab, ac, ad, ae, af,
        );
        // The bit of each upper half; bytes beyond ASCII have none.
        let bits = _mm256_setr_epi8(
            1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0,
            0, 0, 0, 0,
        );
        let nibble = _mm256_set1_epi8(15);
        let lower = _mm256_shuffle_epi8(above, _mm256_and_si256(bytes, nibble));
        let upper = _mm256_shuffle_epi8(bits, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        _mm256_cmpeq_epi8(_mm256_and_si256(lower, upper), _mm256_setzero_si256())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn wide_and_plain_see_the_same() {
        assert!(has_avx2(), "this test needs a machine with AVX2");
        for start in 0..=255u8 {
            let block: [u8; BLOCK] =
                std::array::from_fn(|at| start.wrapping_add(u8::try_from(at * 7).unwrap_or(3)));
            assert_eq!(Plain::quotes(&block), Avx2::quotes(&block));
            assert_eq!(Plain::classes(&block), Avx2::classes(&block), "{block:?}");
        }
    }
}
