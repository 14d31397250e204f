//! Written by `cargo xtask console`: the files of the console.

use super::File;

pub(super) static FILES: &[File] = &[
    File {
        path: "assets/index-5-pFHE1F.js",
        media_type: "text/javascript; charset=utf-8",
        is_hashed: true,
        plain: include_bytes!("assets/index-5-pFHE1F.js"),
        gzip: include_bytes!("assets/index-5-pFHE1F.js.gz"),
        brotli: include_bytes!("assets/index-5-pFHE1F.js.br"),
    },
    File {
        path: "assets/page-DcRhOIJ1.js",
        media_type: "text/javascript; charset=utf-8",
        is_hashed: true,
        plain: include_bytes!("assets/page-DcRhOIJ1.js"),
        gzip: include_bytes!("assets/page-DcRhOIJ1.js.gz"),
        brotli: include_bytes!("assets/page-DcRhOIJ1.js.br"),
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
