//! Classifies 64 bytes of JSON at a time: quotes, brackets, and bytes that are not allowed outside of strings.
//!
//! Strings are most of a transcript, and quotes are where they end, so reading spends most of its time here. The widest
//! available instructions are chosen once for a whole line, not for every block.

#![allow(
    clippy::inline_always,
    reason = "what these compile to depends on the function that they become part of"
)]

/// The number of bytes that are classified together.
pub(crate) const BLOCK: usize = 64;

/// The classes of a block's bytes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) backslash: u64,
    /// Opening and closing, of objects and arrays.
    pub(crate) bracket: u64,
    /// Allowed outside of a string.
    pub(crate) allowed: u64,
}

/// An implementation of the classification.
pub(crate) trait Scan {
    /// Whether classifying a block costs no more than classifying a few bytes one by one.
    const IS_WIDE: bool;
    fn quotes(block: &[u8; BLOCK]) -> u64;
    fn classes(block: &[u8; BLOCK]) -> Classes;

    /// The quotes of a block that may begin or end a string: all that do, and few that don't. Text is full of quotes
    /// after a single backslash, and stopping at each of them would be slow.
    #[inline(always)]
    fn ends(_before: [u8; 2], block: &[u8; BLOCK]) -> u64 {
        Self::quotes(block)
    }

    /// A lower bound of the number of bytes at `at` before the first quote that may end a string.
    #[inline(always)]
    fn before_end(_bytes: &[u8], _at: usize) -> usize {
        0
    }

    /// Ones from each odd set bit up to the next one, exclusive.
    #[inline(always)]
    fn ones_between(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }

    /// Whether `bytes` begin with `text`.
    #[inline(always)]
    fn begins(bytes: &[u8], text: &[u8]) -> bool {
        bytes.starts_with(text)
    }
}

/// All bytes outside of strings: numbers, `true`, `false`, `null`, brackets, commas, colons and blanks.
pub(crate) const ALLOWED: &[u8] = b"0123456789+-.eEtrufalsn,: \t\r\"{}[]";

/// The portable implementation.
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
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8, _mm256_and_si256,
        _mm256_andnot_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
    };

    use super::{ALLOWED, BLOCK, Classes, Scan};

    /// The implementation for machines with AVX2. Use it only inside functions that are compiled for AVX2: elsewhere
    /// every block would cost a call.
    pub(crate) struct Avx2;

    pub(crate) fn has_avx2() -> bool {
        use std::arch::is_x86_feature_detected;
        // Nearly all processors have both or neither, so they are checked together.
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq")
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
            // SAFETY: only code that has checked for AVX2 uses this type.
            unsafe { quotes(block) }
        }

        #[inline(always)]
        fn classes(block: &[u8; BLOCK]) -> Classes {
            // SAFETY: as above.
            unsafe { classes(block) }
        }

        #[inline(always)]
        fn ends(before: [u8; 2], block: &[u8; BLOCK]) -> u64 {
            // SAFETY: as above.
            unsafe { ends(before, block) }
        }

        #[inline(always)]
        fn before_end(bytes: &[u8], at: usize) -> usize {
            // SAFETY: as above.
            unsafe { before_end(bytes, at) }
        }

        #[inline(always)]
        fn ones_between(bits: u64) -> u64 {
            // SAFETY: as above.
            unsafe { ones_between(bits) }
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
        // SAFETY: the load stays within the 32 bytes.
        unsafe { _mm256_loadu_si256(part.as_ptr().cast()) }
    }

    /// For two bytes and the 32 after them: which of the 32 are quotes that are not after a single backslash.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn unescaped(bytes: &[u8; 34]) -> __m256i {
        let [before_two @ .., _, _] = bytes;
        let [_, before_one @ .., _] = bytes;
        let [_, _, here @ ..] = bytes;
        let quote = _mm256_set1_epi8(b'"'.cast_signed());
        let slash = _mm256_set1_epi8(b'\\'.cast_signed());
        let behind_single = _mm256_andnot_si256(
            _mm256_cmpeq_epi8(load(before_two), slash),
            _mm256_cmpeq_epi8(load(before_one), slash),
        );
        _mm256_andnot_si256(behind_single, _mm256_cmpeq_epi8(load(here), quote))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn before_end(bytes: &[u8], at: usize) -> usize {
        let mut passed = 0;
        let Some(mut rest) = at.checked_sub(2).and_then(|from| bytes.get(from..)) else {
            return 0;
        };
        // The second half begins with the bytes that the first one ends with.
        while let Some(part) = rest.first_chunk::<{ BLOCK + 2 }>()
            && let (Some(low), Some(high)) = (part.first_chunk(), part.last_chunk())
            && _mm256_movemask_epi8(_mm256_or_si256(unescaped(low), unescaped(high))) == 0
        {
            rest = &rest[BLOCK..];
            passed += BLOCK;
        }
        passed
    }

    /// With bit operations: another pair of loads would cost more.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn ends(before: [u8; 2], block: &[u8; BLOCK]) -> u64 {
        let [low, high] = halves(block);
        let quote = _mm256_set1_epi8(b'"'.cast_signed());
        let slash = _mm256_set1_epi8(b'\\'.cast_signed());
        let quotes = joined(_mm256_cmpeq_epi8(low, quote), _mm256_cmpeq_epi8(high, quote));
        let slashes = joined(_mm256_cmpeq_epi8(low, slash), _mm256_cmpeq_epi8(high, slash));
        let [second, first] = before.map(|byte| u64::from(byte == b'\\'));
        let behind_one = slashes << 1 | first;
        let behind_two = slashes << 2 | first << 1 | second;
        quotes & !(behind_one & !behind_two)
    }

    /// A carry-less product with all ones: each bit is the parity of all bits up to it.
    #[inline]
    #[target_feature(enable = "avx2,pclmulqdq")]
    fn ones_between(bits: u64) -> u64 {
        let product = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(bits.cast_signed()), _mm_set1_epi8(-1));
        _mm_cvtsi128_si64(product).cast_unsigned()
    }

    /// Without a call: most texts are shorter than a call is worth.
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

    /// Both have the same length, less than 32.
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
            let bits =
                u64::from_le_bytes(*block.first_chunk().unwrap()) & Plain::quotes(&block).wrapping_sub(1);
            assert_eq!(Plain::ones_between(bits), Avx2::ones_between(bits), "{bits:b}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn only_quotes_after_a_single_backslash_are_skipped() {
        let mut random = 1u64;
        for round in 0..150 {
            let text: Vec<u8> = (0..300)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Mostly text, so that some blocks have no quote.
                    match (random >> 33) % (4 + round % 60) {
                        0 => b'"',
                        1 | 2 => b'\\',
                        _ => b'x',
                    }
                })
                .collect();
            let may_end = |at: usize| {
                let slashes = text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
                text[at] == b'"' && slashes != 1
            };
            for at in 2..text.len() - BLOCK {
                let block = text[at..].first_chunk().unwrap();
                let ends = Avx2::ends(*text[..at].last_chunk().unwrap(), block);
                assert_eq!(ends & !Plain::quotes(block), 0);
                for place in 0..BLOCK {
                    assert_eq!(ends >> place & 1 == 1, may_end(at + place), "{at} {place}");
                }
                let passed = Avx2::before_end(&text, at);
                assert!(
                    at + passed <= text.len() && !(at..at + passed).any(may_end),
                    "{at}"
                );
                assert!(
                    text.len() < at + passed + BLOCK || (at + passed..at + passed + BLOCK).any(may_end),
                    "{at} stops at nothing"
                );
            }
            assert_eq!(Avx2::before_end(&text, 1), 0);
        }
    }
}
