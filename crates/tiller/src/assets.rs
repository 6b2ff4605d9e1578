//! The embedded web UI. `build.rs` builds and prepares it; this module finds its files for the server.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read as _;

use rust_embed::EmbeddedFile;
use tiller_server::{Asset, Assets};

// `Plain` and `Gzip`: the plain files, and the compressed ones of those that shrink.
include!(concat!(env!("OUT_DIR"), "/web.rs"));

pub(crate) struct EmbeddedAssets;

impl Assets for EmbeddedAssets {
    fn find(&self, path: &str, accept_gzip: bool) -> Option<Asset> {
        let asset = |file: &EmbeddedFile, form: Form, body: Cow<'static, [u8]>| Asset {
            content_type: content_type(path),
            etag: etag(file, form),
            gzip: form == Form::Compressed,
            // The build puts the content's hash into the names of these files, and only of these.
            immutable: path.starts_with("assets/"),
            body,
        };
        let Some(compressed) = Gzip::get(path) else {
            let plain = Plain::get(path)?;
            return Some(asset(&plain, Form::AsEmbedded, plain.data.clone()));
        };
        if accept_gzip {
            return Some(asset(&compressed, Form::Compressed, compressed.data.clone()));
        }
        // Every browser accepts gzip; programs that don't are few, and wait for this.
        let mut unpacked = Vec::new();
        if let Err(error) = flate2::read::GzDecoder::new(compressed.data.as_ref()).read_to_end(&mut unpacked)
        {
            tracing::error!(%error, path, "a file of the page can't be unpacked");
            return None;
        }
        Some(asset(&compressed, Form::Unpacked, unpacked.into()))
    }
}

/// How a file is sent, beside how it is embedded.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Form {
    AsEmbedded,
    Compressed,
    Unpacked,
}

/// A strong validator: the hash of what is embedded, and a mark where something else is sent.
fn etag(file: &EmbeddedFile, form: Form) -> String {
    let mut etag = String::from("\"");
    // Half of the hash distinguishes any two files.
    for byte in &file.metadata.sha256_hash()[..16] {
        // Writing to a string can't fail.
        write!(etag, "{byte:02x}").ok();
    }
    if form == Form::Unpacked {
        etag.push_str("-unpacked");
    }
    etag.push('"');
    etag
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        Plain::iter().chain(Gzip::iter()).map(Cow::into_owned).collect()
    }

    fn find(path: &str, accept_gzip: bool) -> Option<Asset> {
        EmbeddedAssets.find(path, accept_gzip)
    }

    #[test]
    fn the_page_is_asked_for_anew_each_time() {
        let page = find("index.html", false).unwrap();
        assert_eq!(page.content_type, "text/html; charset=utf-8");
        assert!(page.body.to_ascii_lowercase().starts_with(b"<!doctype html>"));
        assert!(!page.immutable);
        assert!(!page.gzip);
    }

    #[test]
    fn every_script_and_style_of_the_page_is_there_and_may_be_kept_for_good() {
        let page = find("index.html", false).unwrap();
        let page = String::from_utf8(page.body.into_owned()).unwrap();
        let assets: Vec<&str> = page
            .split('"')
            .filter_map(|part| part.strip_prefix("/assets/"))
            .collect();
        assert!(!assets.is_empty(), "the page loads nothing: {page}");
        for name in assets {
            let asset =
                find(&format!("assets/{name}"), false).unwrap_or_else(|| panic!("{name} is not found"));
            assert!(asset.immutable, "{name}");
        }
    }

    #[test]
    fn a_file_is_embedded_once_and_sent_in_both_forms_under_different_etags() {
        let mut compressed = 0;
        for path in paths() {
            let plain = find(&path, false).unwrap();
            let asset = find(&path, true).unwrap();
            assert!(!plain.gzip, "{path}");
            assert_eq!(asset.content_type, plain.content_type);
            assert_eq!(asset.gzip, Plain::get(&path).is_none(), "{path}");
            if !asset.gzip {
                assert_eq!(asset.etag, plain.etag, "{path}");
                continue;
            }
            compressed += 1;
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(asset.body.as_ref())
                .read_to_end(&mut unpacked)
                .unwrap();
            assert_eq!(unpacked, *plain.body, "{path}");
            assert!(asset.body.len() < plain.body.len(), "{path}");
            assert_ne!(asset.etag, plain.etag, "{path}");
        }
        assert!(compressed > 0, "nothing is compressed");
    }

    #[test]
    fn every_file_has_a_content_type_that_browsers_accept_under_nosniff() {
        for path in paths() {
            assert_ne!(
                content_type(&path),
                "application/octet-stream",
                "{path}: add its type"
            );
        }
    }

    #[test]
    fn what_is_not_part_of_the_ui_is_not_found() {
        for path in [
            "",
            "no-such-file",
            "assets",
            "assets/",
            "../Cargo.toml",
            ".tiller-stamp",
        ] {
            assert!(find(path, true).is_none(), "{path}");
        }
    }
}
