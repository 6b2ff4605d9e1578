//! The folders in which agents may work: beneath the roots, and never in places that hold secrets.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Decides which folders may be used. Created once, when the server starts.
#[derive(Clone, Debug)]
pub struct PathPolicy {
    home: PathBuf,
    roots: Vec<PathBuf>,
    default: PathBuf,
    sensitive: Vec<PathBuf>,
}

/// The folder can't be used. The error does not say why: that would reveal what exists outside the roots.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("The working directory does not exist or may not be used. Choose a folder inside the allowed roots.")]
pub struct PathRefused;

/// The folders in a folder.
#[derive(Clone, Debug)]
pub struct FolderListing {
    pub path: PathBuf,
    /// `None` at a root.
    pub parent: Option<PathBuf>,
    /// Name and path, sorted by name.
    pub entries: Vec<(String, PathBuf)>,
}

/// A file that may be shown, as it is now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileText {
    Text(String),
    /// There is none yet, in a place where one may be shown.
    Absent,
}

/// The longest file that is shown.
const LONGEST_FILE: u64 = 1 << 20;

/// How long a file system may take to answer.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Never allowed, even beneath a root.
const SENSITIVE: &[&str] = &["/etc", "/root", "/proc", "/sys", "/dev", "/boot"];
const SENSITIVE_IN_HOME: &[&str] = &[".ssh", ".gnupg", ".aws"];

impl PathPolicy {
    /// `start` is the folder in which the server was started: the default working directory, if it may be used. Roots
    /// that don't exist are ignored; an error says that no root is left.
    pub fn new(home: &Path, roots: &[PathBuf], start: &Path, data_dir: &Path) -> Result<Self, PathRefused> {
        let real = |path: &Path| path.canonicalize().ok();
        let home = real(home).unwrap_or_else(|| home.to_owned());
        let roots: Vec<PathBuf> = roots.iter().filter_map(|root| real(root)).collect();
        let home_is_usable = roots.iter().any(|root| home.starts_with(root));
        let sensitive = SENSITIVE
            .iter()
            .map(PathBuf::from)
            // The home folder of root is sensitive to everyone but root.
            .filter(|path| !(home_is_usable && home.starts_with(path)))
            .chain(SENSITIVE_IN_HOME.iter().map(|name| home.join(name)))
            .chain([real(data_dir).unwrap_or_else(|| data_dir.to_owned())])
            .collect();
        let first = roots.first().ok_or(PathRefused)?.clone();
        let mut policy = Self {
            home,
            roots,
            default: first,
            sensitive,
        };
        if let Ok(start) = policy.check(start) {
            policy.default = start;
        }
        Ok(policy)
    }

    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The working directory of a session that does not choose one.
    pub fn default_directory(&self) -> &Path {
        &self.default
    }

    /// The real path of the folder that the user named: absolute, or beginning with `~/`. A file system that does not
    /// answer leads to a refusal after a timeout and blocks nobody else.
    pub async fn working_directory(&self, wanted: Option<&str>) -> Result<PathBuf, PathRefused> {
        let wanted = wanted.map(str::to_owned);
        self.off_thread(move |policy| policy.resolve(wanted.as_deref()))
            .await
    }

    /// The text of a file that someone who may work here wants to see. Refused outside the roots and in sensitive places,
    /// and if it is no text file of a reasonable length.
    pub async fn text_of(&self, path: PathBuf) -> Result<FileText, PathRefused> {
        self.off_thread(move |policy| policy.read_text(&path)).await
    }

    fn read_text(&self, path: &Path) -> Result<FileText, PathRefused> {
        if !path.is_absolute() {
            return Err(PathRefused);
        }
        let real = match path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere may lead somewhere a moment later.
                let known = path.ancestors().skip(1).find(|folder| folder.exists());
                self.check(known.ok_or(PathRefused)?)?;
                return if path.is_symlink() {
                    Err(PathRefused)
                } else {
                    Ok(FileText::Absent)
                };
            }
            real => real.map_err(|_| PathRefused)?,
        };
        if !self.is_inside(&real) {
            return Err(PathRefused);
        }
        let file = open_exactly(&real).map_err(|_| PathRefused)?;
        let kind = file.metadata().map_err(|_| PathRefused)?;
        if !kind.is_file() || kind.len() > LONGEST_FILE {
            return Err(PathRefused);
        }
        let mut text = String::new();
        // It may grow while it is read.
        file.take(LONGEST_FILE)
            .read_to_string(&mut text)
            .map_err(|_| PathRefused)?;
        if text.contains('\0') {
            return Err(PathRefused);
        }
        Ok(FileText::Text(text))
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Self) -> Result<T, PathRefused> + Send + 'static,
    ) -> Result<T, PathRefused> {
        let policy = self.clone();
        let looking = tokio::task::spawn_blocking(move || look(&policy));
        match tokio::time::timeout(LOOKUP_TIMEOUT, looking).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) | Err(_) => Err(PathRefused),
        }
    }

    /// As [`Self::working_directory`], but blocking.
    pub fn resolve(&self, wanted: Option<&str>) -> Result<PathBuf, PathRefused> {
        match wanted.map(str::trim).filter(|wanted| !wanted.is_empty()) {
            None => self.check(&self.default),
            Some(wanted) => self.check(&self.expand(wanted)?),
        }
    }

    /// Whether a folder that was allowed before may still be used: it may have become a link that leads out of the
    /// roots.
    pub(crate) async fn check_again(&self, path: &Path) -> Result<(), PathRefused> {
        self.working_directory(Some(&path.to_string_lossy()))
            .await
            .map(drop)
    }

    /// The folders beneath `path`, for a user who chooses one.
    pub fn list(&self, path: Option<&str>) -> Result<FolderListing, PathRefused> {
        let path = self.resolve(path)?;
        let mut entries: Vec<_> = std::fs::read_dir(&path)
            .map_err(|_| PathRefused)?
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.to_owned();
                let path = path.join(&name);
                (!name.starts_with('.') && self.check(&path).is_ok()).then_some((name, path))
            })
            .collect();
        entries.sort_by_cached_key(|(name, _)| name.to_lowercase());
        let parent = path
            .parent()
            .filter(|parent| self.check(parent).is_ok())
            .map(Path::to_owned);
        Ok(FolderListing {
            path,
            parent,
            entries,
        })
    }

    fn expand(&self, wanted: &str) -> Result<PathBuf, PathRefused> {
        if wanted.contains('\0') {
            return Err(PathRefused);
        }
        let path = match wanted.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) => self.home.join(rest.strip_prefix('/').ok_or(PathRefused)?),
            None => PathBuf::from(wanted),
        };
        if path.is_absolute() {
            Ok(path)
        } else {
            Err(PathRefused)
        }
    }

    /// Symbolic links are resolved before anything is compared.
    fn check(&self, path: &Path) -> Result<PathBuf, PathRefused> {
        let real = path.canonicalize().map_err(|_| PathRefused)?;
        if self.is_inside(&real) && real.is_dir() && can_enter(&real) {
            Ok(real)
        } else {
            Err(PathRefused)
        }
    }

    /// Beneath a root and in no sensitive place. The path is a real one.
    fn is_inside(&self, real: &Path) -> bool {
        let inside = self.roots.iter().any(|root| real.starts_with(root));
        let sensitive = self.sensitive.iter().any(|place| real.starts_with(place));
        inside && !sensitive
    }
}

/// Opens a real path, or nothing: a part of it may have become a link since it was checked. Never waits for a pipe.
fn open_exactly(real: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};

        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, real, flags, Mode::empty(), resolve) {
            // A kernel or a filter that does not know the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            opened => return Ok(File::from(opened?)),
        }
    }
    let file = File::from(rustix::fs::openat(CWD, real, flags, Mode::empty())?);
    if real.canonicalize()? == real {
        Ok(file)
    } else {
        Err(io::Error::other("the file is not where it was"))
    }
}

/// An agent can be started only in a folder that can be entered.
fn can_enter(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::READ_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        _keep: tempfile::TempDir,
        home: PathBuf,
        policy: PathPolicy,
    }

    fn scene() -> Scene {
        let keep = tempfile::tempdir().unwrap();
        let home = keep.path().canonicalize().unwrap().join("home");
        for folder in ["project/src", ".ssh", "data", "link-target"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::create_dir_all(keep.path().join("outside")).unwrap();
        std::fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink(keep.path().join("outside"), home.join("way-out")).unwrap();
        let roots = [home.clone()];
        let policy = PathPolicy::new(&home, &roots, &home.join("project"), &home.join("data")).unwrap();
        Scene {
            _keep: keep,
            home,
            policy,
        }
    }

    #[test]
    fn folders_beneath_a_root_are_fine() {
        let Scene { home, policy, _keep } = scene();
        assert_eq!(policy.resolve(None), Ok(home.join("project")));
        assert_eq!(policy.resolve(Some("")), Ok(home.join("project")));
        assert_eq!(
            policy.resolve(Some("~/project/src")),
            Ok(home.join("project/src"))
        );
        assert_eq!(policy.resolve(Some("~")), Ok(home.clone()));
    }

    #[test]
    fn everything_else_is_refused() {
        let Scene { home, policy, _keep } = scene();
        let escape = format!("{}/project/../../outside", home.display());
        let way_out = home.join("way-out");
        let cases = [
            "/",
            "/etc",
            "/proc/self",
            "relative",
            "~other",
            "~/nowhere",
            "~/file",
            "~/.ssh",
            "~/data",
            "~/project\0",
            &escape,
            way_out.to_str().unwrap(),
        ];
        for case in cases {
            assert_eq!(policy.resolve(Some(case)), Err(PathRefused), "{case}");
        }
    }

    #[test]
    fn files_are_shown_where_agents_may_work_and_nowhere_else() {
        let Scene { home, policy, _keep } = scene();
        let outside = home.parent().unwrap().join("outside/secret");
        for place in ["project/a.txt", ".ssh/key", "data/store"] {
            std::fs::write(home.join(place), "words").unwrap();
        }
        std::fs::write(&outside, "words").unwrap();
        std::fs::write(home.join("project/binary"), b"\0").unwrap();
        std::fs::write(home.join("project/odd"), b"\xff\xfe").unwrap();
        std::fs::write(
            home.join("project/long"),
            "x".repeat(usize::try_from(LONGEST_FILE).unwrap() + 1),
        )
        .unwrap();
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, home.join("project").join(name)).unwrap();
        };
        link(&outside, "to-outside");
        link(&home.join("data/store"), "to-data");
        link(&home.join("nowhere"), "to-nowhere");
        link(&home.join("project/a.txt"), "to-a");
        rustix::fs::mkfifoat(rustix::fs::CWD, home.join("project/pipe"), rustix::fs::Mode::RUSR).unwrap();

        let read = |path: &str| policy.read_text(&home.join(path));
        assert_eq!(read("project/a.txt"), Ok(FileText::Text("words".to_owned())));
        assert_eq!(read("project/to-a"), Ok(FileText::Text("words".to_owned())));
        assert_eq!(read("project/new.txt"), Ok(FileText::Absent));
        assert_eq!(read("project/new/folder/new.txt"), Ok(FileText::Absent));
        for refused in [
            "project",
            "project/binary",
            "project/odd",
            "project/long",
            "project/pipe",
            "project/to-outside",
            "project/to-data",
            "project/to-nowhere",
            "project/../../outside/secret",
            "../outside/new",
            "way-out/secret",
            "way-out/new",
            ".ssh/key",
            ".ssh/new",
            "data/store",
        ] {
            assert_eq!(read(refused), Err(PathRefused), "{refused}");
        }
        assert_eq!(policy.read_text(Path::new("a.txt")), Err(PathRefused));
    }

    #[test]
    fn listings_show_only_what_may_be_chosen() {
        let Scene { home, policy, _keep } = scene();
        let listing = policy.list(Some("~")).unwrap();
        let names: Vec<_> = listing.entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["link-target", "project"]);
        assert_eq!(listing.parent, None);
        assert_eq!(policy.list(Some("~/project")).unwrap().parent, Some(home));
    }
}
