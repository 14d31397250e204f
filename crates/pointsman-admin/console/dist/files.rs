//! Written by `cargo xtask console`: the files of the console.

use super::File;

pub(super) static FILES: &[File] = &[
    File {
        path: "assets/index-CmwEIeMY.js",
        media_type: "text/javascript; charset=utf-8",
        is_hashed: true,
        plain: include_bytes!("assets/index-CmwEIeMY.js"),
        gzip: include_bytes!("assets/index-CmwEIeMY.js.gz"),
        brotli: include_bytes!("assets/index-CmwEIeMY.js.br"),
    },
    File {
        path: "assets/page-PZT6xw9a.js",
        media_type: "text/javascript; charset=utf-8",
        is_hashed: true,
        plain: include_bytes!("assets/page-PZT6xw9a.js"),
        gzip: include_bytes!("assets/page-PZT6xw9a.js.gz"),
        brotli: include_bytes!("assets/page-PZT6xw9a.js.br"),
    },
    File {
        path: "assets/style-ByCc8atQ.css",
        media_type: "text/css; charset=utf-8",
        is_hashed: true,
        plain: include_bytes!("assets/style-ByCc8atQ.css"),
        gzip: include_bytes!("assets/style-ByCc8atQ.css.gz"),
        brotli: include_bytes!("assets/style-ByCc8atQ.css.br"),
    },
    File {
        path: "icon.svg",
        media_type: "image/svg+xml",
        is_hashed: false,
        plain: include_bytes!("icon.svg"),
        gzip: include_bytes!("icon.svg.gz"),
        brotli: include_bytes!("icon.svg.br"),
    },
    File {
        path: "index.html",
        media_type: "text/html; charset=utf-8",
        is_hashed: false,
        plain: include_bytes!("index.html"),
        gzip: include_bytes!("index.html.gz"),
        brotli: include_bytes!("index.html.br"),
    },
    File {
        path: "licences.txt",
        media_type: "text/plain; charset=utf-8",
        is_hashed: false,
        plain: include_bytes!("licences.txt"),
        gzip: include_bytes!("licences.txt.gz"),
        brotli: include_bytes!("licences.txt.br"),
    },
];
