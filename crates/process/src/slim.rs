//! Releases memory that only the start of the process needed.

/// Drops the program's code from this process's memory. Pages that are needed again come from the file's cache: a
/// keeper or a launcher needs little of a large program.
pub fn let_go_of_code() {
    // An optimisation only.
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
            // SAFETY: the range is a private mapping of a file that is not written, so every page equals the file's
            // content and is read from there again on the next access.
            let done = unsafe { rustix::mm::madvise(start, length, advice) };
            // On an error the memory stays as it was.
            done.ok();
        }
    }
}
