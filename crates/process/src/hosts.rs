//! The hosts that a sandboxed agent may reach: how they are written, and which connection they cover.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The longest name that the domain name system has.
const MAX_NAME: usize = 253;

/// What an entry without a port covers.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// An entry of the list: `example.com`, `*.example.com` (everything beneath it, not the name itself), `*`, an address, each
/// with or without a port. Without a port it stands for 80 and 443.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostPattern {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Name {
    Any,
    /// In lower case.
    Exactly(String),
    /// Everything beneath this name.
    Beneath(String),
}

/// How a list covers a connection.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Cover {
    /// By a pattern. A name that someone else has chosen must not lead into the local network.
    Pattern,
    /// By its own name or address.
    Named,
}

/// Why an entry is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "A host is a name (example.com), everything beneath a name (*.example.com) or an address, with or without a port."
)]
pub struct InvalidHost;

impl HostPattern {
    pub fn covers(&self, host: &str, port: u16) -> Option<Cover> {
        let port_fits = match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        };
        if !port_fits {
            return None;
        }
        let host = normal(host);
        match &self.name {
            Name::Any => Some(Cover::Pattern),
            Name::Exactly(name) => (*name == host).then_some(Cover::Named),
            Name::Beneath(name) => {
                let rest = host.strip_suffix(name.as_str())?.strip_suffix('.')?;
                (!rest.is_empty()).then_some(Cover::Pattern)
            }
        }
    }

    /// The port of this machine that the entry names.
    pub fn local_port(&self) -> Option<u16> {
        match &self.name {
            Name::Exactly(name) if is_here(name) => self.port,
            Name::Exactly(_) | Name::Beneath(_) | Name::Any => None,
        }
    }

    /// Whether everything that `other` covers is covered by this.
    pub fn includes(&self, other: &Self) -> bool {
        let port = match (self.port, other.port) {
            (None, Some(port)) => USUAL_PORTS.contains(&port),
            (own, port) => own == port,
        };
        let name = match (&self.name, &other.name) {
            (Name::Any, _) => true,
            (Name::Beneath(name), Name::Exactly(other)) => {
                let rest = other.strip_suffix(name.as_str());
                rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (Name::Beneath(name), Name::Beneath(other)) => {
                let rest = other.strip_suffix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (name, other) => name == other,
        };
        port && name
    }
}

/// The names of this machine itself.
fn is_here(name: &str) -> bool {
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

/// As names are compared: in lower case, without the dot at the end and the brackets of an address.
fn normal(host: &str) -> String {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => host,
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let text = text.trim();
        let number = |text: &str| match text.parse::<u16>() {
            Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(port),
            _ => Err(InvalidHost),
        };
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or(InvalidHost)?;
            address.parse::<Ipv6Addr>().map_err(|_| InvalidHost)?;
            match rest.strip_prefix(':') {
                Some(port) => (address, Some(number(port)?)),
                None if rest.is_empty() => (address, None),
                None => return Err(InvalidHost),
            }
        } else if text.parse::<Ipv6Addr>().is_ok() {
            (text, None)
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, Some(number(port)?)),
                None => (text, None),
            }
        };
        let name = match host.strip_prefix("*.") {
            _ if host == "*" => Name::Any,
            Some(rest) if is_name(rest) && rest.parse::<IpAddr>().is_err() => Name::Beneath(normal(rest)),
            None if is_name(host) || host.parse::<Ipv6Addr>().is_ok() => Name::Exactly(normal(host)),
            _ => return Err(InvalidHost),
        };
        Ok(Self { name, port })
    }
}

fn is_name(name: &str) -> bool {
    let in_label =
        |character: char| character.is_ascii_alphanumeric() || character == '-' || character == '_';
    let is_label = |label: &str| !label.is_empty() && label.len() <= 63 && label.chars().all(in_label);
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= MAX_NAME && name.split('.').all(is_label)
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Any => formatter.write_str("*")?,
            Name::Beneath(name) => write!(formatter, "*.{name}")?,
            Name::Exactly(name) if name.contains(':') => write!(formatter, "[{name}]")?,
            Name::Exactly(name) => formatter.write_str(name)?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

/// How a list of entries covers a connection; `None` if it does not.
pub fn covered(hosts: &[HostPattern], host: &str, port: u16) -> Option<Cover> {
    hosts
        .iter()
        .filter_map(|pattern| pattern.covers(host, port))
        .max()
}

/// Whether a host that is covered this way may be reached at this address.
#[cfg(any(target_os = "linux", test))]
pub(crate) fn may_lead_to(host: &str, cover: Cover, address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    let host = normal(host);
    if cover == Cover::Named && (host.parse() == Ok(address) || is_here(&host)) {
        return true;
    }
    match reach(address) {
        Reach::World => true,
        Reach::Network => cover == Cover::Named,
        Reach::Machine => false,
    }
}

/// How far away an address is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reach {
    /// This machine, or what answers every machine of a link, such as a cloud's metadata service.
    Machine,
    /// A private network.
    Network,
    World,
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_of_v4(v4),
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            if v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || first & 0xffc0 == 0xfe80 {
                Reach::Machine
            } else if first & 0xfe00 == 0xfc00 {
                Reach::Network
            } else {
                Reach::World
            }
        }
    }
}

fn reach_of_v4(v4: Ipv4Addr) -> Reach {
    let [first, second, third, _] = v4.octets();
    if v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || first == 0 || first >= 240 {
        Reach::Machine
    } else if v4.is_private()
        || (first == 100 && second & 0xc0 == 64)
        || (first == 198 && second & 0xfe == 18)
        || (first, second, third) == (192, 0, 0)
    {
        Reach::Network
    } else {
        Reach::World
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap_or_else(|_| panic!("{text} is an entry"))
    }

    #[test]
    fn an_entry_covers_what_it_names_and_nothing_else() {
        for (entry, host, port, expected) in [
            ("example.com", "EXAMPLE.com.", 443, Some(Cover::Named)),
            ("example.com", "example.com", 80, Some(Cover::Named)),
            ("example.com", "example.com", 22, None),
            ("example.com:22", "example.com", 22, Some(Cover::Named)),
            ("example.com:22", "example.com", 443, None),
            ("example.com", "www.example.com", 443, None),
            ("example.com", "example.com.evil.test", 443, None),
            ("*.example.com", "a.b.example.com", 443, Some(Cover::Pattern)),
            ("*.example.com", "example.com", 443, None),
            ("*.example.com", "notexample.com", 443, None),
            ("*.example.com", ".example.com", 443, None),
            ("*", "anything.test", 443, Some(Cover::Pattern)),
            ("*", "anything.test", 22, None),
            ("[::1]:5", "0:0::1", 5, Some(Cover::Named)),
            ("10.0.0.1", "10.0.0.1", 443, Some(Cover::Named)),
        ] {
            assert_eq!(
                pattern(entry).covers(host, port),
                expected,
                "{entry} {host}:{port}"
            );
        }
        let list = [pattern("*"), pattern("example.com")];
        assert_eq!(covered(&list, "example.com", 443), Some(Cover::Named));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            " ",
            "a b",
            "http://example.com",
            "example.com/",
            "a..b",
            "*.*",
            "**",
            "*.",
            "*.10.0.0.1",
            "example.com:0",
            "example.com:70000",
            "example.com:+1",
            "[::1",
            "[::1]5",
            "user@example.com",
            "a\0",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(InvalidHost), "{text:?}");
        }
    }

    #[test]
    fn a_name_does_not_lead_to_this_machine_nor_a_pattern_into_the_local_network() {
        let to = |host: &str, cover, address: &str| may_lead_to(host, cover, address.parse().unwrap());
        for inside in [
            "127.0.0.1",
            "169.254.169.254",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "fe80::1",
        ] {
            assert!(!to("rebound.test", Cover::Named, inside), "{inside}");
            assert!(!to("rebound.test", Cover::Pattern, inside), "{inside}");
        }
        for private in [
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(to("build.corp", Cover::Named, private), "{private}");
            assert!(!to("build.corp", Cover::Pattern, private), "{private}");
        }
        assert!(to("example.com", Cover::Pattern, "93.184.216.34"));
        assert!(to("169.254.169.254", Cover::Named, "169.254.169.254"));
        assert!(to("localhost", Cover::Named, "127.0.0.1"));
    }

    #[test]
    fn an_entry_includes_what_it_covers() {
        for (wide, narrow, expected) in [
            ("*", "example.com", true),
            ("*", "example.com:22", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "*.a.example.com", true),
            ("*.example.com", "*.example.com", true),
            ("*.example.com", "*.notexample.com", false),
            ("*.example.com", "example.com", false),
            ("example.com", "example.com:443", true),
            ("example.com:443", "example.com", false),
            ("example.com", "*", false),
        ] {
            assert_eq!(
                pattern(wide).includes(&pattern(narrow)),
                expected,
                "{wide} {narrow}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_entry_reads_as_it_was_written(text in "[*a-c0-9.:\\[\\]-]{0,12}") {
            if let Ok(entry) = text.parse::<HostPattern>() {
                prop_assert_eq!(entry.to_string().parse::<HostPattern>(), Ok(entry));
            }
        }

        #[test]
        fn including_is_covering(wide in "(\\*\\.)?[ab](\\.[ab]){0,2}", narrow in "[ab](\\.[ab]){0,3}", port in 440u16..446) {
            let (wide, single) = (pattern(&wide), pattern(&format!("{narrow}:{port}")));
            prop_assert_eq!(wide.includes(&single), wide.covers(&narrow, port).is_some());
        }
    }
}
