//! Refuses requests before authentication: with wrong host names, and from pages of other sites.
//!
//! A page on any website can send requests to this machine. The host name that the browser used (Host), the site that
//! sent the request (Origin) and the browser's own judgement (Sec-Fetch-Site) reveal them.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::listen::MAX_HEAD;

/// The host names under which this server may be reached.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    authorities: HashSet<String>,
}

impl HostPolicy {
    /// The bound addresses, which all have the same port, the names of loopback as far as they lead here, and
    /// `allowed`: names with or without a port. A browser that opens `localhost` tries both address families, so that
    /// name is accepted only if `localhost_is_ours`: if no other program can listen on one of them.
    pub fn new(bound: &[SocketAddr], localhost_is_ours: bool, allowed: &[String]) -> Self {
        let port = bound.first().map_or(0, SocketAddr::port);
        let leads_here = |loopback: IpAddr| {
            bound.iter().any(|bound| {
                bound.ip() == loopback
                    || (bound.ip().is_unspecified() && bound.is_ipv4() == loopback.is_ipv4())
            })
        };
        let names = [
            ("localhost", localhost_is_ours),
            ("127.0.0.1", leads_here(Ipv4Addr::LOCALHOST.into())),
            ("[::1]", leads_here(Ipv6Addr::LOCALHOST.into())),
        ];
        let loopback = names.into_iter().filter_map(|(name, ours)| ours.then_some(name));
        let mut authorities: HashSet<String> =
            loopback.clone().map(|name| format!("{name}:{port}")).collect();
        authorities.extend(bound.iter().map(SocketAddr::to_string));
        for name in allowed {
            let name = name.to_ascii_lowercase();
            authorities.insert(format!("{name}:{port}"));
            authorities.insert(name);
        }
        if port == 80 {
            authorities.extend(loopback.map(str::to_owned));
        }
        Self { authorities }
    }

    fn serves(&self, authority: &str) -> bool {
        self.authorities.contains(&authority.to_ascii_lowercase())
    }
}

/// Refuses requests that come neither from this server's own pages nor from a program.
pub(crate) async fn same_origin_only(State(app): State<App>, request: Request, next: Next) -> Response {
    match check(&app.access.hosts, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn check(hosts: &HostPolicy, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    if head_size(request) > MAX_HEAD {
        return Err(ApiError::HeadTooLarge);
    }
    let host = single(headers, &header::HOST)?.ok_or(ApiError::ForeignHost)?;
    if !hosts.serves(host) {
        return Err(ApiError::ForeignHost);
    }
    if let Some(origin) = single(headers, &header::ORIGIN)? {
        let authority = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        if !authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host)) {
            return Err(ApiError::ForeignOrigin);
        }
    }
    let site = single(headers, &HeaderName::from_static("sec-fetch-site"))?;
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let delicate =
        !reads || headers.contains_key(header::UPGRADE) || request.uri().path().starts_with("/api");
    if delicate && matches!(site, Some("cross-site" | "same-site")) {
        return Err(ApiError::ForeignOrigin);
    }
    Ok(())
}

/// The approximate size of the request's head. The HTTP library's own limit is that of a buffer, and may apply late.
fn head_size(request: &Request) -> usize {
    let lines = request.headers().iter();
    let headers: usize = lines
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    headers + request.uri().to_string().len()
}

/// The header's value. A duplicate header, or one that is not plain text, is refused.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ApiError::ForeignOrigin),
        (Some(_), Some(_)) => Err(ApiError::ForeignOrigin),
    }
}

/// Scripts and styles from here only, nothing inline, nothing evaluated, no embedding, nothing from other hosts.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; worker-src 'self'; frame-src 'self'; \
     manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The frame in which the page has diagrams drawn: it may write styles, and in exchange has no origin and can't load
/// anything. Its one script, named by its hash, runs what the page passes in.
const DIAGRAM_PAGE: &str = "/diagram.html";
const DIAGRAM_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
     script-src 'sha256-GCNJkJ/4NelP2UvV5bAuVZBmzjLMvwA3nxKJnwYxaTw=' blob:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

pub(crate) async fn security_headers(request: Request, next: Next) -> Response {
    let policy = if request.uri().path() == DIAGRAM_PAGE {
        DIAGRAM_POLICY
    } else {
        CONTENT_SECURITY_POLICY
    };
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), ApiError> {
        let bound = ["127.0.0.1:8080", "[::1]:8080"].map(|address| address.parse().unwrap());
        let hosts = HostPolicy::new(&bound, true, &["tiller.example".to_owned()]);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&hosts, &request.body(axum::body::Body::empty()).unwrap())
    }

    #[test]
    fn our_own_names_are_served() {
        for host in [
            "127.0.0.1:8080",
            "localhost:8080",
            "[::1]:8080",
            "LOCALHOST:8080",
            "tiller.example",
        ] {
            assert_eq!(verdict("GET", "/", &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost",
            "localhost:8081",
            "127.0.0.1.evil.example:8080",
        ] {
            assert_eq!(
                verdict("GET", "/", &[("host", host)]),
                Err(ApiError::ForeignHost),
                "{host}"
            );
        }
        assert_eq!(verdict("GET", "/health", &[]), Err(ApiError::ForeignHost));
    }

    #[test]
    fn only_names_that_lead_here_are_served() {
        let serves = |bound: &str, localhost: bool, name: &str| {
            HostPolicy::new(&[bound.parse().unwrap()], localhost, &[]).serves(name)
        };
        assert!(serves("127.0.0.1:80", true, "localhost") && serves("127.0.0.1:80", true, "127.0.0.1"));
        assert!(
            !serves("127.0.0.1:8080", false, "localhost:8080"),
            "someone else's, by IPv6"
        );
        assert!(!serves("127.0.0.1:8080", true, "[::1]:8080"));
        assert!(serves("0.0.0.0:8080", false, "127.0.0.1:8080"));
        assert!(!serves("192.168.1.20:8080", false, "127.0.0.1:8080"));
        assert!(serves("192.168.1.20:8080", false, "192.168.1.20:8080"));
    }

    #[test]
    fn a_head_has_its_limit() {
        let host = ("host", "localhost:8080");
        let verdict_on = |length: usize| verdict("GET", "/health", &[host, ("x-much", &"a".repeat(length))]);
        assert_eq!(verdict_on(60 << 10), Ok(()));
        assert_eq!(verdict_on(64 << 10), Err(ApiError::HeadTooLarge));
    }

    #[test]
    fn other_origins_are_refused() {
        let host = ("host", "localhost:8080");
        assert_eq!(
            verdict("GET", "/ws/events", &[host, ("origin", "http://localhost:8080")]),
            Ok(())
        );
        for origin in [
            "http://evil.example",
            "null",
            "http://127.0.0.1:8080",
            "file://",
            "http://localhost:8080.evil.example",
        ] {
            assert_eq!(
                verdict("GET", "/ws/events", &[host, ("origin", origin)]),
                Err(ApiError::ForeignOrigin),
                "{origin}"
            );
        }
        assert_eq!(
            verdict(
                "GET",
                "/",
                &[
                    host,
                    ("origin", "http://localhost:8080"),
                    ("origin", "http://evil.example")
                ]
            ),
            Err(ApiError::ForeignOrigin)
        );
    }

    #[test]
    fn other_sites_may_link_to_the_page_and_nothing_more() {
        let (host, cross) = (("host", "localhost:8080"), ("sec-fetch-site", "cross-site"));
        assert_eq!(verdict("GET", "/", &[host, cross]), Ok(()));
        assert_eq!(
            verdict("GET", "/api/system", &[host, cross]),
            Err(ApiError::ForeignOrigin)
        );
        assert_eq!(verdict("POST", "/", &[host, cross]), Err(ApiError::ForeignOrigin));
        assert_eq!(
            verdict(
                "GET",
                "/ws/events",
                &[host, ("upgrade", "websocket"), ("sec-fetch-site", "same-site")]
            ),
            Err(ApiError::ForeignOrigin)
        );
        assert_eq!(
            verdict("GET", "/api/system", &[host, ("sec-fetch-site", "same-origin")]),
            Ok(())
        );
    }
}
