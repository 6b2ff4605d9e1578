//! Gives back memory that only the start of the process needed.

/// Takes the program's code out of this process's memory. What is needed again comes back from the file's cache, page by
/// page: of a program that does many things, a keeper or a launcher does one.
pub fn let_go_of_code() {
    // Nothing depends on it.
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return;
    };
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (range, access, file) = (fields.next(), fields.next(), fields.nth(3));
        if access != Some("r-xp") || !file.is_some_and(|file| file.starts_with('/')) {
            continue;
        }
        let bounds = range.and_then(|range| {
            let (start, end) = range.split_once('-')?;
            let start = usize::from_str_radix(start, 16).ok()?;
            Some((start, usize::from_str_radix(end, 16).ok()?.checked_sub(start)?))
        });
        if let Some((start, length)) = bounds {
            let start = std::ptr::with_exposed_provenance_mut(start);
            let advice = rustix::mm::Advice::LinuxDontNeed;
            // SAFETY: the range is a private mapping of a file that can't be written through it, so every page of it is
            // as the file has it and is read from there again when it is next needed.
            let done = unsafe { rustix::mm::madvise(start, length, advice) };
            // It stays as it was, then.
            done.ok();
        }
    }
}
