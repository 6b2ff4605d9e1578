//! A working directory as a client may write it: beneath the roots or refused, never in a sensitive place.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tiller_core::PathPolicy;
use tiller_core::backend::check_sandbox_option;

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
    policy: PathPolicy,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().canonicalize().expect("it is there");
    let (root, home) = (base.join("r"), base.join("r/h"));
    for name in ["r/h/.ssh", "r/h/a/b", "r/d", "o/s"] {
        std::fs::create_dir_all(base.join(name)).expect("a folder");
    }
    for (name, to) in [("r/l", base.join("o")), ("r/h/k", home.join(".ssh")), ("r/u", "..".into())] {
        std::os::unix::fs::symlink(to, base.join(name)).expect("a link");
    }
    let roots = [root.clone()];
    let policy = PathPolicy::new(&home, &roots, &root, &base.join("r/d")).expect("a policy");
    Place {
        _folder: folder,
        root,
        home,
        policy,
    }
});

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Place {
        root, home, policy, ..
    } = &*PLACE;
    // Most texts are nowhere near: half of them are taken for something beneath the root.
    for wanted in [text.to_owned(), format!("{}/{text}", root.display()), format!("~/{text}")] {
        if let Ok(listing) = policy.list(Some(&wanted)) {
            let real = listing.path.canonicalize().expect("it is there");
            assert_eq!(real, listing.path);
            assert!(real.starts_with(root), "{wanted:?} leads to {}", real.display());
            assert!(!real.starts_with(home.join(".ssh")) && !real.starts_with(root.join("d")), "{wanted:?}");
        }
    }
    for name in ["sandboxFolders", "sandboxHosts"] {
        check_sandbox_option(name, &serde_json::json!([text])).expect("one of the sandbox's").ok();
    }
});
